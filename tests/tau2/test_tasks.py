"""Task files: splits, filters, corrected tasks, and what happens to broken ones."""

import json

import pytest

from nemo_tau2.errors import UserError
from nemo_tau2.tau2.dataset import dataset_rows, select_tasks
from nemo_tau2.tau2.tasks import load_tasks, require_whole

SPLITS = {"airline": (30, 20, 50), "retail": (74, 40, 114), "telecom": (74, 40, 114)}


@pytest.mark.parametrize("domain", SPLITS)
def test_splits_have_their_published_sizes_and_train_and_test_make_base(domain):
    tasks = load_tasks(domain)
    ids = [[task.id for task in tasks.split(name)] for name in ("train", "test", "base")]
    assert tuple(map(len, ids)) == SPLITS[domain]
    assert sorted(ids[0] + ids[1]) == sorted(ids[2])


def test_filters_drop_what_they_say():
    _, kept = select_tasks("airline", "train", drop_null_solvable=True)
    assert len(kept) == 30 - 13
    _, kept = select_tasks("retail", "base", drop_gold_errors=True)
    assert len(kept) == 114 - 18


@pytest.mark.parametrize("domain", SPLITS)
def test_rows_never_show_gold_actions_to_the_policy(domain):
    tasks, chosen = select_tasks(domain, "train")
    for task, row in zip(chosen, dataset_rows(domain, "train", tasks, chosen), strict=True):
        shown = json.dumps(row)
        public = {tool["name"] for tool in row["responses_create_params"]["tools"]}
        for action in task.evaluation_criteria.actions or []:
            assert (
                action.action_id in public
                or len(action.action_id) < 4
                or action.action_id not in shown
            )
            long_values = [
                v for v in action.arguments.values() if isinstance(v, str) and len(v) > 8
            ]
            assert not any(value in json.dumps(row["verifier_metadata"]) for value in long_values)
        assert row["agent_ref"]["name"] == row["task_source"] == f"tau2_{domain}_agent"
        assert set(row["responses_create_params"]) == {"input", "tools"}


@pytest.mark.parametrize("domain, count, unlike", [("airline", 50, 27), ("retail", 114, 52)])
def test_corrected_tasks_load_from_a_checkout(shared_dir, domain, count, unlike):
    corrected = load_tasks(domain, str(shared_dir / "data" / "tau2_v1"))
    packaged = load_tasks(domain)
    assert len(corrected.tasks) == count and not corrected.broken
    assert corrected.sha256 != packaged.sha256

    def content(task):
        criteria = task.evaluation_criteria.model_dump(exclude={"reward_basis", "nl_assertions"})
        return task.user_scenario.model_dump(), criteria

    changed = sum(content(corrected.tasks[i]) != content(packaged.tasks[i]) for i in packaged.tasks)
    assert 0 < changed <= unlike


@pytest.mark.parametrize("domain", ["airline", "retail"])
def test_gold_replays_of_corrected_tasks_score_one_and_say_what_was_left_out(shared_dir, domain):
    from nemo_tau2.tau2.engine import RewardType
    from tests.tau2.playing import play_gold

    for task in load_tasks(domain, str(shared_dir / "data" / "tau2_v1")).split("base"):
        verdict = play_gold(domain, task)
        assert verdict["reward"] == 1.0
        criteria = task.evaluation_criteria
        judged = RewardType.NL_ASSERTION in criteria.reward_basis and criteria.nl_assertions
        assert verdict["reward_info"]["left_out"] == (["NL_ASSERTION"] if judged else [])


def write(folder, tasks, splits=None):
    (folder / "airline").mkdir()
    (folder / "airline" / "tasks.json").write_text(
        tasks if isinstance(tasks, str) else json.dumps(tasks)
    )
    (folder / "airline" / "split_tasks.json").write_text(json.dumps(splits or {"base": ["a"]}))
    return str(folder)


GOOD = {"id": "a", "user_scenario": {"instructions": "Hello"}}


class TestBadInput:
    def test_a_broken_task_is_named_and_the_rest_kept(self, tmp_path):
        tasks = load_tasks("airline", write(tmp_path, [GOOD, {"id": "b"}]))
        assert list(tasks.tasks) == ["a"] and list(tasks.broken) == ["b"]
        with pytest.raises(
            UserError, match=r"1 broken task.*task b: user_scenario: Field required"
        ):
            require_whole(tasks)

    @pytest.mark.parametrize(
        "extra, words",
        [
            (
                {
                    "initial_state": {
                        "initialization_actions": [
                            {"env_type": "assistant", "func_name": "nope", "arguments": {}}
                        ]
                    }
                },
                "nope",
            ),
            (
                {"initial_state": {"message_history": [{"role": "user", "content": "x"}]}},
                "message history",
            ),
        ],
    )
    def test_a_task_that_cannot_be_played_is_broken(self, tmp_path, extra, words):
        tasks = load_tasks("airline", write(tmp_path, [GOOD | extra]))
        assert words in tasks.broken["a"]

    def test_the_same_id_twice(self, tmp_path):
        assert "twice" in load_tasks("airline", write(tmp_path, [GOOD, GOOD])).broken["a"]

    @pytest.mark.parametrize("text", ["{", "3", '{"a": 1}', "[" * 100_000])
    def test_a_file_that_is_no_list_of_tasks(self, tmp_path, text):
        with pytest.raises(UserError, match=r"tasks\.json"):
            load_tasks("airline", write(tmp_path, text))

    def test_a_folder_without_tasks(self, tmp_path):
        with pytest.raises(UserError, match="data/tau2/domains folder"):
            load_tasks("airline", str(tmp_path))

    def test_unknown_names_say_what_there_is(self):
        with pytest.raises(UserError, match="use one of airline, retail, telecom"):
            load_tasks("banking")
        with pytest.raises(UserError, match="use one of base, test, train"):
            load_tasks("airline").split("dev")
        with pytest.raises(UserError, match="its ids look like 0"):
            load_tasks("airline").get("999")
