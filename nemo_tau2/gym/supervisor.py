"""The process that holds one launch of NeMo Gym servers, and takes them down with its parent.

Reads the launch as one JSON line on standard input, starts Ray and NeMo Gym's own `RunHelper`, writes
READY or FAILED to the descriptor in its argument and waits. End of input means that the parent is gone,
however it went: then, as on SIGTERM, every process of the launch is ended. It is not a watchdog: a
server that dies leaves the others running, and the rollouts that needed it become typed rows.
"""

import json
import os
import secrets
import signal
import sys
import threading
import traceback
from typing import Any, NoReturn

from nemo_tau2.gym.processes import MARKER, end_all

LOOPBACK = "127.0.0.2"
"""Ray replaces 127.0.0.1 by the public address of the host (`resolve_ip_for_localhost`); this one it keeps."""


def start_ray() -> str:
    """A Ray of one slot on loopback without dashboard; returns its address.

    NeMo Gym would start one on the host's public address (nemo_gym/server_utils.py,
    `initialize_ray`), with a worker per core and an authentication token in the home directory.
    """
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DISABLE_IMPORT_WARNING": "1",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_enable_metrics_collection": "0",
    }
    import ray

    ray.init(
        address="local",
        num_cpus=1,
        num_gpus=0,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=80 * 1024 * 1024,
        _node_ip_address=LOOPBACK,
    )
    return ray.get_runtime_context().gcs_address


def start_gym(config: dict[str, Any]) -> Any:
    """NeMo Gym's own start: spawns every server and returns once all of them answer."""
    from nemo_gym.cli.env import RunHelper
    from nemo_gym.global_config import GlobalConfigDictParserConfig
    from omegaconf import OmegaConf

    helper = RunHelper()
    helper.start(
        GlobalConfigDictParserConfig(
            initial_global_config_dict=OmegaConf.create(config),
            skip_load_from_cli=True,
            skip_load_from_dotenv=True,
        )
    )
    return helper


def main() -> None:
    """Runs one launch until told to stop. Started by `nemo_tau2.gym.launch`, not by hand."""
    status = int(sys.argv[1])
    config = json.loads(sys.stdin.readline())
    signal.signal(signal.SIGTERM, lambda *_: take_down())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        # On the main thread: Ray's daemons are killed with the thread that started them (PDEATHSIG).
        config["ray_head_node_address"] = start_ray()
        helper = start_gym(config)
    except BaseException:  # noqa: BLE001 - even SystemExit of a configuration error is a failed launch
        traceback.print_exc()
        os.write(status, b"FAILED\n")
        take_down()
    os.write(status, b"READY\n")
    while helper:
        signal.pause()


def take_down() -> NoReturn:
    """Ends every process of the launch, this one last.

    Not RunHelper.shutdown(): it interrupts shells, not servers, and waits seconds for each. The
    servers hold nothing worth a goodbye.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    end_all(os.environ[MARKER], grace_s=2, but_not={os.getpid()})
    os._exit(0)


def _follow_parent() -> None:
    while sys.stdin.read(1):
        pass
    take_down()


if __name__ == "__main__":
    main()
