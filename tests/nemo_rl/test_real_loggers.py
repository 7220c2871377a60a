"""The metrics of a validation in NeMo RL's own logger: TensorBoard, MLflow and W&B stores, read back."""

import pytest
from validations import AIRLINE, MIXED, MIXED_GRADED, RETAIL, validate

pytestmark = pytest.mark.nemo_rl

EXPECTED = MIXED_GRADED | {
    "accuracy": 2.5 / 7,
    f"{AIRLINE}/reward/mean": 1.5 / 3,
    f"{AIRLINE}/mask_sample/mean": 1 / 3,
    f"{RETAIL}/reward/mean": 1 / 4,
    f"{RETAIL}/num_turns/mean": 2.0,
    f"{RETAIL}/num_tool_errors/max": 1.0,
    f"{RETAIL}/num_user_messages/median": 3.0,
}
"""By hand from MIXED."""


@pytest.fixture
def logged(hooks, config, monkeypatch, tmp_path):
    """Logs MIXED's validation metrics at step 3 as the training loop does, to the backends named."""
    from nemo_rl.utils.logger import Logger

    metrics = validate(config, MIXED, monkeypatch)

    def log(*backends, **sections):
        off = {f"{name}_enabled": False for name in ("wandb", "swanlab", "tensorboard", "mlflow")}
        on = {f"{name}_enabled": True for name in backends}
        logger = Logger({"log_dir": str(tmp_path), "monitor_gpus": False} | off | on | sections)
        logger.log_metrics(metrics, 3, prefix="validation")
        return logger

    return log


def test_tensorboard_has_the_means_of_every_environment(logged, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logger = logged("tensorboard", tensorboard={})
    logger.loggers[0].writer.flush()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    for name, value in EXPECTED.items():
        (event,) = events.Scalars(f"validation/{name}")
        assert event.step == 3
        assert event.value == pytest.approx(value)


@pytest.fixture
def mlflow_store(tmp_path, monkeypatch):
    import mlflow

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("GIT_PYTHON_REFRESH", "quiet")
    before = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
    mlflow.set_tracking_uri(uri)
    yield {"experiment_name": "tau2", "run_name": "test", "tracking_uri": uri}
    mlflow.end_run()
    mlflow.set_tracking_uri(before)


def test_mlflow_has_the_means_of_every_environment_and_no_histogram(logged, mlflow_store):
    import mlflow

    logger = logged("mlflow", mlflow=mlflow_store)
    found = mlflow.get_run(logger.loggers[0].run_id).data.metrics
    for name, value in EXPECTED.items():
        assert found[f"validation/{name}"] == pytest.approx(value)
    assert not [name for name in found if name.endswith(("/histogram", "/full_result"))]


def test_without_the_hooks_mlflow_refuses_a_histogram(nemo_rl_root, mlflow_store, tmp_path):
    """When this fails, NeMo RL logs histograms by itself: `compat.numbers_for_mlflow` can go."""
    from nemo_rl.utils.logger import MLflowLogger
    from wandb import Histogram

    logger = MLflowLogger(mlflow_store, str(tmp_path))
    with pytest.raises(TypeError):
        logger.log_metrics({"a/mean": 1.0, "a/histogram": Histogram([1.0])}, 1)


def test_mlflow_gets_scalars_of_every_kind_and_summaries_of_lists(hooks, mlflow_store, tmp_path):
    import mlflow
    import numpy as np
    import torch
    from nemo_rl.utils.logger import MLflowLogger

    logger = MLflowLogger(mlflow_store, str(tmp_path))
    logger.log_metrics(
        {
            "tensor": torch.tensor([2.0]),
            "array": np.array(3),
            "scalar": np.float32(0.5),
            "flag": True,
            "nested": {"deep": 4, "text": "x"},
            "list": [1.0, 3.0],
            "vector": torch.ones(2),
            "text": "x",
            "nothing": None,
        },
        1,
        prefix="train",
    )
    found = mlflow.get_run(logger.run_id).data.metrics
    plain = {"tensor": 2.0, "array": 3.0, "scalar": 0.5, "flag": 1.0, "nested/deep": 4.0}
    summary = {"list/mean": 2.0, "list/p50": 2.0, "list/p90": 2.8, "list/max": 3.0}
    assert found == pytest.approx({f"train/{k}": v for k, v in (plain | summary).items()})


def test_wandb_offline_has_the_means_of_every_environment(logged, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    logger = logged("wandb", wandb={"project": "tau2", "name": "test"})
    # As the loop does with its training metrics: the step is over, and W&B's summary has it.
    logger.log_metrics({"loss": 0.5}, 3, prefix="train", step_finished=True)
    run = logger.wandb_logger.run
    summary = {name: run.summary.get(f"validation/{name}") for name in EXPECTED}
    run.finish()
    assert summary == pytest.approx(EXPECTED)
    assert list(tmp_path.rglob("offline-run-*/run-*.wandb"))
