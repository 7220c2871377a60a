"""The text of one script: decoding, line ends, and offsets turned into lines and columns.

Planner bundles store a script base64-encoded on one line (`genAiPlannerBundles/**/agentScript`);
`Source.of` recognises that. It is not a cache and reads no file: `read` does.
"""

import base64
import binascii
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from nemo_tau2.agentscript.diagnostics import Span
from nemo_tau2.errors import UserError

MAX_CHARACTERS = 64 * 1024 * 1024
"""Longest script accepted; a bound on memory, far above any real script."""

_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_FIRST_LINES_OF_A_SCRIPT = re.compile(r"(?m)^[ \t]*(?:[A-Za-z_]\w*(?: \w+)?[ \t]*:|#)")


@dataclass(slots=True)
class Source:
    """Normalised text (no BOM, LF line ends) and the offsets where its lines begin."""

    text: str
    path: str = "<script>"
    _starts: list[int] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, text: str, path: str = "<script>") -> "Source":
        """Normalises `text`; a one-line base64 bundle is decoded first."""
        if len(text) > MAX_CHARACTERS:
            raise UserError(f"{path}: longer than {MAX_CHARACTERS} characters; split the script")
        text = _decode_bundle(text).removeprefix("\ufeff")
        return cls(text.replace("\r\n", "\n"), path)

    def span(self, start: int, end: int) -> Span:
        """Returns the span of the characters `start` to `end` (exclusive)."""
        if not self._starts:
            self._starts = [0, *(m.end() for m in re.finditer("\n", self.text))]
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end) - 1
        return Span(
            first + 1, start - self._starts[first] + 1, last + 1, end - self._starts[last] + 1
        )


def read(source: str | Path) -> Source:
    """Reads a script from a path, or takes the text itself.

    A `Path` is always a file. A `str` is a file when it is one line that ends in `.agent`, and the
    text of a script otherwise.

    Raises:
        UserError: the file is missing, unreadable or not UTF-8.
    """
    is_path = isinstance(source, Path) or ("\n" not in source and source.endswith(".agent"))
    if not is_path:
        return Source.of(source)
    path = Path(source)
    try:
        return Source.of(path.read_bytes().decode("utf-8"), str(source))
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: byte {error.start} is not UTF-8; save the script as UTF-8"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None


def _decode_bundle(text: str) -> str:
    """Returns the script inside a one-line base64 bundle, or `text` itself."""
    candidate = text.strip()
    if len(candidate) % 4 or not _BASE64.fullmatch(candidate):
        return text
    try:
        decoded = base64.b64decode(candidate, validate=True).decode("utf-8-sig")
    except (binascii.Error, UnicodeDecodeError):
        return text
    return decoded if _FIRST_LINES_OF_A_SCRIPT.search(decoded) else text
