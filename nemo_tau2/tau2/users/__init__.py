"""User simulators: who talks to the policy. An LLM with τ²'s own guidelines, or a script."""
