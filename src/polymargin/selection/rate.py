"""The rate, which the search can count without a scorer of scikit-learn: most of the time of small fits is theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics._scorer import _MultimetricScorer, _PassthroughScorer
from sklearn.pipeline import Pipeline


@dataclass(frozen=True)
class RateScorer:
    """The rate of a machine; with a decision, of a one-against-one machine that decides so, however it was fitted."""

    decision: str | None = None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        if self.decision is None:
            return rate(estimator.predict(X), y)
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        return rate(last_step(estimator).predict_by(self.decision, X), y)


@dataclass(frozen=True)
class Rates:
    """All that a search measures, when that is nothing but rates: one, or several by name."""

    names: list[str] | None
    scorers: list[RateScorer]
    scorer: Any  # what measures them, without a detour

    @classmethod
    def of(cls, scorer: Any) -> Rates | None:
        """Return what a scorer measures; None if there is something else in it."""
        if isinstance(scorer, _PassthroughScorer):  # what `score` of a classifier says
            return cls(None, [RateScorer()], RateScorer())
        if isinstance(scorer, _MultimetricScorer):
            found = scorer._scorers
            if all(isinstance(each, RateScorer) for each in found.values()):
                return cls(list(found), list(found.values()), scorer)
        return None

    def named(self, values: list[float]) -> Any:
        """Return values, one for each scorer, in the form that the search expects of its scorer."""
        return values[0] if self.names is None else dict(zip(self.names, values, strict=True))


def rate(predicted: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the share of examples that get their class; predictions may be a column."""
    return float(np.mean(np.ravel(predicted) == y))


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator
