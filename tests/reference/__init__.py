"""Slow, obvious implementations that the tests believe, and the data they are compared on.

Nothing here shares code with polymargin: kernels are the textbook formulas in float64, the binary
machine is a quadratic program handed to PIQP, and decisions are loops over rows.
"""
