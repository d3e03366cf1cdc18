"""What is kept of a fit: frozen, validated, and able to score."""

from polymargin.models.kernel_model import KernelModel, LinearModel
from polymargin.models.layout import ClassLayout, PairLayout, ScoreLayout, all_pairs, pair_index, pair_list
from polymargin.models.outcome import Outcome

__all__ = [
    "ClassLayout",
    "KernelModel",
    "LinearModel",
    "Outcome",
    "PairLayout",
    "ScoreLayout",
    "all_pairs",
    "pair_index",
    "pair_list",
]
