"""Gold end states: what a task's gold actions do to the world, computed once per task and process.

A group of rollouts of one task shares one `GoldPath`, so evaluation costs no replay.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from nemo_tau2.rewards.tiers import GoldAction
from nemo_tau2.tau2.domains import Domain
from nemo_tau2.tau2.engine import Task
from nemo_tau2.tau2.matching import matched_arguments
from nemo_tau2.tau2.worlds import Delta, Key, copy_plain


@dataclass(frozen=True)
class GoldPath:
    """The gold actions with their fate, the end state, and every value an entry takes on the way."""

    actions: tuple[GoldAction, ...]
    end: Delta
    waypoints: dict[Key, frozenset[str | None]] = field(default_factory=dict)

    def landed(self, before: Delta, after: Delta) -> bool:
        """True where every entry that changed between two states is on a value of the gold path."""
        changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        return all(
            key in self.waypoints and after.get(key) in self.waypoints[key] for key in changed
        )


def gold_path(domain: Domain, task: Task) -> GoldPath:
    """Plays the task's gold actions in a fresh world.

    Actions that fail are kept with `errored`, as upstream swallows their exceptions.
    """
    return _gold_path(domain.name, domain.fixes, _Hashed(domain, task))


class _Hashed:
    """Carries unhashable arguments past `lru_cache`, which keys on the identity of the task."""

    def __init__(self, domain: Domain, task: Task):
        self.domain, self.task = domain, task

    def __hash__(self) -> int:
        return id(self.task)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and self.task is other.task


@lru_cache(maxsize=4096)
def _gold_path(name: str, fixes: Any, hashed: _Hashed) -> GoldPath:
    domain, task = hashed.domain, hashed.task
    world = domain.new_world()
    world.initialise(task)
    state = world.delta()
    waypoints: dict[Key, set[str | None]] = {key: {text} for key, text in state.items()}
    actions = []
    for action in (task.evaluation_criteria and task.evaluation_criteria.actions) or []:
        if domain.fixes.gold_sync:
            errored = world.execute(action.requestor, action.name, action.arguments).error
        else:
            errored = not _call_unsynchronised(world, action)
        actions.append(_gold_action(domain, action, errored))
        if not errored and action.name in domain.sides[action.requestor].writes:
            state = world.delta()
            for key, text in state.items():
                waypoints.setdefault(key, set()).add(text)
    frozen = {key: frozenset(texts) for key, texts in waypoints.items()}
    return GoldPath(tuple(actions), world.delta(), frozen)


def _call_unsynchronised(world, action) -> bool:
    """Upstream's gold replay (`evaluator_env.py`): a bare tool call whose exception is swallowed."""
    try:
        world.environment.make_tool_call(
            action.name, requestor=action.requestor, **copy_plain(action.arguments)
        )
    except Exception:  # noqa: BLE001 upstream swallows whatever a tool raises
        return False
    return True


def _gold_action(domain: Domain, action, errored: bool) -> GoldAction:
    return GoldAction(
        actor=action.requestor,
        name=action.name,
        arguments=action.arguments,
        matched=matched_arguments(domain, action.requestor, action.name, action.arguments),
        compare=None if action.compare_args is None else tuple(action.compare_args),
        errored=errored,
    )
