"""Supervised examples from rollouts (K34, K35): what verified sessions said and called, turn by turn.

A session is kept when it is solved, unmasked and every call of it executed. It gives one example per
policy turn: the dialogue before it is the prompt, the turn the target, and the loss is on the target
alone. Sessions are split by their case before examples are made, so that no case is on both sides.

Prompt and target are pieces of text whose join is what the chat template makes of the dialogue up to
and with the turn. Templates that rewrite history (they drop earlier thoughts, say) render a prefix
otherwise than the whole conversation; an example says so in `matches_whole`.
"""

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from nemo_tau2.chat_items import chat_messages, chat_tools
from nemo_tau2.datasets.chat_template import Template
from nemo_tau2.datasets.files import case_of
from nemo_tau2.errors import UserError

Item = dict[str, Any]
Row = dict[str, Any]


@dataclass
class Kept:
    """What became of the sessions and examples, for the report."""

    sessions: Counter = field(default_factory=Counter)
    examples: Counter = field(default_factory=Counter)


def unusable(row: Row, min_reward: float = 1.0) -> str | None:
    """Why a session is not learnt from; None where it is."""
    if row.get("mask_sample"):
        return "masked"
    if row.get("reward") is None or row["reward"] < min_reward:
        return "not solved"
    if row.get("num_tool_errors"):
        return "a call failed"
    output = (row.get("response") or {}).get("output")
    if not output or not row.get("turn_output_indices"):
        return "no trajectory"
    if all((item.get("role") != "user") for item in [*_input(row), *output]):
        return "no opening"
    return None


def split_cases(rows: Iterable[Row], share: float, seed: int) -> dict[tuple[str, str, str], str]:
    """Case → train or validation; at least one of each where there are two and the share is not 0."""
    cases = sorted({case_in(row) for row in rows})
    count = round(share * len(cases))
    if share > 0 and len(cases) > 1:
        count = min(max(count, 1), len(cases) - 1)
    held_out = set(random.Random(f"{seed}/sft").sample(cases, count))
    return {case: "validation" if case in held_out else "train" for case in cases}


def examples(row: Row, template: Template, max_tokens: int, kept: Kept) -> Iterator[Row]:
    """One example per policy turn of a session; those with too long a prompt and target are left out.

    Raises:
        UserError: the visible tools of a turn are not known, or the template refuses the dialogue.
    """
    start_of_output = len(_input(row))
    items = [*_input(row), *row["response"]["output"]]
    whole_text: dict[str, str] = {}
    before = start_of_output
    for turn, end in enumerate(row["turn_output_indices"]):
        end += start_of_output
        start = _start(items, before, end)
        before = end + 1
        tools = chat_tools(tools_at(row, turn))
        key = json.dumps(tools, sort_keys=True)
        if key not in whole_text:
            whole_text[key] = template.render(_messages(items), tools)
        prompt, target, exact = pieces(
            template, _messages(items[:start]), items[start:before], tools
        )
        length = template.count(prompt) + template.count(target)
        if length > max_tokens:
            kept.examples["too long"] += 1
            continue
        matches = exact and whole_text[key].startswith((prompt + target).rstrip())
        kept.examples["rendered as in the whole" if matches else "history rewritten"] += 1
        yield {
            "prompt": prompt,
            "completion": target,
            "messages": _messages(items[:before]),
            "target_messages": 1,
            "tools": tools,
            "tokens": length,
            "matches_whole": matches,
            "session": {key: row.get(key) for key in ("domain", "task_id", "group_id", "trial")},
            "turn": turn,
        }


def pieces(
    template: Template,
    history: Sequence[Item],
    target_items: Sequence[Item],
    tools: Sequence[Item] | None,
) -> tuple[str, str, bool]:
    """(prompt, target, exact): the prompt as it is at inference, and what follows it.

    `exact` is False where the template renders the finished turn otherwise than it began it (it
    opens a thought that the history does not have, say): the target then starts where both agree.
    """
    full = template.render([*history, *_messages(target_items)], tools)
    prompt = template.render(history, tools, generation_prompt=True)
    if full.startswith(prompt):
        return prompt, full[len(prompt) :], True
    agreed = 0
    for ours, theirs in zip(prompt, full, strict=False):
        if ours != theirs:
            break
        agreed += 1
    return full[:agreed], full[agreed:], False


def tools_at(row: Row, turn: int) -> Sequence[Item] | None:
    """The tools that were visible at a policy turn: `tool_changes` of the row, else its own tools."""
    tools = (row.get("responses_create_params") or {}).get("tools")
    changes = row.get("tool_changes")
    if changes is None:
        if (row.get("verifier_metadata") or {}).get("mode") == "routed":
            raise UserError(
                f"{row.get('task_id')}: the row does not say which tools were visible (tool_changes); "
                "roll it out again"
            )
        return tools
    for change in changes:
        if change["turn"] <= turn:
            tools = change["tools"]
    return tools


def _input(row: Row) -> list[Item]:
    given = (row.get("responses_create_params") or {}).get("input") or []
    return (
        [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
    )


def case_in(row: Row) -> tuple[str, str, str]:
    """What a session is a session of."""
    return case_of(row, {**row, **(row.get("verifier_metadata") or {})})


def _start(items: Sequence[Item], first: int, end: int) -> int:
    """Where the generation that ends at `end` begins: the policy's items before it without a gap."""
    start = end
    while start > first and _is_policy(items[start - 1]):
        start -= 1
    return start


def _is_policy(item: Item) -> bool:
    kind = item.get("type", "message")
    return kind in ("function_call", "reasoning") or item.get("role") == "assistant"


def _messages(items: Sequence[Item]) -> list[Item]:
    """Chat messages, arguments as objects (what templates iterate over)."""
    messages = chat_messages([item for item in items if item.get("type") != "reasoning"])
    for message in messages:
        for call in message.get("tool_calls") or []:
            arguments = call["function"]["arguments"]
            if isinstance(arguments, str):
                call["function"]["arguments"] = json.loads(arguments or "{}")
    return messages
