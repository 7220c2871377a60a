"""Labels made from names as the official compiler makes them, and sets of names."""

import re

_BOUNDARIES = (
    (re.compile(r"([a-z])([A-Z])"), r"\1 \2"),
    (re.compile(r"([a-zA-Z])(\d)"), r"\1 \2"),
    (re.compile(r"(\d)([a-zA-Z])"), r"\1 \2"),
)
_WORD_START = re.compile(r"\b\w", re.ASCII)


def title_case(name: str) -> str:
    """`order_id2` and `OrderId2` as `Order Id 2`."""
    spaced = name.replace("_", " ")
    for pattern, replacement in _BOUNDARIES:
        spaced = pattern.sub(replacement, spaced)
    return _WORD_START.sub(lambda match: match[0].upper(), spaced)


def capitalised(name: str) -> str:
    """`human_profile_id` as `Human_Profile_Id`."""
    return re.sub(r"(?:^|_)\w", lambda match: match[0].upper(), name, flags=re.ASCII)


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set; for tables of names."""
    return frozenset(text.split())
