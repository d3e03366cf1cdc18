"""How the answers of binary machines become a class."""

from polymargin.decision.elimination import adag, dag
from polymargin.decision.nearest_column import ColumnDistances, column_scores
from polymargin.decision.votes import pair_index, pair_list, vote_scores, votes

__all__ = ["ColumnDistances", "adag", "column_scores", "dag", "pair_index", "pair_list", "vote_scores", "votes"]
