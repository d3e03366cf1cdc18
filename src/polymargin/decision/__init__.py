"""How the answers of binary machines become a class."""

from polymargin.decision.elimination import adag, dag
from polymargin.decision.votes import pair_index, pair_list, vote_scores, votes

__all__ = ["adag", "dag", "pair_index", "pair_list", "vote_scores", "votes"]
