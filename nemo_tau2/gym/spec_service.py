"""`spec_service`: the resources server of every spec-driven environment.

The row says script, mode and scenario (`verifier_metadata`); the configuration says who plays the
helper roles and how episodes are scored. The episodes are `nemo_tau2.simulation`'s.
"""

from typing import Any

from nemo_gym.config_types import ModelServerRef
from pydantic import ConfigDict, Field, PositiveFloat

from nemo_tau2.errors import UserError
from nemo_tau2.gym.model_chat import ModelServerChat
from nemo_tau2.gym.resources import EpisodeServer, EpisodeServerConfig
from nemo_tau2.rewards.spec_tiers import SpecTierRewards
from nemo_tau2.simulation.episode import SpecEpisode
from nemo_tau2.simulation.factory import helper_roles, new_episode
from nemo_tau2.simulation.options import SpecOptions
from nemo_tau2.simulation.scripts import load_script


class SpecServiceConfig(EpisodeServerConfig):
    """Configuration of a `spec_service` instance."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    scripts: list[str] = Field(default_factory=list)
    """Scripts to compile at start, by name or path; others compile at their first row."""
    helper_model_server: ModelServerRef | None = None
    """One frozen model for all three roles; None: all scripted."""
    customer_model_server: ModelServerRef | None = None
    """A model of its own for the customer."""
    emulator_model_server: ModelServerRef | None = None
    """A model of its own for the tool emulator."""
    judge_model_server: ModelServerRef | None = None
    """A model of its own for the judge."""
    helper_sampling: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0.0})
    """Sampling parameters of helper completions."""
    customer_sampling: dict[str, Any] | None = None
    """The customer's own; None: `helper_sampling`."""
    emulator_sampling: dict[str, Any] | None = None
    """The tool emulator's own; None: `helper_sampling`."""
    judge_sampling: dict[str, Any] | None = None
    """The judge's own; None: `helper_sampling`."""
    helper_request_timeout_s: PositiveFloat = 120.0
    """Seconds for one helper completion; `options.helper_timeout_s` bounds a whole answer."""
    rewards: SpecTierRewards = SpecTierRewards()
    """What the tiers of calls pay."""
    options: SpecOptions = SpecOptions()
    """Settings of episodes."""


class SpecService(EpisodeServer):
    """Makes spec-driven episodes out of dataset rows."""

    config: SpecServiceConfig

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        for script in self.config.scripts:
            load_script(script)

    async def new_episode(self, row: dict[str, Any]) -> SpecEpisode:
        if not isinstance(row.get("verifier_metadata"), dict):
            raise UserError(
                "the row has no verifier_metadata; make rows with `nemo-tau2 spec rows`"
            )
        config = self.config
        roles = helper_roles(
            row,
            self._chat(config.customer_model_server, config.customer_sampling),
            self._chat(config.emulator_model_server, config.emulator_sampling),
            self._chat(config.judge_model_server, config.judge_sampling),
        )
        return new_episode(row, options=config.options, rewards=config.rewards, **roles)

    def _chat(
        self, own: ModelServerRef | None, sampling: dict[str, Any] | None
    ) -> ModelServerChat | None:
        reference = own or self.config.helper_model_server
        if reference is None:
            return None
        chosen = self.config.helper_sampling if sampling is None else sampling
        return ModelServerChat(
            self.peer(reference.name), chosen, self.config.helper_request_timeout_s
        )
