"""Which spaces of a template belong to the script, and which to the author's text."""

import pytest

from nemo_tau2.agentscript.printer import template_source
from nemo_tau2.agentscript.templates import Interpolation, dedent_text

from .snippets import parsed


def text_of(source: str) -> str:
    return template_source(parsed(source).items[0].value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a: | one", "one"),
        ("a: |one", "one"),
        ("a:|one", "one"),
        ("a: |", ""),
        ("a: | one\n     two\n", "one\ntwo"),
        ("a: | one\n       two\n     three\n", "one\n  two\nthree"),
        ("a: | one\n  two\n", "one\ntwo"),
        ("a: |\n    one\n      two\n", "one\n  two"),
        ("a: |\n      one\n    two\n", "  one\ntwo"),
        ("a: |\n\n    one\n", "\none"),
        ("a: | one\n\n     two\n", "one\n\ntwo"),
        ("a: | one   \n", "one"),
        ("a: | {!@variables.x}, you\n     see {! @variables.y }\n",
         "{!@variables.x}, you\nsee {!@variables.y}"),
        ('a: | {!{"k": "}"}} end', '{!{"k": "}"}} end'),
        ("a: | price {5} and } and {\n", "price {5} and } and {"),
    ],
)  # fmt: skip
def test_the_text(source: str, text: str) -> None:
    assert text_of(source) == text


def test_interpolations_are_parsed() -> None:
    template = parsed("a: | Hi {!@variables.name}!").items[0].value
    assert template.parts[0] == "Hi "
    assert isinstance(template.parts[1], Interpolation)
    assert template.parts[2] == "!"


@pytest.mark.parametrize(
    ("quoted", "text"),
    [("one", "one"), ("  one", "one"), ("one\n    two\n      three", "one\ntwo\n  three"),
     ("\n\n  one", "\none"), ("one\n   \n  two  ", "one\n\ntwo")],
)  # fmt: skip
def test_quoted_texts_lose_their_common_indentation(quoted: str, text: str) -> None:
    assert dedent_text(quoted) == text
