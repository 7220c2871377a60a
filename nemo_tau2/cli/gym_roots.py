"""`nemo-tau2 gym-roots`: where NeMo Gym finds the components of this package."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def gym_roots(
    *,
    config: Annotated[str | None, Parameter(name="--absolute")] = None,
    output: Path | None = None,
) -> None:
    """Print the folder for NEMO_GYM_EXTRA_ROOTS, or rewrite a configuration for NeMo Gym 0.4.0.

    NeMo Gym >= 0.5: `export NEMO_GYM_EXTRA_ROOTS=$(nemo-tau2 gym-roots)`, then
    `gym env start --environment tau2_airline ...`. NeMo Gym 0.4.0: `nemo-tau2 gym-roots --absolute
    tau2_airline --output airline.yaml`, then `gym env start --config airline.yaml ...`.

    Parameters
    ----------
    config
        Write this configuration (an environment's name or a YAML file) with absolute implementation
        keys instead of printing the folder.
    output
        The file to write it to; standard output where not given.
    """
    from nemo_tau2.errors import UserError
    from nemo_tau2.gym_compat import GYM_ROOT

    if config is None:
        if output is not None:
            raise UserError("--output goes with --absolute CONFIG")
        print(GYM_ROOT)
        return
    import yaml

    from nemo_tau2.gym.config import absolute_config, find_config

    text = yaml.safe_dump(absolute_config(find_config(config)), sort_keys=False, allow_unicode=True)
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}; give another --output") from None
