"""Deciding for the class with the largest score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.formulations.solution import Floats, Ints
from polymargin.models.settled import near_largest
from polymargin.support.examples import Matrix


class LargestScoreMixin:
    """For machines with a score for each class; with two classes that of the second, the last, decides by its sign."""

    classes_: NDArray[Any]
    support_: Ints

    intercept_: Floats

    @property
    def _intercepts(self) -> Floats:
        """The intercepts of all scores; those of two classes are opposite, and one is kept."""
        return np.concatenate([-self.intercept_, self.intercept_]) if self._two_scores else self.intercept_

    @property
    def _two_scores(self) -> bool:
        """Whether two classes have a score each, of which ``decision_function`` makes one."""
        return self._shape(len(self.classes_))[1] == len(self.classes_) == 2  # type: ignore[attr-defined]

    def _dimensions(self) -> dict[str, int]:
        sizes = super()._dimensions()  # type: ignore[misc]
        return sizes | {"intercepts": 1 if self._two_scores else sizes["scores"]}

    def _store_intercepts(self, intercepts: Floats) -> None:
        self.intercept_ = intercepts[1:] if self._two_scores else intercepts

    def _all_scores(self, X: Matrix, shown: bool = True) -> Floats:
        return super()._all_scores(X, shown)  # type: ignore[misc]

    def _wanted(self, scores: Floats, errors: Floats) -> NDArray[np.bool_]:
        if len(self.classes_) > 2:
            return near_largest(scores, errors)
        close = np.abs(self._binary_score(scores)) <= errors.max(axis=1)
        return np.repeat(close[:, None], scores.shape[1], axis=1)

    def _checked_queries(self, X: Any) -> Matrix:
        return super()._checked_queries(X)  # type: ignore[misc]

    def _blocks(self) -> list[tuple[tuple[int, int], list[int]]]:
        return [((0, len(self.support_)), list(range(len(self._intercepts))))]

    def _public_weights(self) -> Floats:
        weights = self._weights()  # type: ignore[attr-defined]
        return self._binary_score(weights.T)[None, :] if self._two_scores else weights

    def _binary_score(self, scores: Floats) -> Floats:
        """Return the one score of two classes; positive means the second."""
        return scores[:, -1]

    def decision_function(self, X: Any) -> Floats:
        """Return the score of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; for a precomputed kernel their kernel values with the training examples, of which only the
            columns of support vectors are read.

        Returns
        -------
        ndarray of shape (n_samples, k), or (n_samples,) for two classes
            Scores; for two classes the score of the second.
        """
        scores = self._all_scores(self._checked_queries(X))
        return self._binary_score(scores) if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each example: the one with the largest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        scores = self._all_scores(self._checked_queries(X), shown=False)
        return self.classes_[self._decide_all(scores)]

    def _decide_all(self, scores: Floats) -> Ints:
        return _chosen(self._binary_score(scores) if len(self.classes_) == 2 else scores)


def _chosen(scores: Floats) -> Ints:
    return (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
