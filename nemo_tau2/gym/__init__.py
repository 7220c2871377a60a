"""NeMo Gym components: the agent harness, the resources servers, and the means to run them.

The folders under `gym_root` hold only thin `app.py` files, because NeMo Gym starts a component from
a directory; what they do is here, importable and tested without a server.
"""
