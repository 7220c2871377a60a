"""Episodes as the benches play them: gold, one call per turn, in process."""

from nemo_tau2.chat_items import output_items
from nemo_tau2.tau2.domains import Domain
from nemo_tau2.tau2.engine import Task
from nemo_tau2.tau2.episode import Tau2Episode
from nemo_tau2.tau2.scripted_policy import ScriptedPolicy
from nemo_tau2.tau2.users.scripted import ScriptedUser


def gold_policy(domain: Domain, task: Task) -> ScriptedPolicy:
    """The scripted policy without faults and without parallel calls, which stock τ² cannot take."""
    return ScriptedPolicy(domain, task, fault_rate=0.0, parallel_rate=0.0)


async def play(domain: Domain, task: Task) -> float:
    """A whole gold episode, verification and tiers included; its reward."""
    episode, policy = Tau2Episode(domain, task, ScriptedUser(task)), gold_policy(domain, task)
    seen, position = await episode.seed(), 0
    while not seen.done:
        seen = await episode.step(output_items(policy.turn(position)))
        position += 1
    return (await episode.verify())["reward"]


async def play_calls(domain: Domain, task: Task) -> Tau2Episode:
    """A gold episode stopped before its last turn: a world with everything touched."""
    episode, policy = Tau2Episode(domain, task, ScriptedUser(task)), gold_policy(domain, task)
    await episode.seed()
    for position in range(len(policy.plan) - 1):
        await episode.step(output_items(policy.turn(position)))
    return episode
