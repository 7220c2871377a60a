"""Reward functions: pure, numpy-free, usable alone. They know nothing of τ², NeMo or HTTP."""
