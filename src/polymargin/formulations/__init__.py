"""What is optimised, as values: each is solved on a training set and a kernel, and leaves a model."""

from typing import TYPE_CHECKING

from polymargin.support.lazy import loaded_from

if TYPE_CHECKING:
    from polymargin.formulations.chosen_pairs import ChosenPairs, ChosenPairsOutcome, ChosenPairsSolution
    from polymargin.formulations.family import CostFamily, Division
    from polymargin.formulations.formulation import Formulation, HeldOut, PairsSolution, RunOptions, Solution
    from polymargin.formulations.held_out import solve_held_out
    from polymargin.formulations.joint import Joint
    from polymargin.formulations.linear import Heuristics
    from polymargin.formulations.linear_program import LinearProgram, LinearProgramOutcome
    from polymargin.formulations.one_vs_rest import OneVsRest
    from polymargin.formulations.output_code import OutputCode
    from polymargin.formulations.pairs import Pairs
    from polymargin.formulations.primal_simplex import PrimalSimplex
    from polymargin.formulations.primal_softmax import PrimalOutcome, PrimalSoftmax
    from polymargin.formulations.training import TrainingSet, checked_weights, label_training_set, training_set

__getattr__, __dir__ = loaded_from(
    __name__,
    {
        "chosen_pairs": (
            "ChosenPairs",
            "ChosenPairsOutcome",
            "ChosenPairsSolution",
        ),
        "family": (
            "CostFamily",
            "Division",
        ),
        "formulation": (
            "Formulation",
            "HeldOut",
            "PairsSolution",
            "RunOptions",
            "Solution",
        ),
        "held_out": ("solve_held_out",),
        "joint": ("Joint",),
        "linear": ("Heuristics",),
        "linear_program": (
            "LinearProgram",
            "LinearProgramOutcome",
        ),
        "one_vs_rest": ("OneVsRest",),
        "output_code": ("OutputCode",),
        "pairs": ("Pairs",),
        "primal_simplex": ("PrimalSimplex",),
        "primal_softmax": (
            "PrimalOutcome",
            "PrimalSoftmax",
        ),
        "training": (
            "TrainingSet",
            "checked_weights",
            "label_training_set",
            "training_set",
        ),
    },
)

__all__ = [
    "ChosenPairs",
    "ChosenPairsOutcome",
    "ChosenPairsSolution",
    "CostFamily",
    "Division",
    "Formulation",
    "HeldOut",
    "Heuristics",
    "Joint",
    "LinearProgram",
    "LinearProgramOutcome",
    "OneVsRest",
    "OutputCode",
    "Pairs",
    "PairsSolution",
    "PrimalOutcome",
    "PrimalSimplex",
    "PrimalSoftmax",
    "RunOptions",
    "Solution",
    "TrainingSet",
    "checked_weights",
    "label_training_set",
    "solve_held_out",
    "training_set",
]
