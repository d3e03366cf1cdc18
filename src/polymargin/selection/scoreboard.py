"""What the candidates have reached so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

FEWEST = 3  # folds before a candidate can be given up


class Scoreboard:
    """The evaluations of each candidate on each fold, in the form in which scikit-learn's search keeps them."""

    def __init__(self, n_candidates: int, n_folds: int) -> None:
        self.entered: Callable[[int, int, dict[str, Any]], None] | None = None  # is told of every evaluation
        self.outcomes: list[list[dict[str, Any] | None]] = [[None] * n_folds for _ in range(n_candidates)]
        self.given_up: set[int] = set()

    def enter(self, candidate: int, fold: int, outcome: dict[str, Any]) -> None:
        """Keep one evaluation."""
        self.outcomes[candidate][fold] = outcome
        if self.entered is not None:
            self.entered(candidate, fold, outcome)

    def finished(self) -> list[int]:
        """Return the candidates that were evaluated on every fold."""
        return [c for c, row in enumerate(self.outcomes) if all(outcome is not None for outcome in row)]

    def listed(self, candidates: Iterable[int]) -> list[dict[str, Any]]:
        """Return the evaluations of some candidates, fold by fold, candidate by candidate.

        Where a candidate was given up, the score is not a number, so that it ranks last.
        """
        outcomes = [outcome for c in candidates for outcome in self.outcomes[c]]
        known = next(outcome for outcome in outcomes if outcome is not None)
        nothing = dict.fromkeys(known, np.nan) | {"fit_error": None}
        return [nothing if outcome is None else outcome for outcome in outcomes]

    def scores(self, candidate: int) -> NDArray[np.float64]:
        """Return the scores of a candidate up to the first fold that is missing."""
        row = self.outcomes[candidate]
        known = next((fold for fold, outcome in enumerate(row) if outcome is None), len(row))
        return np.array([outcome["test_scores"] for outcome in row[:known] if outcome is not None], dtype=float)

    def give_up(self, candidates: list[int], level: float) -> None:
        """Give up those that lose against the best: one-sided t-test on the differences, fold by fold.

        The best is the finished candidate with the highest mean, or, while there is none, the best of these.
        """
        rivals = self.finished() or candidates
        best = self.scores(max(rivals, key=lambda c: np.nan_to_num(self.scores(c).mean(), nan=-np.inf)))
        for c in candidates:
            own = self.scores(c)
            if FEWEST <= len(own) < len(self.outcomes[c]) and _loses(best[: len(own)] - own, level):
                self.given_up.add(c)


def _loses(lead: NDArray[np.float64], level: float) -> bool:
    """Whether a lead, fold by fold, is no chance at this level of significance."""
    if not lead.mean() > 0:
        return False
    error = lead.std(ddof=1) / np.sqrt(len(lead))
    return bool(error == 0 or student.sf(lead.mean() / error, len(lead) - 1) < level)
