"""`nemo-tau2 train`: NeMo RL's own entry point, with the hooks in and our recipe keys understood.

The entry point is `examples/nemo_gym/run_grpo_nemo_gym.py` of the checkout NeMo RL is imported from.
It is loaded as a module, its `MasterConfig` name is replaced by one that stashes our keys, and its
`main()` runs. Nothing of the training loop is ours.
"""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import nemo_tau2
from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl import compat
from nemo_tau2.nemo_rl.config import parse_section, stash

PACKAGE = Path(nemo_tau2.__file__).resolve().parent
ENTRY = "examples/nemo_gym/run_grpo_nemo_gym.py"
SINGLE_CONTROLLER_ENTRY = "examples/run_grpo_single_controller.py"


def locate(nemo_rl_dir: Path | None = None) -> Path:
    """The NeMo RL checkout: `nemo_rl_dir`, or the one `nemo_rl` is imported from.

    Its `examples` are in no wheel, so a checkout or the container's /opt/nemo-rl is needed. Sets
    NEMO_RL_DIR, which recipes inherit through. Raises `UserError` where it is not a checkout.
    """
    if nemo_rl_dir is not None:
        if not (nemo_rl_dir / "nemo_rl" / "__init__.py").is_file():
            raise UserError(
                f"--nemo-rl {nemo_rl_dir}: no NeMo RL checkout (it has no nemo_rl/__init__.py)"
            )
        sys.path.insert(0, str(nemo_rl_dir.resolve()))
    root = compat.nemo_rl_root()
    if nemo_rl_dir is not None and root != nemo_rl_dir.resolve():
        raise UserError(f"--nemo-rl {nemo_rl_dir}: nemo_rl is already imported from {root}")
    if not (root / ENTRY).is_file():
        raise UserError(f"{root} has no {ENTRY}: name a NeMo RL checkout with --nemo-rl DIR")
    os.environ["NEMO_RL_DIR"] = str(root)
    return root


def prepare() -> None:
    """Makes the package visible to recipes (`${nemo_tau2:gym_root}`) and to worker processes."""
    from omegaconf import OmegaConf

    if not OmegaConf.has_resolver("nemo_tau2"):
        OmegaConf.register_new_resolver("nemo_tau2", lambda name: str(PACKAGE / name))
    parts = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    folder = str(_import_folder())
    if folder not in parts:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *parts])


def _import_folder() -> Path:
    """A folder that holds this package and nothing that could shadow a worker's own packages.

    The workers have their own environments: a whole site-packages on their PYTHONPATH would replace
    their torch. An installed package is therefore linked into a folder of its own.
    """
    if PACKAGE.parent.name not in ("site-packages", "dist-packages"):
        return PACKAGE.parent
    folder = Path(tempfile.gettempdir()) / f"nemo_tau2-{nemo_tau2.__version__}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    link = folder / PACKAGE.name
    if not link.is_symlink() or link.resolve() != PACKAGE:
        link.unlink(missing_ok=True)
        link.symlink_to(PACKAGE)
    return folder


def nemo_rl_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A resolved recipe as NeMo RL takes it: estimator stashed, our Gym configurations inlined."""
    out = stash(config)
    env = dict(out.get("env") or {})
    if isinstance(env.get("nemo_gym"), Mapping):
        env["nemo_gym"] = inline_gym_configs(env["nemo_gym"])
        out["env"] = env
    return out


def inline_gym_configs(gym: Mapping[str, Any]) -> dict[str, Any]:
    """`env.nemo_gym` with our entries of `config_paths` replaced by their contents.

    The contents have absolute implementation keys, the one form in which every NeMo Gym line finds
    components outside its own folder (`nemo_tau2.gym.config`). What the recipe says about the same
    instances is laid over them, its implementation names made absolute too.
    """
    from omegaconf import OmegaConf

    from nemo_tau2.gym.config import absolute_config, absolute_instance
    from nemo_tau2.gym_compat import GYM_ROOT

    paths = [str(path) for path in gym.get("config_paths") or []]
    mine = [path for path in paths if Path(path).is_relative_to(GYM_ROOT)]
    missing = [path for path in mine if not Path(path).is_file()]
    if missing:
        raise UserError(f"env.nemo_gym.config_paths: no file {missing[0]}")
    over = {name: absolute_instance(value) for name, value in gym.items() if name != "config_paths"}
    merged = OmegaConf.merge(*(absolute_config(Path(path)) for path in mine), over)
    rest = [path for path in paths if path not in mine]
    return {"config_paths": rest} | OmegaConf.to_container(merged, resolve=False)


def load_entry(root: Path, config: Mapping[str, Any]) -> ModuleType:
    """NeMo RL's entry point as a module whose MasterConfig takes our recipes."""
    experimental = parse_section(config.get("nemo_tau2")).single_controller == "experimental"
    path = root / (SINGLE_CONTROLLER_ENTRY if experimental else ENTRY)
    if not path.is_file():
        raise UserError(f"this NeMo RL has no {path.name}: drop nemo_tau2.single_controller")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    original = module.MasterConfig

    def master_config(**fields: Any) -> Any:
        return original(**nemo_rl_config(fields))

    module.MasterConfig = master_config
    return module


def run(recipe: Path, overrides: list[str], nemo_rl_dir: Path | None = None) -> None:
    """Checks the recipe, then trains; raises `UserError` before anything is started."""
    from nemo_tau2.nemo_rl import hooks
    from nemo_tau2.nemo_rl.check import check, load

    root = locate(nemo_rl_dir)
    prepare()
    check(recipe, overrides, nemo_rl_dir)
    hooks.install()
    module = load_entry(root, load(recipe, overrides))
    argv = sys.argv
    sys.argv = [str(root / ENTRY), "--config", str(recipe), *overrides]
    try:
        module.main()
    finally:
        sys.argv = argv
