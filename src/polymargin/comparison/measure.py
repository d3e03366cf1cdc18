"""What a comparison goes by: one number of predictions, in [0, 1] and the larger the better, called the rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from polymargin.costs import CostScorer, checked_costs, mean_cost
from polymargin.selection.rate import RateScorer, last_step, rate
from polymargin.support.numeric import Floats


class Measure(Protocol):
    """A way to measure predictions."""

    @property
    def plain(self) -> Any:
        """What settings and reports have of it; None for the share of right predictions."""

    def of(self, predicted: NDArray[Any], y: NDArray[Any]) -> float:
        """Return the rate."""

    def each(self, predicted: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        """Return what every example adds to the rate, of which it is the mean."""

    def scorer(self, decision: str | None) -> Any:
        """Return what a search goes by, for machines that decide so on the same fit."""


@dataclass(frozen=True)
class Accuracy:
    """The share of examples that get their class."""

    @property
    def plain(self) -> Any:
        """What settings and reports have of it; None for the share of right predictions."""
        return None

    def of(self, predicted: NDArray[Any], y: NDArray[Any]) -> float:
        """Return the rate."""
        return rate(predicted, y)

    def each(self, predicted: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        """Return what every example adds to the rate, of which it is the mean."""
        return np.ravel(predicted) == y

    def scorer(self, decision: str | None) -> Any:
        """Return what a search goes by, for machines that decide so on the same fit."""
        return RateScorer(decision)


@dataclass(frozen=True, eq=False)
class SavedCost:
    """The share of the largest cost that predictions save: 1 minus the mean cost in units of the largest."""

    costs: Floats
    classes: NDArray[Any]

    @property
    def plain(self) -> Any:
        """What settings and reports have of it; None for the share of right predictions."""
        return {"costs": self.costs.tolist()}

    @property
    def _largest(self) -> float:
        return float(self.costs.max())

    def of(self, predicted: NDArray[Any], y: NDArray[Any]) -> float:
        """Return the rate."""
        return 1.0 - mean_cost(y, predicted, self.costs, classes=self.classes) / self._largest

    def each(self, predicted: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        """Return what every example adds to the rate, of which it is the mean."""
        places = [np.searchsorted(self.classes, np.ravel(labels)) for labels in (y, predicted)]
        saved: Floats = 1.0 - self.costs[places[0], places[1]] / self._largest
        return saved

    def scorer(self, decision: str | None) -> Any:
        """Return what a search goes by, for machines that decide so on the same fit."""
        return _MeasureScorer(self, decision)


@dataclass(frozen=True, eq=False)
class _MeasureScorer:
    """The rate of a machine; with a decision, of a one-against-one machine that decides so, however it was fitted."""

    measure: SavedCost
    decision: str | None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        if self.decision is None:
            return self.measure.of(estimator.predict(X), y)
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        return self.measure.of(last_step(estimator).predict_by(self.decision, X), y)


def measure_of(scoring: Any, y: NDArray[Any], y_test: NDArray[Any] | None) -> Measure:
    """Return what a comparison goes by: None or "accuracy", or what ``make_cost_scorer`` returns."""
    if scoring is None or (isinstance(scoring, str) and scoring == "accuracy"):
        return Accuracy()
    if not isinstance(scoring, CostScorer):
        raise ValueError(f"scoring must be None, 'accuracy' or polymargin.costs.make_cost_scorer(...), got {scoring!r}")
    classes = np.unique(y)
    costs = checked_costs(scoring.costs, len(classes))
    if scoring.classes is not None:
        if not np.array_equal(np.sort(scoring.classes), classes):
            raise ValueError(f"scoring has costs of the classes {list(scoring.classes)}, but y has {classes.tolist()}")
        order = np.argsort(scoring.classes)
        costs = costs[np.ix_(order, order)]
    unknown = np.setdiff1d(classes if y_test is None else y_test, classes)
    if len(unknown):
        raise ValueError(f"y_test has {unknown[0]!r}, a class that y has not: there is no cost of it")
    return SavedCost(costs, classes)
