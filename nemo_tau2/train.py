"""`python -m nemo_tau2.train --config RECIPE [overrides]`: the `train` verb, for `uv run python -m`."""

import sys

from nemo_tau2.cli.main import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
