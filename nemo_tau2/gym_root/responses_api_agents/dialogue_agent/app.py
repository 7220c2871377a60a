"""Entry point of the `dialogue_agent`; the code is `nemo_tau2.gym.agent`."""

from nemo_gym.server_utils import is_nemo_gym_fastapi_entrypoint

from nemo_tau2.gym.agent import DialogueAgent

if __name__ == "__main__":
    DialogueAgent.run_webserver()
elif is_nemo_gym_fastapi_entrypoint(__file__):
    app = DialogueAgent.run_webserver()
