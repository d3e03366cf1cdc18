"""How the answers of binary machines become a class."""

from polymargin.decision.coupling import Sigmoids, couple, fit_sigmoids
from polymargin.decision.elimination import adag, dag
from polymargin.decision.nearest_column import ColumnDistances, column_scores, pair_answers
from polymargin.decision.votes import is_decided, pair_index, pair_list, vote_scores, votes

__all__ = [
    "ColumnDistances",
    "Sigmoids",
    "adag",
    "column_scores",
    "couple",
    "dag",
    "fit_sigmoids",
    "is_decided",
    "pair_answers",
    "pair_index",
    "pair_list",
    "vote_scores",
    "votes",
]
