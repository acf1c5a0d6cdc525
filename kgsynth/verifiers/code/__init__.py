"""Code for the verifiers `function_tests`, `programs`, `properties` and `kernel`: sources, values and calls in a box.

Nothing is imported here. `runner.py` runs inside the box, where nothing of the package is.
"""
