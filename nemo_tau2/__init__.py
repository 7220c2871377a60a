"""τ²-bench and Agent Script environments, turn-level credit, evaluation beside NeMo RL and NeMo Gym.

Importing this package imports nothing else: every area is a subpackage of its own.
"""

__version__ = "0.1.0"
