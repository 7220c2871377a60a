"""Chat templates: a tokenizer's through transformers, or a Jinja file of its own.

A Jinja file needs no transformers; token counts are then estimates on the safe side. Files run in
Jinja's sandbox, with the helpers that transformers gives templates.
"""

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from nemo_tau2.errors import UserError

CHARACTERS_PER_TOKEN = 2.5
"""For estimates; text and JSON have three to four characters a token, so this counts too many."""


class Template(Protocol):
    """Renders chats."""

    def render(
        self,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] | None,
        generation_prompt: bool = False,
    ) -> str:
        """The text of a chat. Raises UserError where the template refuses it."""

    def count(self, text: str) -> int:
        """Tokens of a text: exact, or too many."""


def load_template(name: str) -> Template:
    """A `.jinja` file, or else a tokenizer's name or folder.

    Raises UserError where it cannot be loaded.
    """
    if name.endswith((".jinja", ".jinja2", ".j2")):
        return JinjaTemplate(Path(name))
    return TokenizerTemplate(name)


class JinjaTemplate:
    """A template file."""

    def __init__(self, path: Path):
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        self.path = path
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda form: datetime.now(UTC).strftime(form)
        try:
            self._template = environment.from_string(path.read_text("utf-8"))
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
        except (TemplateError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: no Jinja template ({error})") from None

    def render(
        self,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] | None,
        generation_prompt: bool = False,
    ) -> str:
        from jinja2 import TemplateError

        try:
            return self._template.render(
                messages=list(messages),
                tools=list(tools) if tools else None,
                add_generation_prompt=generation_prompt,
                bos_token="",
                eos_token="",
            )
        except (TemplateError, TypeError) as error:
            raise UserError(f"{self.path}: refuses the conversation ({error})") from None

    def count(self, text: str) -> int:
        return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


class TokenizerTemplate:
    """The template of a tokenizer that transformers can load."""

    def __init__(self, name: str):
        try:
            from transformers import AutoTokenizer
        except ImportError:
            raise UserError(
                f"--model {name}: needs transformers (pip install transformers), or give a .jinja file"
            ) from None
        self.name = name
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(name)
        except (OSError, ValueError, KeyError) as error:
            line = str(error).strip().splitlines()[0]
            raise UserError(f"--model {name}: no tokenizer ({line})") from None
        if not self._tokenizer.chat_template:
            raise UserError(
                f"--model {name}: the tokenizer has no chat template; give a .jinja file"
            )

    def render(
        self,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] | None,
        generation_prompt: bool = False,
    ) -> str:
        from jinja2 import TemplateError

        try:
            return self._tokenizer.apply_chat_template(
                list(messages),
                tools=list(tools) if tools else None,
                add_generation_prompt=generation_prompt,
                tokenize=False,
            )
        except (TemplateError, TypeError) as error:
            raise UserError(f"{self.name}: refuses the conversation ({error})") from None

    def count(self, text: str) -> int:
        return len(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def _to_json(value: Any, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=options.get("ensure_ascii", False), indent=indent)


def _refuse(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)
