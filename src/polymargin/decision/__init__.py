"""How scores become a class."""

from typing import TYPE_CHECKING

from polymargin.models import pair_index, pair_list
from polymargin.support.lazy import loaded_from

if TYPE_CHECKING:
    from polymargin.decision.calibration import Calibrated, Calibration, fitted_calibration, inverse_temperature
    from polymargin.decision.code_book import (
        DECODINGS,
        CodeBook,
        NearestCode,
        code_defect,
        code_probabilities,
        fitted_code_book,
        hamming_scores,
        loss_scores,
    )
    from polymargin.decision.coupling import (
        Coupling,
        PairProbabilities,
        Sigmoids,
        couple,
        fit_sigmoids,
        fitted_probabilities,
    )
    from polymargin.decision.elimination import Elimination, adag, dag
    from polymargin.decision.largest_score import LargestScore
    from polymargin.decision.nearest_column import (
        ColumnDistances,
        DecisionMatrix,
        NearestColumn,
        column_scores,
        pair_answers,
    )
    from polymargin.decision.own_sign import OwnSign
    from polymargin.decision.probabilities import log_probabilities, normalized_probabilities, softmax_probabilities
    from polymargin.decision.rule import PAIR_DECISIONS, DecisionRule, ProbabilityRule
    from polymargin.decision.voting import Votes, for_first_at_zero, is_decided, pair_values, vote_scores, votes

__getattr__, __dir__ = loaded_from(
    __name__,
    {
        "calibration": (
            "Calibrated",
            "Calibration",
            "fitted_calibration",
            "inverse_temperature",
        ),
        "code_book": (
            "CodeBook",
            "DECODINGS",
            "NearestCode",
            "code_defect",
            "code_probabilities",
            "fitted_code_book",
            "hamming_scores",
            "loss_scores",
        ),
        "coupling": (
            "Coupling",
            "PairProbabilities",
            "Sigmoids",
            "couple",
            "fit_sigmoids",
            "fitted_probabilities",
        ),
        "elimination": (
            "Elimination",
            "adag",
            "dag",
        ),
        "largest_score": ("LargestScore",),
        "nearest_column": (
            "ColumnDistances",
            "DecisionMatrix",
            "NearestColumn",
            "column_scores",
            "pair_answers",
        ),
        "own_sign": ("OwnSign",),
        "probabilities": (
            "log_probabilities",
            "normalized_probabilities",
            "softmax_probabilities",
        ),
        "rule": (
            "DecisionRule",
            "PAIR_DECISIONS",
            "ProbabilityRule",
        ),
        "voting": (
            "Votes",
            "for_first_at_zero",
            "is_decided",
            "pair_values",
            "vote_scores",
            "votes",
        ),
    },
)

__all__ = [
    "DECODINGS",
    "PAIR_DECISIONS",
    "Calibrated",
    "Calibration",
    "CodeBook",
    "ColumnDistances",
    "Coupling",
    "DecisionMatrix",
    "DecisionRule",
    "Elimination",
    "LargestScore",
    "NearestCode",
    "NearestColumn",
    "OwnSign",
    "PairProbabilities",
    "ProbabilityRule",
    "Sigmoids",
    "Votes",
    "adag",
    "code_defect",
    "code_probabilities",
    "column_scores",
    "couple",
    "dag",
    "fit_sigmoids",
    "fitted_calibration",
    "fitted_code_book",
    "fitted_probabilities",
    "for_first_at_zero",
    "hamming_scores",
    "inverse_temperature",
    "is_decided",
    "log_probabilities",
    "loss_scores",
    "normalized_probabilities",
    "pair_answers",
    "pair_index",
    "pair_list",
    "pair_values",
    "softmax_probabilities",
    "vote_scores",
    "votes",
]
