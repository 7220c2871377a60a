"""What the gym backend tells NeMo Gym."""

import json

from nemo_tau2.chat import Endpoint
from nemo_tau2.rollouts.plan import RolloutPlan
from nemo_tau2.rollouts.through_gym import _sampled

ROW = {"responses_create_params": {"input": [], "tools": []}}


def plan(**changes):
    flags = {
        "domain": "airline", "split": "train", "limit": None, "group_size": 1, "policy_token_ids": False,
        "backend": "gym", "concurrency": 1, "seed": 0, "fault_rate": 0.0, "max_turns": None,
        "rewards": "calibrated", "tasks_dir": None, "task_ids": (), "api_key_file": None,
        "policy": ("scripted", None, None, None), "user": (None, None, None, None),
        "judge": (None, None, None, None),
    }  # fmt: skip
    return RolloutPlan.from_flags(**flags | changes)


def test_sampling_parameters_take_their_responses_names_and_the_rest_travels_beside():
    sampling = {"temperature": 0.7, "max_tokens": 64, "top_k": 20}
    params = _sampled(ROW, Endpoint(url="http://x", model="m", sampling=sampling))[
        "responses_create_params"
    ]
    assert (params["temperature"], params["max_output_tokens"]) == (0.7, 64)
    assert json.loads(params["metadata"]["extra_body"]) == {"top_k": 20}
    assert "max_tokens" not in params and "top_k" not in params


def test_a_scripted_policy_changes_no_row():
    assert _sampled(ROW, None) is ROW


def test_a_model_user_and_a_judge_are_referred_to_by_name():
    served = (None, "http://x/v1", "m", '{"temperature": 0.0}')
    overrides = plan(user=served, judge=served, max_turns=40).overrides([])
    server = overrides["tau2_airline"]["resources_servers"]["tau2_bench"]
    assert server["user"] == "llm" and server["user_model_server"]["name"] == "user_model"
    assert server["judge_model_server"]["name"] == "judge_model"
    agent = overrides["tau2_airline_agent"]["responses_api_agents"]["dialogue_agent"]
    assert agent == {"max_turns": 40}


def test_each_domain_of_all_has_its_agent():
    assert set(plan(domain="all", max_turns=3).overrides([])) == {
        "tau2_all", "tau2_airline_agent", "tau2_retail_agent", "tau2_telecom_agent",
    }  # fmt: skip
