"""Each rule of the grammar, on a snippet."""

import pytest

from nemo_tau2.agentscript.expressions import Ellipsis, Literal, Name, reference
from nemo_tau2.agentscript.parser import MAX_BLOCKS, MAX_BRANCHES
from nemo_tau2.agentscript.syntax import (
    Assignment,
    AvailableWhen,
    Bare,
    Clauses,
    Collect,
    Element,
    If,
    Run,
    SequenceItem,
    Set,
    TemplateLine,
    To,
    Transition,
    VariableDeclaration,
    With,
    walk,
)

from .snippets import parsed, problems


def test_keys() -> None:
    script = parsed('a: 1\nsubagent Orders: 2\n"In.Email": 3\ntopic "A b": 4\n')
    keys = [element.key for element in script.items]
    assert [(k.word, k.name) for k in keys] == [
        ("a", None), ("subagent", "Orders"), ("In.Email", None), ("topic", "A b"),
    ]  # fmt: skip


def test_values() -> None:
    items = parsed(
        """\
        a: "text"
        b: mutable list[string] = []
        c: string = "x"
        d: @utils.transition to @subagent.x, with y = ...
        e:
        f: linked string
        """
    ).items
    assert items[0].value == Literal("text")
    assert isinstance(items[1].value, VariableDeclaration)
    assert items[1].value.modifier == "mutable"
    assert isinstance(items[2].value, Assignment)
    assert isinstance(items[3].value, Clauses)
    assert isinstance(items[3].value.clauses[0], To)
    assert items[3].value.clauses[1].value == Ellipsis()
    assert items[4].value is None
    assert items[5].value.default is None


def test_a_to_clause_may_stand_on_the_next_line() -> None:
    same = parsed("go: @utils.transition to @subagent.x\n").items
    assert parsed("go: @utils.transition\n    to @subagent.x\n").items == same


def test_a_value_may_stand_alone_below_its_key() -> None:
    assert parsed('a:\n    "text"\n').items[0].body == [Bare(Literal("text"))]


def test_statements() -> None:
    body = (
        parsed(
            """\
        p: ->
            | Hello
            run @actions.a
                with b = 1, c = @variables.d
                set @variables.e = @outputs.f
            set @variables.g = 1 + 2
            transition to @subagent.h
            collect @variables.i
                message: "m"
        """
        )
        .items[0]
        .body
    )
    assert [type(s) for s in body] == [TemplateLine, Run, Set, Transition, Collect]
    run = body[1]
    assert isinstance(run.body[0], With)
    assert [a.name for a in run.body[0].arguments] == ["b", "c"]
    assert reference(body[4].target) == ("variables", "i")


def test_branches() -> None:
    (branching,) = (
        parsed(
            """\
        p: ->
            if a:
                run @actions.x
            else if b:
                run @actions.y
            # why
            else:
                run @actions.z
        """
        )
        .items[0]
        .body
    )
    assert isinstance(branching, If)
    assert [b.condition for b in branching.branches] == [Name("a"), Name("b"), None]
    assert branching.branches[2].comments == ("# why",)


def test_a_tool() -> None:
    tool = parsed(
        """\
        find: @actions.Find
            description: "d"
            with q = ...
            available when @variables.ok
            set @variables.x = @outputs.y
        """
    ).items[0]
    assert [type(i) for i in tool.body] == [Element, With, AvailableWhen, Set]


def test_words_that_begin_statements_may_be_keys_where_that_is_clear() -> None:
    assert parsed("with: 1\navailable: 2\n").items[0].key.word == "with"


def test_sequences() -> None:
    items = parsed('a:\n    - "x"\n    - k: 1\n      l: 2\n    -\n      m: 3\n').items[0].body
    assert all(isinstance(i, SequenceItem) for i in items)
    assert items[1].value.key.word == "k"
    assert [e.key.word for e in items[1].value.body] == ["l"]
    assert [e.key.word for e in items[2].body] == ["m"]


def test_a_line_between_two_levels_belongs_to_the_outer_one() -> None:
    from nemo_tau2.agentscript import parse

    script = parse("a:\n        b: 1\n    c: 2\n")
    assert [e.key.word for e in script.items] == ["a", "c"]
    assert [d.code for d in script.diagnostics] == ["nt-uneven-indent"]
    assert script.ok


def test_a_deeper_line_belongs_to_the_element_above_even_with_a_value() -> None:
    assert parsed("a: 1\n    b: 2\n").items[0].body[0].key.word == "b"


def test_comments_are_kept() -> None:
    script = parsed("# one\na: 1 # two\n# three\n")
    assert (script.items[0].comments, script.items[0].trailing) == (("# one",), "# two")
    assert script.comments == ("# three",)


def test_blocks_and_branches_are_bounded() -> None:
    deep = "\n".join(" " * i + "a:" for i in range(3000))
    assert [p.split()[1] for p in problems(deep)] == ["nt-too-deep"]
    many = "p: ->\n    if a:\n        run @actions.b\n"
    many += "    else if a:\n        run @actions.b\n" * (MAX_BRANCHES + 1)
    assert [p.split()[1] for p in problems(many)] == ["nt-too-deep"]
    fine = "\n".join(" " * i + "a:" for i in range(MAX_BLOCKS))
    assert len(list(walk(parsed(fine).items))) == MAX_BLOCKS


@pytest.mark.parametrize("text", ["", "\n", "# only\n", "\ufeff", "\r\n\r\n"])
def test_an_empty_script_is_a_script(text: str) -> None:
    assert parsed(text).items == []
