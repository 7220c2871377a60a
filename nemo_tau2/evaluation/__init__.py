"""Evaluation: what stored rollouts say about a policy, and how sure one may be of it."""

from nemo_tau2.evaluation.aggregate import Evaluation, load

__all__ = ["Evaluation", "load"]
