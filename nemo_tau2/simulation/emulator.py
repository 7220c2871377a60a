"""Who answers tool calls: a deterministic generator, or a frozen model held to schema and records."""

import json
from typing import Any, Protocol

from jsonschema import Draft202012Validator

from nemo_tau2.agentscript.graph import Action
from nemo_tau2.chat import Complete
from nemo_tau2.outcomes import StopReason
from nemo_tau2.rewards.tiers import deep_equal
from nemo_tau2.simulation.helpers import PROMPTS, Unusable, ask
from nemo_tau2.simulation.records import Records
from nemo_tau2.simulation.untrusted import read_json


class Emulator(Protocol):
    """Answers calls of one episode."""

    async def __call__(
        self, action: Action, arguments: dict[str, Any], records: Records
    ) -> dict[str, Any]:
        """Outputs of a call. Raises InfrastructureFailure with `tool_emulator_failed`."""


class ScriptedEmulator:
    """Outputs from schema and seed. No model."""

    async def __call__(
        self, action: Action, arguments: dict[str, Any], records: Records
    ) -> dict[str, Any]:
        return records.generate(action, arguments)


class LLMEmulator:
    """Outputs from a model, checked: JSON, the output schema and nothing else, settled values kept."""

    def __init__(self, complete: Complete):
        self.complete = complete

    async def __call__(
        self, action: Action, arguments: dict[str, Any], records: Records
    ) -> dict[str, Any]:
        settled = records.known(action, arguments)
        prompt = PROMPTS["emulator"].format(
            name=action.name,
            description=action.description or "",
            schema=json.dumps(action.output_schema),
            arguments=json.dumps(arguments, default=str),
            settled=json.dumps(settled, default=str),
        )
        validator = Draft202012Validator(action.output_schema)

        def read(text: str) -> dict[str, Any]:
            try:
                outputs = read_json(text[text.find("{") : text.rfind("}") + 1])
            except ValueError as error:
                raise Unusable(str(error)) from None
            problem = next(validator.iter_errors(outputs), None)
            if problem is not None:
                raise Unusable(f"breaks the output schema: {problem.message[:200]}")
            for name, value in settled.items():
                if not deep_equal(outputs[name], value):
                    raise Unusable(f"contradicts the settled value of {name}")
            return outputs

        messages = [{"role": "user", "content": prompt}]
        return await ask(self.complete, messages, read, StopReason.TOOL_EMULATOR_FAILED)
