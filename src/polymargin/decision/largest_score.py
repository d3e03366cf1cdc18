"""Deciding for the class with the largest score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polymargin.models import KernelModel
from polymargin.models.settled import near_largest, settled_scores
from polymargin.support.numeric import Bools, Floats, Ints, Matrix


@dataclass(frozen=True)
class LargestScore:
    """The class with the largest score; of two classes one score, positive for the second, decides by its sign.

    That is the last of the scores that there are. ``halved_difference`` takes half of the second less the first
    instead, so that the margin is at 1 and -1 where the two scores are not opposite numbers. ``link`` makes
    probabilities of the scores, for machines whose loss has them.
    """

    halved_difference: bool = False
    link: Callable[[Floats], Floats] | None = None

    def public_scores(self, scores: Floats) -> Floats:
        """Return the scores that ``decision_function`` shows: a column for each class, one for two."""
        return scores if scores.shape[1] > 2 else self._of_two(scores)[:, None]

    def decide(self, scores: Floats) -> Ints:
        """Return the number of the class that the scores name."""
        return scores.argmax(axis=1) if scores.shape[1] > 2 else (self._of_two(scores) > 0).astype(np.int64)

    def uncertain(self, scores: Floats, errors: Floats) -> Bools:
        """Return the scores of rows whose decision could be another: all of them, or none."""
        if scores.shape[1] > 2:
            return near_largest(scores, errors)
        close = np.abs(self._of_two(scores)) <= errors.max(axis=1)
        return np.repeat(close[:, None], scores.shape[1], axis=1)

    def scores(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return every score of every row."""
        return settled_scores(model, X, threads, self.uncertain)

    def predict(self, model: KernelModel, X: Matrix, threads: int) -> Ints:
        """Return the number of the class of each row."""
        return self.decide(settled_scores(model, X, threads, self.uncertain, shown=False))

    def decision_function(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the score of each class, or the one score of two classes."""
        scores = self.public_scores(self.scores(model, X, threads))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def shown_scores(self, scores: Floats) -> Floats:
        """Return the scores of the classes, of two one in one column."""
        return self.public_scores(scores)

    def moved(self, scores: Floats, errors: Floats) -> Floats:
        """Return by how much errors of the scores may move those of each row that are shown."""
        moved: Floats = errors.max(axis=1)
        return moved

    def probabilities(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the probability of each class."""
        assert self.link is not None
        return self.link(self.scores(model, X, threads))

    def _of_two(self, scores: Floats) -> Floats:
        return (scores[:, 1] - scores[:, 0]) / 2.0 if self.halved_difference else scores[:, -1]
