"""What to roll out of Agent Script environments: rows of `nemo-tau2 spec rows` or `data mix`.

The same promises as `plan.RolloutPlan`, which is for τ². Rows of several modes may be mixed: each goes to
the agent that its `agent_ref` names.
"""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from nemo_tau2.chat import Complete, Endpoint, LiteLLMChat
from nemo_tau2.endpoints import ModelFlags, endpoint_of, read_key
from nemo_tau2.episodes import Episode
from nemo_tau2.errors import UserError
from nemo_tau2.rewards.spec_tiers import SpecTierRewards
from nemo_tau2.rollouts.notes import prompt_sha256
from nemo_tau2.simulation.factory import AGENTS, helper_roles, new_episode
from nemo_tau2.simulation.helpers import PROMPT_VERSIONS
from nemo_tau2.simulation.options import SpecOptions
from nemo_tau2.simulation.recorded import record, script, tell
from nemo_tau2.simulation.scenario import parse_row, require_one_row
from nemo_tau2.simulation.scripts import load_script, script_files

SCRIPT = "nemo_tau2.simulation.recorded:script"
ENVIRONMENTS = {agent: agent.removesuffix("_agent") for agent in AGENTS.values()}
"""{agent instance: environment} of the environments that can be started here."""


class SpecSettings(BaseModel):
    """The settings file of `rollout --rows`: the same keys as in the configuration of `spec_service`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    options: SpecOptions = SpecOptions()
    """Budgets, routing, reward and helper bounds."""
    rewards: SpecTierRewards = SpecTierRewards()
    """What the tiers of calls pay."""


@dataclass(frozen=True)
class SpecPlan:
    """One run of `rollout --rows`; a role without an endpoint is scripted."""

    file: Path
    group_size: int
    limit: int | None
    policy: Endpoint | None
    customer: Endpoint | None
    judge: Endpoint | None
    helper: Endpoint | None
    policy_token_ids: bool
    backend: Literal["gym", "direct"]
    concurrency: int
    seed: int
    fault_rate: float
    max_turns: int | None
    settings: SpecSettings

    @classmethod
    def from_flags(
        cls,
        rows: Path,
        policy: ModelFlags,
        customer: ModelFlags,
        judge: ModelFlags,
        helper: ModelFlags,
        api_key_file: Path | None,
        settings: Path | None,
        **rest: Any,
    ) -> "SpecPlan":
        """Raises UserError for flags that contradict each other, and for a bad settings file."""
        key = read_key(api_key_file)
        plan = cls(
            file=rows,
            policy=endpoint_of("policy", policy, key),
            customer=endpoint_of("user", customer, key),
            judge=endpoint_of("judge", judge, key),
            helper=endpoint_of("helper", helper, key),
            settings=read_settings(settings),
            **rest,
        )
        if not 0.0 <= plan.fault_rate <= 1.0:
            raise UserError(f"--fault-rate {plan.fault_rate}: must be between 0 and 1")
        if plan.policy is None and (plan.customer or plan.helper):
            raise UserError(
                "the scripted policy plays against scripted helpers only; give --policy-url, or leave "
                "--user-url and --helper-url out"
            )
        if plan.policy_token_ids and (plan.policy is None or plan.backend != "gym"):
            raise UserError("--policy-token-ids needs --policy-url and the gym backend")
        return plan

    def rows(self) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """The planned rows, each `group_size` times, and the sha256 of the rows' file."""
        read = read_spec_rows(self.file)[: self.limit]
        planned, trials = [], Counter[str]()
        for row in read:
            task = row["verifier_metadata"]["task_id"]
            for _ in range(self.group_size):  # a mixture may repeat a row: more trials of its task
                metadata = row["verifier_metadata"] | {"trial": trials[task]}
                planned.append(row | {"verifier_metadata": metadata})
                trials[task] += 1
        if self.policy is None:
            planned = [tell(row, self._note(row)) for row in planned]
        return planned, {str(self.file): _sha256(self.file)}

    def describe(self) -> dict[str, Any]:
        """What the summary records, without secrets."""
        roles = {"user": self.customer, "judge": self.judge, "helper": self.helper}
        return {
            "rows": str(self.file),
            "policy": self.policy.describe() if self.policy else "scripted",
            **{name: role.describe() if role else "scripted" for name, role in roles.items()},
            "settings": self.settings.model_dump(mode="json"),
            **{name: getattr(self, name) for name in ("group_size", "limit", "policy_token_ids")},
            **{name: getattr(self, name) for name in ("backend", "concurrency", "seed")},
            **{name: getattr(self, name) for name in ("fault_rate", "max_turns")},
        }

    def finish(self, row: dict[str, Any]) -> dict[str, Any]:
        """The finished row with its provenance. Its task is in `verifier_metadata` already."""
        roles = ("policy", "user", "judge", "helper", "settings", "seed", "backend")
        described = self.describe()
        provenance = {
            "script_sha256": _script_sha256(row["verifier_metadata"]["script"]),
            "prompt_sha256": prompt_sha256(row),
            "helper_prompts": dict(PROMPT_VERSIONS),
            "record_seed": row["verifier_metadata"].get("seed", 0),
            **{name: described[name] for name in roles},
        }
        return row | {"provenance": provenance}

    def new_episode(self, row: dict[str, Any]) -> Episode:
        """The direct backend's episode."""
        roles = helper_roles(
            row,
            _chat(self.customer or self.helper),
            _chat(self.helper),
            _chat(self.judge or self.helper),
        )
        return new_episode(row, **self._episode_settings(), **roles)

    def new_policy(self, row: dict[str, Any]) -> Complete:
        """The direct backend's policy."""
        if self.policy:
            return LiteLLMChat(self.policy)
        note = json.loads(row["responses_create_params"]["metadata"]["extra_body"])["nemo_tau2"]

        async def answer(messages: list[dict[str, Any]], tools: Any) -> dict[str, Any]:
            return script(note, messages)

        return answer

    def environment(self, rows: list[dict[str, Any]], folder: Path) -> str:
        """The gym backend's environments: a NeMo Gym YAML that includes each the rows name."""
        names = sorted({ENVIRONMENTS[_agent(row)] for row in rows})
        if len(names) == 1:
            return names[0]
        path = folder / "environments.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump({"config_paths": names}), encoding="utf-8")
        return str(path)

    def overrides(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Settings of the servers that differ from the environments' own."""
        server: dict[str, Any] = self.settings.model_dump(mode="json", exclude_unset=True)
        for role, name, endpoint in (
            ("helper", "helper_model", self.helper),
            ("customer", "user_model", self.customer),
            ("judge", "judge_model", self.judge),
        ):
            if endpoint:
                server[f"{role}_model_server"] = {"type": "responses_api_models", "name": name}
                server[f"{role}_sampling"] = endpoint.sampling
        overrides: dict[str, Any] = {}
        for agent in {_agent(row) for row in rows}:
            if server:
                overrides[ENVIRONMENTS[agent]] = {"resources_servers": {"spec_service": server}}
            if self.max_turns:
                loop = {"dialogue_agent": {"max_turns": self.max_turns}}
                overrides[agent] = {"responses_api_agents": loop}
        return overrides

    def models(self) -> dict[str, Endpoint]:
        """{role of a launch: what answers} beside the policy."""
        given = {"user": self.customer, "judge": self.judge, "helper": self.helper}
        return {name: endpoint for name, endpoint in given.items() if endpoint}

    @property
    def script(self) -> str:
        """The script that the scripted endpoint plays."""
        return SCRIPT

    def _note(self, row: dict[str, Any]) -> dict[str, Any]:
        return record(row, self.seed, self.fault_rate, **self._episode_settings())

    def _episode_settings(self) -> dict[str, Any]:
        return {"options": self.settings.options, "rewards": self.settings.rewards}


def read_spec_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file that Agent Script environments can play.

    Raises:
        UserError: no such file, no row, or a line that is no such row.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--rows {path}: {getattr(error, 'strerror', None) or error}") from None
    rows: list[dict[str, Any]] = []
    groups: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"{path}, line {number}"
            rows.append(row := _checked(line, where))
            require_one_row(groups, row["verifier_metadata"], where)
    if not rows:
        raise UserError(f"--rows {path}: no row in it; make some with `nemo-tau2 spec rows`")
    return rows


def _checked(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
        agent, metadata = _agent(row), row["verifier_metadata"]
        params = row["responses_create_params"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        agent = metadata = params = None
    if not isinstance(params, dict) or not isinstance(params.get("input"), list):
        raise UserError(f"{where}: not a dataset row; make rows with `nemo-tau2 spec rows`")
    if agent not in ENVIRONMENTS:
        raise UserError(
            f"{where}: its agent is {agent!r}, not one of {', '.join(sorted(ENVIRONMENTS))}; "
            "τ² tasks are rolled out with --domain"
        )
    parse_row(metadata, where)
    return row


def read_settings(path: Path | None) -> SpecSettings:
    """The settings file, or the defaults. Raises UserError naming the key that is wrong."""
    if path is None:
        return SpecSettings()
    try:
        return SpecSettings.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except OSError as error:
        raise UserError(f"--settings {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"--settings {path}: not YAML ({str(error).splitlines()[0]})") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "file"
        raise UserError(
            f"--settings {path}: {place}: {first['msg'].removeprefix('Value error, ')} (docs/rollouts.md)"
        ) from None


def _chat(endpoint: Endpoint | None) -> Complete | None:
    return LiteLLMChat(endpoint) if endpoint else None


def _agent(row: dict[str, Any]) -> str | None:
    return (row.get("agent_ref") or {}).get("name") or row.get("task_source")


def _script_sha256(name: str) -> str:
    stamps = tuple(path.stat().st_mtime_ns for path in script_files(name))
    return _hash_of(name, stamps)


@lru_cache(maxsize=64)
def _hash_of(name: str, stamps: tuple[int, ...]) -> str:
    load_script(name)
    return hashlib.sha256(b"\0".join(p.read_bytes() for p in script_files(name))).hexdigest()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
