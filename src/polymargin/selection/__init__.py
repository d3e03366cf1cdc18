"""Choosing parameters."""

from polymargin.selection._grid import hsu_lin_grid
from polymargin.selection._path import known_cost, regularization_path
from polymargin.selection._search import KernelSearchCV

__all__ = ["KernelSearchCV", "hsu_lin_grid", "known_cost", "regularization_path"]
