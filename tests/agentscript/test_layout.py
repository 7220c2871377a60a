"""Physical lines to logical lines: indentation, continuation, comments, templates."""

from nemo_tau2.agentscript.layout import Line, lay_out
from nemo_tau2.agentscript.source import Source


def lines(text: str) -> list[Line]:
    return lay_out(Source.of(text)).lines


def words(text: str) -> list[list[str]]:
    return [[token.text for token in line.tokens] for line in lines(text)]


def test_indentation_counts_a_space_as_one_and_a_tab_as_three() -> None:
    assert [line.indent for line in lines("a:\n\tb: 1\n   c: 2\n \td: 3\n")] == [0, 3, 3, 4]


def test_byte_order_mark_and_carriage_returns_disappear() -> None:
    assert words("\ufeffa: 1\r\nb: 2\r\n") == [["a", ":", "1"], ["b", ":", "2"]]


def test_blank_and_comment_lines_never_change_indentation() -> None:
    text = "a:\n\n# left\n        # right\n    b: 1\n"
    assert [line.indent for line in lines(text)] == [0, 4]
    assert lines(text)[1].comments == ("# left", "# right")


def test_a_comment_beside_code_stays_with_its_line() -> None:
    assert lines('a: "#no" # yes\n')[0].trailing == "# yes"


def test_a_backslash_joins_the_next_line() -> None:
    assert words("a: 1 + \\\n   2\n") == [["a", ":", "1", "+", "2"]]


def test_open_brackets_join_deeper_lines() -> None:
    assert words("a: [\n    1,\n\n    2\n]\nb: 1\n") == [
        ["a", ":", "[", "1", ",", "2", "]"],
        ["b", ":", "1"],
    ]


def test_an_unclosed_bracket_does_not_swallow_the_next_element() -> None:
    assert words("a: [1,\nb: 2\n") == [["a", ":", "[", "1", ","], ["b", ":", "2"]]
    assert words("if (x:\n    set y = 1\n")[1] == ["set", "y", "=", "1"]
    assert words("x: list[string = 1\n    label: 2\n")[1] == ["label", ":", "2"]


def test_a_template_takes_every_deeper_line() -> None:
    text = "a: | one\n     # two\n\n     three: 3\nb: 1\n"
    template, after = lines(text)
    assert template.tokens[-1].text == "| one\n     # two\n\n     three: 3"
    assert [token.text for token in after.tokens] == ["b", ":", "1"]


def test_a_comment_left_of_the_template_ends_it() -> None:
    assert lines("a:\n    | one\n    # note\n    b: 1\n")[2].comments == ("# note",)


def test_a_string_may_span_lines_that_read_like_text() -> None:
    layout = lay_out(Source.of('a: "one\n    two"\nb: 1\n'))
    assert [line.tokens[2].text for line in layout.lines] == ['"one\n    two"', "1"]
    assert [d.code for d in layout.diagnostics] == ["string-contains-newline"]


def test_a_missing_quote_does_not_swallow_the_code_below() -> None:
    assert words('a:\n    b: "one\n    c: "two"\n')[2] == ["c", ":", '"two"']
    assert words('a: "one\n    c: "two"\n')[1] == ["c", ":", '"two"']


def test_a_base64_bundle_is_decoded() -> None:
    import base64

    text = 'config:\n    agent_name: "An_Agent_Inside_A_Bundle"\n'
    assert Source.of(base64.b64encode(text.encode()).decode() + "\n").text == text
    assert Source.of("QUFB" * 20).text == "QUFB" * 20
