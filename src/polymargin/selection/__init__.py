"""Choosing parameters."""

from polymargin.selection.grid import hsu_lin_grid
from polymargin.selection.path import known_cost, regularization_path
from polymargin.selection.relative import default_cost, default_width, zien_grid
from polymargin.selection.search import KernelSearchCV

__all__ = [
    "KernelSearchCV",
    "default_cost",
    "default_width",
    "hsu_lin_grid",
    "known_cost",
    "regularization_path",
    "zien_grid",
]
