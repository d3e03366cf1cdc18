"""Choosing parameters."""

from polymargin.selection._path import known_cost, regularization_path

__all__ = ["known_cost", "regularization_path"]
