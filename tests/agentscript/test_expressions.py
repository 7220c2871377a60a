"""Expressions: precedence, atoms, printing, and the bounds on depth."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_tau2.agentscript.expression_parser import MAX_DEPTH
from nemo_tau2.agentscript.expressions import (
    Binary,
    Call,
    Compare,
    DateTime,
    DictOf,
    Ellipsis,
    Expr,
    Index,
    ListOf,
    Literal,
    Member,
    Name,
    Namespace,
    Paren,
    Spread,
    Ternary,
    Unary,
    conjunction,
    negation,
    reference,
    to_source,
)
from nemo_tau2.agentscript.parser import parse, parse_expression

A, B, C = Name("a"), Name("b"), Name("c")


def variable(name: str) -> Member:
    return Member(Namespace("variables"), name)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a or b and c", Binary("or", A, Binary("and", B, C))),
        ("not a == b", Unary("not", Compare("==", A, B))),
        ("a == b + c", Compare("==", A, Binary("+", B, C))),
        ("a + b * c", Binary("+", A, Binary("*", B, C))),
        ("a - b - c", Binary("-", Binary("-", A, B), C)),
        ("-a.b", Unary("-", Member(A, "b"))),
        ("a is not None", Compare("is not", A, Literal(None))),
        ("a is b", Compare("is", A, B)),
        ("a if b else c", Ternary(A, B, C)),
        ("a if b else b if c else a", Ternary(A, B, Ternary(B, C, A))),
        ("(a or b) and c", Binary("and", Paren(Binary("or", A, B)), C)),
        ("a[0].b", Member(Index(A, Literal(0, "0")), "b")),
        ("len(a, *b)", Call(Name("len"), (A, Spread(B)))),
        ("[a, True, ...]", ListOf((A, Literal(True), Ellipsis()))),
        ('{a: 1, "b c": None}', DictOf(((A, Literal(1, "1")), (Literal("b c"), Literal(None))))),
        ("@variables.x", variable("x")),
        ("2025-09-04T12:01:59.123Z", DateTime("2025-09-04T12:01:59.123Z")),
        ("2025-09-04", DateTime("2025-09-04")),
        (".5", Literal(0.5, ".5")),
        ("1.", Literal(1.0, "1.")),
        (r'"a\"\n\t\\\0"', Literal('a"\n\t\\\0')),
    ],
)
def test_the_grammar(text: str, tree: Expr) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    "text", ["", "a +", "a b", "(a", "[a", "'a'", "a.", "@", "a if b", "5 % 2"]
)
def test_what_is_not_an_expression(text: str) -> None:
    with pytest.raises(ValueError, match="not an expression"):
        parse_expression(text)


def test_references() -> None:
    assert reference(parse_expression("(@outputs.id)")) == ("outputs", "id")
    assert reference(parse_expression("@outputs.id.x")) is None


def test_conditions_put_together_keep_their_meaning() -> None:
    either = parse_expression("a or b")
    assert to_source(conjunction([either, C])) == "(a or b) and c"
    assert to_source(negation(either)) == "not (a or b)"
    assert conjunction([]) is None
    assert conjunction([either]) is either


names = st.sampled_from(["a", "b", "total", "order_id"])
strings = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=8)
leaves = st.one_of(
    names.map(Name),
    names.map(variable),
    strings.map(Literal),
    st.booleans().map(Literal),
    st.just(Literal(None)),
    st.integers(0, 999).map(lambda n: Literal(n, str(n))),
)


def grow(inner: st.SearchStrategy) -> st.SearchStrategy:
    pairs = st.tuples(inner.map(Paren), inner.map(Paren))
    return st.one_of(
        pairs.map(lambda p: Binary("and", *p)),
        pairs.map(lambda p: Binary("+", *p)),
        pairs.map(lambda p: Compare("<=", *p)),
        pairs.map(lambda p: Compare("is not", *p)),
        inner.map(lambda e: Unary("not", Paren(e))),
        st.tuples(inner, inner, inner).map(lambda t: Ternary(*map(Paren, t))),
        st.lists(inner, max_size=3).map(lambda items: ListOf(tuple(items))),
        st.lists(inner, max_size=2).map(lambda items: Call(Name("max"), tuple(items))),
        st.dictionaries(names, inner, max_size=2).map(
            lambda d: DictOf(tuple((Name(k), v) for k, v in d.items()))
        ),
        inner.map(lambda e: Index(Paren(e), Literal(0, "0"))),
    )


@given(st.recursive(leaves, grow, max_leaves=12))
@settings(max_examples=200, deadline=None)
def test_printing_and_parsing_give_the_tree_back(tree: Expr) -> None:
    assert parse_expression(to_source(tree)) == tree


@pytest.mark.parametrize(
    "text", ["(" * 10**5, "1+" * 10**5 + "1", "not " * 10**5, "a" + ".b" * 10**5]
)
def test_depth_is_bounded(text: str) -> None:
    found = parse(f"a: {text}\nb: 1\n")
    assert [d.code for d in found.diagnostics] == ["nt-too-deep"]
    assert found.diagnostics[0].span[:2] == (1, 4)
    assert len(found.items) == 2


def test_depth_up_to_the_bound_is_fine() -> None:
    parse_expression("(" * (MAX_DEPTH - 1) + "a" + ")" * (MAX_DEPTH - 1))
