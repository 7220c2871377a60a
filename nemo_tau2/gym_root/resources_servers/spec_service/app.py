"""Entry point of the `spec_service` resources server; the code is `nemo_tau2.gym.spec_service`."""

from nemo_tau2.gym.spec_service import SpecService

if __name__ == "__main__":
    SpecService.run_webserver()
