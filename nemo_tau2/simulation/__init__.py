"""Environments that run a compiled Agent Script: flat, routed, sandbox and pivot.

A scenario says what a customer wants (`scenario`), a session holds the world and its records
(`session`), a mode says what the policy may see and do (`routed`, `flat`, `sandbox`, `pivot`), and
helpers play the customer, the tools and the judge, from a script or from a frozen model.
"""
