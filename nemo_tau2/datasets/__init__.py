"""Training files from rows and rollouts: mixtures (`mix`), selections (`selection`), SFT (`sft`)."""
