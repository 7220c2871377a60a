"""A small service desk, written out so that every number of a test can be worked out by hand."""

import asyncio
import json

from nemo_tau2.agentscript import apply_sidecar, compile
from nemo_tau2.simulation.factory import EPISODES
from nemo_tau2.simulation.policies import message
from nemo_tau2.simulation.scenario import Mode, parse_row

SCRIPT = """
config:
    agent_name: "Desk"
    description: "Helps with parcels"

variables:
    verified: mutable boolean = False
        description: "The caller is verified"

start_agent front:
    description: "Finds out what is wanted"
    reasoning:
        instructions: ->
            | Route the caller.
        actions:
            identity: @subagent.identity
                description: "Verify the caller"
            parcels: @utils.transition to @subagent.parcels
                description: "Parcels"
            refunds: @utils.transition to @subagent.refunds
                description: "Refunds"
                available when @variables.verified
            cellar: @utils.transition to @subagent.cellar
                description: "A room without a door"
            person: @utils.escalate
                description: "A person"

subagent identity:
    description: "Verifies"
    actions:
        Verify_Caller:
            description: "Checks a birth date"
            inputs:
                birth_date: string
                    description: "Date of birth"
                    is_required: True
            outputs:
                match: boolean
                    description: "Whether it fits"
            target: "flow://Verify_Caller"
    reasoning:
        instructions: ->
            | Ask for the birth date.
        actions:
            verify: @actions.Verify_Caller
                with birth_date = ...
                set @variables.verified = @outputs.match

subagent parcels:
    description: "Parcels"
    actions:
        Find_Parcel:
            description: "Finds a parcel"
            inputs:
                parcel_id: string
                    description: "Number of the parcel"
                    is_required: True
            outputs:
                place: string
                    description: "Where it is"
                owner: string
                    description: "Whose it is"
            target: "flow://Find_Parcel"
        Move_Parcel:
            description: "Sends a parcel elsewhere"
            inputs:
                parcel_id: string
                    description: "Number of the parcel"
                    is_required: True
                place: string
                    description: "Where to"
                    is_required: True
            outputs:
                moved: boolean
                    description: "Whether it moved"
            target: "flow://Move_Parcel"
    reasoning:
        instructions: ->
            | Find the parcel.
        actions:
            find: @actions.Find_Parcel
                with parcel_id = ...
            move: @actions.Move_Parcel
                with parcel_id = ...
                with place = ...
                available when @variables.verified
            back: @utils.transition to @subagent.front
                description: "Something else"

subagent refunds:
    description: "Refunds"
    reasoning:
        instructions: ->
            | Refund.
        actions:
            back: @utils.transition to @subagent.front
                description: "Something else"

subagent cellar:
    description: "Nothing to do here"
    reasoning:
        instructions: ->
            | Wait.
        actions:
            out: @utils.transition to @subagent.front
                description: "Out"
                available when @variables.verified
"""
FACTS = {"parcel_id": "P1", "birth_date": "1980-01-01"}
WHERE = {
    "number": 1,
    "text": "Where is my parcel?",
    "action": "Find_Parcel",
    "fields": ["place"],
    "arguments": {"parcel_id": "P1"},
}
FIND = ("find", {"parcel_id": "P1"})
VERIFY = ("verify", {"birth_date": "1980-01-01"})


class Says:
    """A model that gives its answers in order, the last one for ever, and counts the asking."""

    def __init__(self, *answers):
        self.answers, self.asked = answers, 0

    async def __call__(self, messages, tools):
        self.asked += 1
        return {"content": self.answers[min(self.asked, len(self.answers)) - 1]}


class Patient:
    """A customer who answers everything and never leaves."""

    async def reply(self, said):
        return "Hello." if said is None else "Please go on."


def row(mode="routed", questions=(WHERE,), **more):
    data = {
        "mode": mode,
        "script": "desk",
        "scenario_id": "s",
        "task_id": "desk/s",
        "domain": "desk",
        "group_id": "desk/s",
        "questions": list(questions),
        "customer": {"opening": "Hello.", "facts": FACTS},
        **more,
    }
    return parse_row(data)


def episode(mode="routed", sidecar=None, script=SCRIPT, row_=None, seed_it=True, **settings):
    """A seeded episode on the desk."""
    graph = apply_sidecar(compile(script), sidecar or {})
    made = EPISODES[Mode(mode)](graph, row_ or row(mode), **settings)
    if seed_it:
        asyncio.run(made.seed())
    return made


def calls(*made):
    """One generation of calls: names, or (name, arguments)."""
    pairs = [(one, {}) if isinstance(one, str) else one for one in made]
    return [
        {
            "type": "function_call",
            "call_id": f"c{index}",
            "name": name,
            "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
        }
        for index, (name, arguments) in enumerate(pairs)
    ]


def step(episode, *made):
    """One generation: words, or calls. What it led to."""
    said = len(made) == 1 and isinstance(made[0], str) and " " in made[0]
    return asyncio.run(episode.step(message(made[0]) if said else calls(*made)))


def results(seen):
    """The JSON of each tool result."""
    return [json.loads(item["output"]) for item in seen.items if "output" in item]


def names(episode):
    return [tool["name"] for tool in episode.tools()]


def verdict(episode, reason=None):
    return asyncio.run(episode.verify(reason))
