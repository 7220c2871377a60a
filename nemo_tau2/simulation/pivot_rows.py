"""Pivot rows: the customer asks for something whose tool has been taken away (K29, K30, K33).

The graph says what is left: tools with an effect beside the held one (the temptation to do something
instead), and the read-only tool with the nearest name (the decoy). At turn 0 the request is the opening;
in mid-conversation it follows a dialogue about other things, which is as many policy turns long as the
depth says. The held tool may read or write. Rows that teach nothing are found by their rollouts
(`datasets.selection`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from nemo_tau2.agentscript.graph import Action, Tool, ToolKind, WorkflowGraph
from nemo_tau2.episodes import Item, message_item, output_text
from nemo_tau2.errors import UserError
from nemo_tau2.simulation.episode import as_function, flat_tools
from nemo_tau2.simulation.factory import new_episode
from nemo_tau2.simulation.policies import Oracle
from nemo_tau2.simulation.prefixes import play_prefixes
from nemo_tau2.simulation.records import snake, writes
from nemo_tau2.simulation.rows import Row, Source, base_row
from nemo_tau2.simulation.scenario import Customer, Mode, Persona, Scenario
from nemo_tau2.simulation.scenarios import Groundable, facts_for, question, seed_of

MAX_SIBLINGS = 4
"""Tools with an effect that a row keeps."""
MAX_READS = 6
"""Read-only tools that a row keeps, the decoy among them."""
LEAD_INS = 12
"""Dialogues tried per depth."""
_GREETING = "Hello, what can I do for you?"


@dataclass(frozen=True)
class Choice:
    """One held tool and what stays.

    Attributes:
        held: the name of the tool that is withheld.
        decoy: the read-only tool with the nearest name.
        siblings: tools with an effect, those of the held tool's node first.
        offered: all names of the row, the held one left out, in the order of the script.
    """

    held: str
    decoy: str
    siblings: tuple[str, ...]
    offered: tuple[str, ...]


def choices(graph: WorkflowGraph) -> list[Choice]:
    """Every tool that can be withheld: a decoy and a sibling must be there, in the script's order."""
    flat = flat_tools(graph)
    actions: dict[str, tuple[str, Tool, Action]] = {}
    for name, (node, tool) in flat.items():
        action = node.actions.get(tool.target)
        if action is not None and tool.kind is ToolKind.ACTION:
            actions[name] = (node.name, tool, action)
    return [
        choice
        for name, (_, tool, _) in actions.items()
        if tool.inputs and (choice := _choice(name, actions)) is not None
    ]


def _choice(held: str, actions: dict[str, tuple[str, Tool, Action]]) -> Choice | None:
    home = actions[held][0]
    others = sorted(
        (n for n in actions if n != held and actions[n][2].name != actions[held][2].name),
        key=lambda n: actions[n][0] != home,
    )
    acting = tuple(n for n in others if writes(actions[n][2]))[:MAX_SIBLINGS]
    reading = [n for n in others if not writes(actions[n][2])]
    if not acting or not reading:
        return None
    decoy = max(reading, key=lambda n: nearness(held, actions[held][2], n, actions[n][2]))
    kept = {*acting, decoy, *[n for n in reading if n != decoy][: MAX_READS - 1]}
    return Choice(held, decoy, acting, tuple(n for n in actions if n in kept))


def nearness(held: str, held_action: Action, name: str, action: Action) -> float:
    """How near two tools' names are, in [0, 1]: the better of the tools' and the actions' names."""
    pairs = ((held, name), (held_action.name, action.name))
    return max(SequenceMatcher(None, snake(a), snake(b)).ratio() for a, b in pairs)


