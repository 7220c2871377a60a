"""Rolling out many episodes: plan, backends, stored rows, summary. Used by the `rollout` verb."""
