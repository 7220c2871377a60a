"""The recipes that ship: found, explained, copied."""

import pytest
import yaml

from nemo_tau2.cli.main import main
from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl.config import parse_estimator
from nemo_tau2.nemo_rl.recipes import FOLDER, copy, names, title

PUBLISHED = [name for name in names() if name != "smoke_qwen3_0.6b"]


def test_every_published_setting_has_one():
    assert {n for n in names() if "_lr_" in n} == {
        f"grpo_qwen3_8b_lr_{v}" for v in ("5e-7", "1e-6", "1.5e-6", "2e-6")
    }
    assert {n for n in names() if "_kl_" in n} == {
        f"grpo_qwen3_8b_kl_{v}" for v in ("0.01", "0.02", "0.05", "0.1")
    }
    assert {"grpo_qwen3_8b", "grpo_qwen3_8b_data_easy", "grpo_qwen3_8b_data_easy_medium"} <= set(
        names()
    )
    for model in ("qwen3.5_4b", "qwen3_30b_a3b"):
        kinds = ("mt_grpo_sparse", "mt_grpo_naive", "mt_grpo_calibrated", "gtpo_hybrid_calibrated")
        assert {f"{kind}_{model}" for kind in kinds} <= set(names())


@pytest.mark.parametrize("name", PUBLISHED)
def test_headers_say_what_is_published(name):
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    header = text.partition("defaults:")[0]
    assert title(name).startswith(("Blog", "Paper")) and "# Published:" in header
    if "ablation" not in title(name):
        assert "# Not published:" in header and "# Ours:" in header


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_estimator_blocks_are_sound(path):
    block = (yaml.safe_load(path.read_text(encoding="utf-8")).get("grpo") or {}).get(
        "adv_estimator"
    )
    if block:
        assert parse_estimator(block).ours


def test_copy_brings_the_bases_and_overwrites_nothing(tmp_path):
    files = copy("grpo_qwen3_8b_kl_0.1", tmp_path)
    assert [f.stem for f in files] == [
        "grpo_qwen3_8b_kl_0.1",
        "grpo_qwen3_8b_lr_1e-6",
        "grpo_qwen3_8b_data_easy",
        "grpo_qwen3_8b",
        "_tau2",
    ]
    with pytest.raises(UserError, match="exists"):
        copy("grpo_qwen3_8b", tmp_path)
    with pytest.raises(UserError, match="recipes list"):
        copy("../main", tmp_path)


def test_list_prints_one_line_each(capsys):
    with pytest.raises(SystemExit) as exited:
        main(["recipes", "list"])
    assert exited.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == names()


def test_rewards_of_the_sparse_recipes_are_all_zero():
    tiers = yaml.safe_load((FOLDER / "rewards_sparse.yaml").read_text(encoding="utf-8"))["tiers"]
    assert set(tiers.values()) == {0.0} and len(tiers) == 7
