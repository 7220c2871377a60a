"""Iterative Reward Calibration: what tier rewards teach, measured before training on rollouts.

After the method of arXiv:2604.02869. Pure functions over numpy arrays; the verb is
`nemo_tau2.cli.calibrate`, the picture `nemo_tau2.report.credit_plot`.
"""
