"""Choosing parameters."""

from polymargin.selection._path import known_cost, regularization_path
from polymargin.selection._relative import default_cost, default_width, zien_grid

__all__ = ["default_cost", "default_width", "known_cost", "regularization_path", "zien_grid"]