def pivot_scenarios(source: Source, count: int) -> Iterator[tuple[Scenario, Choice]]:
    """Requests for held tools, each tool in turn. Raises UserError where no tool can be withheld."""
    available = choices(source.graph)
    if not available:
        raise UserError(
            f"{source.graph.name}: no tool can be withheld: a pivot needs a tool with arguments, "
            "another with an effect and one that only reads"
        )
    for number in range(count):
        choice = available[number % len(available)]
        scenario_id = f"p{number:04d}"
        target = _target(source.graph, choice.held)
        facts = facts_for(source.graph, [target.tool], seed_of(source.seed, scenario_id))
        asked = question(1, target, facts).model_copy(update={"arguments": facts})
        customer = Customer(opening=f"Hello. {asked.text}", facts=facts)
        yield (
            Scenario(scenario_id=scenario_id, questions=(asked,), customer=customer),
            choice,
        )


async def pivot_rows(
    source: Source,
    scenario: Scenario,
    choice: Choice,
    personas: Sequence[Persona],
    depths: Sequence[int],
) -> list[Row]:
    """The rows of a request: one per persona and depth for which a dialogue is found."""
    flat = flat_tools(source.graph)
    offered = [as_function(flat[name][1], name) for name in choice.offered]
    rows = []
    for persona in personas:
        for depth in depths:
            prefix = await _lead_in(source, scenario, choice, persona, offered, depth)
            if prefix is None:
                continue
            variant = f"{persona.name.lower()}/{depth}"
            more = {"prefix": prefix, "withheld_tool": choice.held}
            rows.append(base_row(source, scenario, persona, variant, offered, **more))
    return rows


async def _lead_in(
    source: Source,
    scenario: Scenario,
    choice: Choice,
    persona: Persona,
    offered: Sequence[Item],
    depth: int,
) -> list[Item] | None:
    """A dialogue of `depth` policy turns that ends in the request; empty for depth 0.

    It reads only: `depth - 1` calls, and an answer. None where there is no such dialogue.
    """
    if depth == 0:
        return []
    request = message_item("user", _request(scenario))
    if depth == 1:
        return [message_item("user", "Hello."), message_item("assistant", _GREETING), request]
    reads = [n for n in choice.offered if n not in choice.siblings]
    flat_source = Source(source.script, source.graph, Mode.FLAT, source.seed)
    for attempt in range(LEAD_INS):
        if len(reads) < depth - 1:
            return None
        start = attempt % len(reads)
        names = (reads[start:] + reads[:start])[: depth - 1]
        targets = [_target(source.graph, name) for name in names]
        seed = seed_of(source.seed, scenario.scenario_id)
        facts = facts_for(source.graph, [t.tool for t in targets], seed)
        asked = [question(i, t, facts) for i, t in enumerate(targets, start=1)]
        opening = " ".join(q.text for q in asked)
        about = scenario.model_copy(
            update={
                "questions": tuple(asked),
                "customer": Customer(opening=f"Hello. {opening}", facts=facts),
            }
        )
        items = await _answered(flat_source, about, persona, offered, depth)
        if items is not None:
            return [*items, request]
    return None


async def _answered(
    source: Source, about: Scenario, persona: Persona, offered: Sequence[Item], depth: int
) -> list[Item] | None:
    """The dialogue up to the answer, which must be policy turn `depth` > 1; None if it is another."""
    episode = new_episode(base_row(source, about, persona, "", offered))
    oracle = Oracle()
    prefixes = await play_prefixes(episode, oracle, [depth - 1])
    if depth - 1 not in prefixes:
        return None
    if any(call.is_write or call.refusal is not None for call in episode.session.calls):
        return None
    items = list(prefixes[depth - 1])
    said = output_text(oracle(episode, episode.tools()))
    if not said:
        return None
    closing = said.replace("Goodbye!", "Is there anything else?")
    return [*items, message_item("assistant", closing)]


def _request(scenario: Scenario) -> str:
    facts = ", ".join(f"{name}: {value}" for name, value in scenario.customer.facts.items())
    return f"There is something else. {scenario.questions[0].text} {facts}".strip()


def _target(graph: WorkflowGraph, name: str) -> Groundable:
    node, tool = flat_tools(graph)[name]
    return Groundable(node.actions[tool.target], tool, node)
