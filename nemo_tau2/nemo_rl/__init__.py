"""Everything that touches NeMo RL: hooks, actor subclass, estimator adapters, recipe check, launch.

It forks nothing. `install()` replaces a handful of names in NeMo RL's modules, after asserting that
each still is NeMo RL's own; `uninstall()` puts them back. Importing this package imports neither
NeMo RL nor torch nor Ray.
"""

__all__ = ["install", "uninstall"]


def install() -> None:
    """Installs the hooks in this process; installing twice is installing once.

    Raises `UserError` where NeMo RL cannot be imported or a name is no longer NeMo RL's own.
    """
    from nemo_tau2.nemo_rl import hooks

    hooks.install()


def uninstall() -> None:
    """Restores every name that `install` replaced; without an installation it does nothing."""
    from nemo_tau2.nemo_rl import hooks

    hooks.uninstall()
