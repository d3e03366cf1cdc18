"""What is optimised, as values: each is solved on a training set and a kernel, and leaves a model."""

from typing import TYPE_CHECKING

from polymargin.formulations.family import CostFamily, Division
from polymargin.formulations.formulation import Formulation, PairsSolution, RunOptions, Solution
from polymargin.formulations.joint import Joint
from polymargin.formulations.linear import LINEAR_SOLVERS, Heuristics
from polymargin.formulations.one_vs_rest import OneVsRest
from polymargin.formulations.pairs import Pairs
from polymargin.formulations.training_set import TrainingSet, checked_weights, training_set
from polymargin.support.lazy import loaded_when_asked

if TYPE_CHECKING:
    from polymargin.formulations.chosen_pairs import ChosenPairs, ChosenPairsOutcome, ChosenPairsSolution
    from polymargin.formulations.linear_program import LinearProgram, LinearProgramOutcome
    from polymargin.formulations.primal_softmax import PrimalOutcome, PrimalSoftmax

_LAZY = {
    "chosen_pairs": ("ChosenPairs", "ChosenPairsOutcome", "ChosenPairsSolution"),
    "linear_program": ("LinearProgram", "LinearProgramOutcome"),
    "primal_softmax": ("PrimalOutcome", "PrimalSoftmax"),
}
__getattr__, __dir__ = loaded_when_asked(
    __name__, {name: f"{__name__}.{module}" for module, names in _LAZY.items() for name in names}
)

__all__ = [
    "LINEAR_SOLVERS",
    "ChosenPairs",
    "ChosenPairsOutcome",
    "ChosenPairsSolution",
    "CostFamily",
    "Division",
    "Formulation",
    "Heuristics",
    "Joint",
    "LinearProgram",
    "LinearProgramOutcome",
    "OneVsRest",
    "Pairs",
    "PairsSolution",
    "PrimalOutcome",
    "PrimalSoftmax",
    "RunOptions",
    "Solution",
    "TrainingSet",
    "checked_weights",
    "training_set",
]
