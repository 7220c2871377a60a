"""`nemo-tau2 spec rows`: dataset rows from an Agent Script."""

import asyncio
import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, validators

from nemo_tau2.errors import UserError

if TYPE_CHECKING:
    from nemo_tau2.simulation.rows import Row, Source
    from nemo_tau2.simulation.scenario import Persona, Scenario

Share = Annotated[float, Parameter(validator=validators.Number(gte=0, lt=1))]


def rows(
    script: str,
    *,
    output: Path,
    mode: Literal["flat", "routed", "sandbox", "pivot"] = "routed",
    scenarios: int | Path = 50,
    personas: int | Path = 1,
    prefixes: Annotated[tuple[int, ...], Parameter(consume_multiple=True)] = (0,),
    validation: Share = 0.1,
    transfers: Share = 0.1,
    seed: int = 0,
    despite_errors: bool = False,
    helper: Literal["scripted"] | None = None,
    helper_url: str | None = None,
    helper_model: str | None = None,
    api_key_file: Path | None = None,
) -> None:
    """Write dataset rows: scenarios of a script, by personas and depths. Needs no model.

    Scenarios are solved by a scripted player before their rows are written. Two files: OUTPUT for
    training, and OUTPUT's name with `_validation` for the scenarios held out. With a helper,
    OUTPUT's name with `.worded` holds what is finished, until all is.

    Parameters
    ----------
    script
        A built-in script's name, or an `.agent` file.
    output
        The JSONL file of the training rows.
    mode
        The environment the rows are for.
    scenarios
        How many scenarios to make, or a YAML list of your own.
    personas
        Personas per scenario, drawn from the built-in ones, or a YAML list of your own: all of it.
    prefixes
        Policy turns that are over when a row begins; 0 is the opening. Several may be given.
    validation
        Share of the scenarios held out.
    transfers
        Scenarios that belong with a person, as a share of the others; none where the script cannot
        hand over at once, and none in sandbox and pivot mode.
    seed
        Seed of scenarios, personas and records.
    despite_errors
        Use a script in which `spec check` finds errors, where it can be compiled all the same.
    helper
        `scripted`, the default: texts from the script's own words.
    helper_url
        Base URL of an endpoint that words openings and questions, /v1 included.
    helper_model
        The model's name there.
    api_key_file
        A file whose first line is the endpoint's key.
    """
    from nemo_tau2.datasets.files import write_lines
    from nemo_tau2.simulation.rows import Source, split_rows, validation_ids
    from nemo_tau2.simulation.scenario import Mode
    from nemo_tau2.simulation.scripts import built_in, load_script

    _check(mode, scenarios, prefixes)
    complete = _helper(helper, helper_url, helper_model, api_key_file)
    graph = load_script(script)
    if script not in built_in() and not despite_errors:
        _refuse_errors(Path(script))
    stored = script if script in built_in() else str(Path(script).resolve())
    source = Source(stored, graph, Mode(mode), seed)
    drawn = _personas(personas, source)
    finished = output.with_name(output.name + ".worded")
    made, found = asyncio.run(
        _build(source, scenarios, drawn, sorted(set(prefixes)), transfers, complete, finished)
    )
    if not found:
        raise UserError(
            f"{graph.name}: no row reaches a depth of {', '.join(map(str, sorted(set(prefixes))))}; "
            "add --prefixes 0"
        )
    held_out = validation_ids(made, validation, seed)
    parts: dict[str, list[Row]] = {"train": [], "validation": []}
    for row in split_rows(found, held_out):
        parts[row["verifier_metadata"]["split"]].append(row)
    files = {"train": output, "validation": output.with_stem(f"{output.stem}_validation")}
    kept = {s: found for s, found in parts.items() if found or s == "train"}
    write_lines({files[s]: (_line(row) for row in found) for s, found in kept.items()})
    finished.unlink(missing_ok=True)
    _report(made, parts, files, sorted(set(prefixes)))


async def _build(
    source: "Source",
    wanted: int | Path,
    personas: list["Persona"],
    depths: list[int],
    transfers: float,
    complete: Any,
    finished: Path,
) -> "tuple[list[Scenario], list[Row]]":
    from rich.progress import track

    from nemo_tau2.simulation import pivot_rows, scenarios, wording
    from nemo_tau2.simulation import rows as making
    from nemo_tau2.simulation.scenario import Mode

    held: dict[str, pivot_rows.Choice] = {}
    if source.mode is Mode.PIVOT:
        pairs = list(pivot_rows.pivot_scenarios(source, int(wanted)))
        made = [scenario for scenario, _ in pairs]
        held = {scenario.scenario_id: choice for scenario, choice in pairs}
    elif isinstance(wanted, Path):
        made = scenarios.load_scenarios(wanted, source.graph)
        made = [await _solved(source, s, wanted) for s in made]
    else:
        made = await making.solvable(source, wanted)
    ours = [p for p in made if not p.transfer]
    extra = []
    if not isinstance(wanted, Path) and source.mode in (Mode.FLAT, Mode.ROUTED):
        count = round(transfers * wanted) if scenarios.can_hand_over(source.graph) else 0
        extra = [scenarios.out_of_scope(source.graph, source.seed, n) for n in range(count)]
    versions = {}
    if complete is not None:
        styles = [random.Random(s.scenario_id).choice(personas) for s in ours]
        ours = await _worded(ours, styles, complete, finished)
        versions = {"scenario": wording.PROMPT_VERSION}
    found = []
    hidden = not sys.stderr.isatty()
    for scenario in track(ours, "Playing scenarios", disable=hidden):
        if scenario.scenario_id in held:
            choice = held[scenario.scenario_id]
            found += await pivot_rows.pivot_rows(source, scenario, choice, personas, depths)
        else:
            found += await making.rows_of(source, scenario, personas, depths)
    handed = [s for s in made if s.transfer] + extra
    if 0 in depths:
        found += [row for s in handed for row in making.transfer_rows(source, s, personas)]
    for row in found:
        row["verifier_metadata"]["prompt_versions"] |= versions
    return ours + handed, found


