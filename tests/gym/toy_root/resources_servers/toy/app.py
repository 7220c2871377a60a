"""Entry point of the toy environment."""

from tests.gym.toy import ToyServer

if __name__ == "__main__":
    ToyServer.run_webserver()
