"""Entry point of the `tool_server` resources server; the code is `nemo_tau2.gym.tool_server`."""

from nemo_tau2.gym.tool_server import ToolServer

if __name__ == "__main__":
    ToolServer.run_webserver()
