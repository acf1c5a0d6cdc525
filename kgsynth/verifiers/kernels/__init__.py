"""Kernels for the verifier `kernel`: what a task says, runs in boxes, comparison, timing. See docs/kernel-verifier.md.

Nothing is imported here. `box.py` and `data.py` run inside the box, where they find torch and nothing of the package.
"""
