"""What is kept of a fit: frozen, validated, and able to score."""

from typing import TYPE_CHECKING

from polymargin.support.lazy import loaded_from

if TYPE_CHECKING:
    from polymargin.models.kernel_model import KernelModel, LinearModel
    from polymargin.models.layout import (
        ClassLayout,
        CodeLayout,
        LabelLayout,
        PairLayout,
        ScoreLayout,
        all_pairs,
        pair_index,
        pair_list,
    )
    from polymargin.models.outcome import Outcome

__getattr__, __dir__ = loaded_from(
    __name__,
    {
        "kernel_model": (
            "KernelModel",
            "LinearModel",
        ),
        "layout": (
            "ClassLayout",
            "CodeLayout",
            "LabelLayout",
            "PairLayout",
            "ScoreLayout",
            "all_pairs",
            "pair_index",
            "pair_list",
        ),
        "outcome": ("Outcome",),
    },
)

__all__ = [
    "ClassLayout",
    "CodeLayout",
    "KernelModel",
    "LabelLayout",
    "LinearModel",
    "Outcome",
    "PairLayout",
    "ScoreLayout",
    "all_pairs",
    "pair_index",
    "pair_list",
]
