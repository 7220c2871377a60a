"""Entry point of the `tau2_bench` resources server; the code is `nemo_tau2.gym.tau2_bench`."""

from nemo_tau2.gym.tau2_bench import Tau2Bench

if __name__ == "__main__":
    Tau2Bench.run_webserver()
