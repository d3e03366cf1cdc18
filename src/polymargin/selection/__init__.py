"""Choosing parameters."""

from polymargin.selection._grid import hsu_lin_grid
from polymargin.selection._path import known_cost, regularization_path
from polymargin.selection._relative import default_cost, default_width, zien_grid
from polymargin.selection._search import KernelSearchCV

__all__ = [
    "KernelSearchCV",
    "default_cost",
    "default_width",
    "hsu_lin_grid",
    "known_cost",
    "regularization_path",
    "zien_grid",
]
