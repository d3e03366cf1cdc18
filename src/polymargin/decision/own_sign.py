"""Deciding for every label on its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polymargin.models import KernelModel
from polymargin.models.settled import near_zero, settled_scores
from polymargin.support.numeric import Floats, Ints, Matrix


@dataclass(frozen=True)
class OwnSign:
    """An example has the labels whose scores are positive: any number of them, none as well."""

    def public_scores(self, scores: Floats) -> Floats:
        """Return the scores that are shown: all."""
        return scores

    def decide(self, scores: Floats) -> Ints:
        """Return for each row and label 1 if it is there, else 0."""
        return (scores > 0).astype(np.int64)

    def predict(self, model: KernelModel, X: Matrix, threads: int) -> Ints:
        """Return for each row and label 1 if it is there, else 0, whatever the rounding of the scores."""
        return self.decide(settled_scores(model, X, threads, near_zero, shown=False))

    def decision_function(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the score of each label."""
        return settled_scores(model, X, threads, near_zero)
