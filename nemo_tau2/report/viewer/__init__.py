"""The rollout viewer: one self-contained HTML page of stored rollouts. No server, no network."""

from nemo_tau2.report.viewer.page import write_viewer

__all__ = ["write_viewer"]