async def _solved(source: "Source", scenario: "Scenario", path: Path) -> "Scenario":
    """A user's scenario as it is, its facts included; refused where it cannot be solved."""
    from nemo_tau2.simulation.rows import fit
    from nemo_tau2.simulation.scenario import Mode
    from nemo_tau2.simulation.scenarios import has_way_out

    if scenario.transfer and not has_way_out(source.graph, source.mode):
        raise UserError(
            f"{path}: scenario {scenario.scenario_id!r} has `transfer: true`, but in mode "
            f"{source.mode.value} nothing in {source.graph.name} hands over: no policy could be right"
        )
    if scenario.transfer:
        return scenario
    fitted = await fit(source, scenario)
    lost = len(scenario.questions) - len(fitted.questions if fitted else ())
    if fitted is None or lost:
        raise UserError(
            f"{path}: scenario {scenario.scenario_id!r}: {lost} of its questions cannot be solved in "
            f"mode {source.mode.value}; add the facts its calls need, or take them out"
        )
    if source.mode is Mode.SANDBOX and scenario.expected_state is None:
        return scenario.model_copy(update={"expected_state": fitted.expected_state})
    return scenario


async def _worded(scenarios: list, personas: list, complete: Any, finished: Path) -> list:
    from rich.console import Console
    from rich.progress import Progress

    from nemo_tau2.outcomes import InfrastructureFailure
    from nemo_tau2.simulation.wording import reword_all

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("Wording scenarios", total=len(scenarios))
        try:
            finished.parent.mkdir(parents=True, exist_ok=True)
            return await reword_all(
                scenarios, personas, complete, finished, lambda: bar.advance(task)
            )
        except OSError as error:
            raise UserError(f"{finished}: {error.strerror}; give a writable --output") from None
        except InfrastructureFailure as failure:
            raise UserError(
                f"the helper gave no usable text ({failure}); run it again to go on, with another "
                "model perhaps, or leave --helper-url out"
            ) from None


def _refuse_errors(script: Path) -> None:
    from nemo_tau2.agentscript import lint, parse
    from nemo_tau2.agentscript.diagnostics import Severity

    errors = [found for found in lint(parse(script)) if found.severity is Severity.ERROR]
    if errors:
        raise UserError(
            f"{errors[0].format(str(script))}; {len(errors)} errors in all (nemo-tau2 spec check): "
            "mend them, or add --despite-errors"
        )


def _check(mode: str, scenarios: int | Path, prefixes: tuple[int, ...]) -> None:
    if isinstance(scenarios, int) and scenarios < 1:
        raise UserError(f"--scenarios {scenarios}: must be at least 1")
    if not prefixes or min(prefixes) < 0 or max(prefixes) > 100:
        raise UserError(f"--prefixes {' '.join(map(str, prefixes))}: give depths from 0 to 100")
    if mode == "sandbox" and set(prefixes) != {0}:
        raise UserError("--prefixes: a sandbox has no dialogue; leave it at 0")
    if mode == "pivot" and isinstance(scenarios, Path):
        raise UserError("--scenarios: in pivot mode the graph gives the requests; give a number")


def _personas(wanted: int | Path, source: "Source") -> "list[Persona]":
    from nemo_tau2.simulation.personas import built_in_personas, draw, load_personas
    from nemo_tau2.simulation.scenario import Mode, Persona

    if isinstance(wanted, Path):
        return load_personas(wanted)
    drawn = draw(list(built_in_personas()), wanted, f"{source.seed}/{source.graph.name}")
    return [Persona()] if source.mode is Mode.SANDBOX else drawn


def _helper(scripted: str | None, url: str | None, model: str | None, key_file: Path | None) -> Any:
    from nemo_tau2.chat import LiteLLMChat
    from nemo_tau2.endpoints import endpoint_of, read_key

    flags = (scripted, url, model, '{"temperature": 0.7}')
    endpoint = endpoint_of("helper", flags, read_key(key_file))
    return LiteLLMChat(endpoint) if endpoint else None


def _line(row: "Row") -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _report(made: list, parts: dict, files: dict[str, Path], depths: list[int]) -> None:
    for split, found in parts.items():
        if not found:
            continue
        count = len({r["verifier_metadata"]["scenario_id"] for r in found})
        print(f"{len(found)} rows of {count} scenarios in {files[split]}")
    generic = sum(all(q.action is None for q in s.questions) and not s.transfer for s in made)
    if generic:
        print(f"{generic} scenarios ask without data: no action could be grounded for them")
    found = [row["verifier_metadata"] for rows in parts.values() for row in rows]
    short = {depth: sum(m["task_id"].endswith(f"/{depth}") for m in found) for depth in depths}
    print("rows by depth: " + ", ".join(f"{depth}: {count}" for depth, count in short.items()))
