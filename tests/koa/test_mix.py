"""`data mix`: D_train = Shuffle((+) r_e D_e); validation untouched (K7, eq. 4)."""

import json
from collections import Counter

import pytest

from tests.koa.conftest import lines, run


def row(case, split="train", prefix=(), agent="a", group=None):
    return {
        "responses_create_params": {"input": []},
        "agent_ref": {"name": agent},
        "verifier_metadata": {
            "domain": "d",
            "scenario_id": case,
            "split": split,
            "prefix": list(prefix),
            **({"group_id": group} if group else {}),
        },
    }


def write(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "a.jsonl", [row(f"a{i}") for i in range(30)])
    write(tmp_path / "b.jsonl", [row(f"b{i}") for i in range(10)])
    write(tmp_path / "av.jsonl", [row(f"v{i}", "validation") for i in range(5)])
    write(tmp_path / "bv.jsonl", [row(f"w{i}", "validation") for i in range(5)])
    return tmp_path


def mix(folder, text, output="out.jsonl"):
    (folder / "mix.yaml").write_text(text)
    return run("data", "mix", folder / "mix.yaml", "--output", folder / output)


TWO = """
environments:
  - {name: a, train: a.jsonl, validation: av.jsonl}
  - {name: b, train: b.jsonl, validation: bv.jsonl, repeat: 3}
"""


def test_rows_are_repeated_and_then_shuffled(folder):
    assert mix(folder, TWO) == 0
    cases = [r["verifier_metadata"]["scenario_id"] for r in lines(folder / "out.jsonl")]
    expected = Counter({f"a{i}": 1 for i in range(30)}) + Counter({f"b{i}": 3 for i in range(10)})
    assert Counter(cases) == expected
    # Shuffled after repeating: the copies of a row do not stand together, nor do the parts.
    assert not all(cases[i][0] == "a" for i in range(30))
    gaps = [b - a for c in expected for a, b in zip(*[iter(places(cases, c))] * 2, strict=False)]
    assert max(gaps) > 1


def places(cases, case):
    return [i for i, c in enumerate(cases) if c == case][:2]


def test_validation_is_joined_as_it_is(folder):
    mix(folder, TWO)
    expected = lines(folder / "av.jsonl") + lines(folder / "bv.jsonl")
    assert lines(folder / "out_validation.jsonl") == expected


def test_a_seed_gives_one_order(folder):
    orders = []
    for name, text in (("x", TWO), ("y", TWO), ("z", f"seed: 1\n{TWO}")):
        mix(folder, text, f"{name}.jsonl")
        orders.append(lines(folder / f"{name}.jsonl"))
    assert orders[0] == orders[1] != orders[2]


class TestBadInput:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("environments: []", "environments: Tuple should have at least 1"),
            ("environments: [{name: a, train: a.jsonl, repeats: 2}]", "repeats: Extra inputs"),
            ("environments: [{name: a, train: a.jsonl, repeat: 0}]", "greater than or equal to 1"),
            ("environments: [{name: a, train: a.jsonl, repeat: 1.5}]", "valid integer"),
            ("environments: [{name: a, train: no.jsonl}]", "no.jsonl: cannot be read"),
            ("[", "not YAML"),
            (
                "environments: [{name: a, train: a.jsonl}, {name: a, train: b.jsonl}]",
                "two environments are called 'a'",
            ),
            ("environments: [{name: a, train: av.jsonl}]", "a row of split 'validation'"),
            ("environments: [{name: a, train: a.jsonl, validation: b.jsonl}]", "split 'train'"),
            ("environments: [{name: p, train: p.jsonl, repeat: 2}]", "set it to 1"),
            (
                "environments: [{name: a, train: a.jsonl, validation: leak.jsonl}]",
                "split by scenario, never by row",
            ),
            (
                "environments: [{name: a, train: a.jsonl}, {name: t, train: twin.jsonl}]",
                "also another",
            ),
            ("environments: [{name: a, train: half.jsonl}]", "half.jsonl, line 2: not JSON"),
            ("environments: [{name: a, train: other.jsonl}]", "line 1: no dataset row"),
            ("environments: [{name: a, train: empty.jsonl}]", "no rows"),
        ],
    )
    def test_is_one_line_and_leaves_nothing(self, folder, capsys, text, words):
        write(folder / "p.jsonl", [row("p", prefix=[{"role": "user"}])])
        write(folder / "leak.jsonl", [row("a3", "validation")])
        write(folder / "twin.jsonl", [row("g1", group="g"), row("g2", group="g")])
        (folder / "half.jsonl").write_text(json.dumps(row("h")) + '\n{"a": ')
        (folder / "other.jsonl").write_text('{"a": 1}\n')
        (folder / "empty.jsonl").write_text("\n")
        assert mix(folder, text) == 2
        said = capsys.readouterr().err
        assert words in said and len(said.splitlines()) == 1
        assert not list(folder.glob("out*"))
