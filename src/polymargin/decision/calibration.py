r"""Probabilities from the scores of the classes.

The scores s of held-out examples say how scores and classes go together: Platt's *sigmoid* of each score,
:math:`1 / (1 + e^{A s + B})`; the *isotonic* regression of belonging to the class on its score, a function that never
falls; or one *temperature* for all scores, whose probabilities are :math:`e^{s_m / T} / \sum_u e^{s_u / T}`. The first
two see each class against all others, and their probabilities are scaled to sum to one. Two classes have one score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy.special import log_expit, softmax
from sklearn.isotonic import isotonic_regression

from polymargin.decision.coupling import fit_sigmoids
from polymargin.decision.probabilities import softmax_probabilities
from polymargin.models import KernelModel
from polymargin.models.declared import Value, attributes, declarations, declare, defects
from polymargin.models.settled import settled_by
from polymargin.support.blocks import slices
from polymargin.support.numeric import Bools, Floats, Ints, Matrix

_AT_ONCE = 1 << 18  # entries worked on together
_RANGE = float(
    np.exp(10.0)
)  # of the temperature, up and down from the mean size of the scores: separable scores have no best
_MOST_STEPS = 100
_SETTLED = 1e-14
_TINY = np.finfo(np.float64).tiny  # in place of a probability of zero: its logarithm is taken
_EQUAL = 64 * np.finfo(np.float64).eps  # scores that differ by no more of the largest


_TOGETHER = (
    ("sigmoid_slopes_", "sigmoid_offsets_"),
    ("isotonic_starts_", "isotonic_scores_", "isotonic_shares_"),
)


def _n_scores(n_classes: int) -> int:
    return 1 if n_classes == 2 else n_classes


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration(Value):
    """What was fitted to the scores of held-out examples, for one of the methods; nothing if there is none."""

    slopes: Floats | None = declare("sigmoid_slopes_", "real", ("class scores",), optional=True)
    offsets: Floats | None = declare("sigmoid_offsets_", "real", ("class scores",), optional=True)
    starts: Ints | None = declare("isotonic_starts_", "count", ("ends of isotonic",), optional=True)
    knots: Floats | None = declare("isotonic_scores_", "real", ("knots",), optional=True)
    shares: Floats | None = declare("isotonic_shares_", "real", ("knots",), optional=True)
    temperature: float | None = declare("temperature_", "number", optional=True)

    @property
    def method(self) -> str | None:
        """The method that there is a fit of."""
        fitted = {"temperature": self.temperature, "sigmoid": self.slopes, "isotonic": self.starts}
        return next((method for method, found in fitted.items() if found is not None), None)

    def defects(self, model: KernelModel) -> Iterator[tuple[str, str]]:
        """Yield the attributes that do not belong together, or to the model."""
        count = _n_scores(model.layout.n_classes)
        found = attributes(self)
        sizes = {"class scores": count, "ends of isotonic": count + 1}
        yield from defects(declarations(type(self)), found, lambda: sizes)
        for together in _TOGETHER:
            if any(name in found for name in together):
                yield from ((name, "is missing") for name in together if name not in found)
        if self.temperature is not None and not 0 < self.temperature < np.inf:
            yield "temperature_", "must be positive and finite"
        if self.starts is not None and self.knots is not None and self.shares is not None:
            yield from _defects_of_steps(np.asarray(self.starts), self.knots, self.shares)

    def log_weights(self, scores: Floats) -> Floats:
        """Return logarithms of what the probabilities are scaled from; each rises with the score of its class.

        Parameters
        ----------
        scores : array of shape (n, k), (n, 1) for two classes
            Scores of the classes; for two that of the second.

        Returns
        -------
        array of shape (n, k)
            Logarithms, none of them infinite.
        """
        if self.temperature is not None:
            return _both(scores) / self.temperature
        if self.slopes is not None and self.offsets is not None:
            odds = -(self.slopes * scores + self.offsets)
            return np.asarray(log_expit(odds if scores.shape[1] > 1 else _both(odds)))
        shares = self._shares_at(scores)
        if shares.shape[1] == 1:
            shares = np.column_stack([1.0 - shares, shares])
        return np.log(np.maximum(shares, _TINY))

    def _shares_at(self, scores: Floats) -> Floats:
        assert self.starts is not None
        assert self.knots is not None
        assert self.shares is not None
        shares = np.empty(scores.shape)
        for m, (begin, end) in enumerate(pairwise(self.starts)):
            shares[:, m] = np.interp(scores[:, m], self.knots[begin:end], self.shares[begin:end])
        return shares


def _both(scores: Floats) -> Floats:
    """Return a score for each class; of two, which have one, opposite numbers."""
    return np.column_stack([-scores, scores]) if scores.shape[1] == 1 else scores


def _defects_of_steps(starts: Ints, knots: Floats, shares: Floats) -> Iterator[tuple[str, str]]:
    if starts[0] != 0 or starts[-1] != len(knots) or np.any(np.diff(starts) < 1):
        yield "isotonic_starts_", "must ascend from 0 to the number of isotonic_scores_"
        return
    parts = [slice(*ends) for ends in pairwise(starts)]
    if any(np.any(np.diff(knots[part]) <= 0) for part in parts):
        yield "isotonic_scores_", "must ascend for each class"
    if np.any((shares < 0) | (shares > 1)) or any(np.any(np.diff(shares[part]) < 0) for part in parts):
        yield "isotonic_shares_", "must not fall, and lie between 0 and 1"


def fitted_calibration(method: str, scores: Floats, labels: Ints, weights: Floats) -> Calibration:
    """Fit a calibration to the scores of examples that the machine has not seen.

    Parameters
    ----------
    method : {"sigmoid", "isotonic", "temperature"}
        What is fitted.
    scores : array of shape (n, k), (n, 1) for two classes
        Scores of the classes; for two that of the second.
    labels : array of shape (n,)
        Numbers of the classes.
    weights : array of shape (n,)
        How often each example counts.

    Returns
    -------
    Calibration
        The fit.
    """
    return _FITS[method](scores, labels, weights)


def _own_classes(scores: Floats) -> range:
    """Return the class that each score is of."""
    return range(1, 2) if scores.shape[1] == 1 else range(scores.shape[1])


def _fit_sigmoid(scores: Floats, labels: Ints, weights: Floats) -> Calibration:
    n, count = scores.shape
    positive = labels == np.array(_own_classes(scores))[:, None]
    sigmoids = fit_sigmoids(scores.T.ravel(), positive.ravel(), np.tile(weights, count), n * np.arange(count + 1))
    return Calibration(slopes=sigmoids.A, offsets=sigmoids.B)


def _fit_isotonic(scores: Floats, labels: Ints, weights: Floats) -> Calibration:
    fits = [_isotonic(scores[:, m], labels == c, weights) for m, c in enumerate(_own_classes(scores))]
    starts = np.cumsum([0, *(len(knots) for knots, _ in fits)])
    return Calibration(
        starts=starts.astype(np.int64),
        knots=np.concatenate([knots for knots, _ in fits]),
        shares=np.concatenate([shares for _, shares in fits]),
    )


def _isotonic(scores: Floats, positive: Bools, weights: Floats) -> tuple[Floats, Floats]:
    """Return the points between which isotonic regression goes straight: the ends of its steps.

    Equal scores are one observation, by their weights.
    """
    order = np.argsort(scores, kind="stable")
    sorted_scores = scores[order]
    largest = max(1.0, float(np.abs(sorted_scores[[0, -1]]).max()))
    first = np.concatenate([[0], np.flatnonzero(np.diff(sorted_scores) > _EQUAL * largest) + 1])
    total = np.add.reduceat(weights[order], first)
    own = np.add.reduceat(np.where(positive, weights, 0.0)[order], first)
    knots = sorted_scores[first]
    shares = np.clip(isotonic_regression(own / total, sample_weight=total), 0.0, 1.0)
    rises = np.diff(shares) > 0
    ends = np.concatenate([[True], rises]) | np.concatenate([rises, [True]])
    return knots[ends], shares[ends]


def _fit_temperature(scores: Floats, labels: Ints, weights: Floats) -> Calibration:
    both = _both(scores)
    return Calibration(temperature=1.0 / inverse_temperature(both, labels, weights))


def inverse_temperature(scores: Floats, labels: Ints, weights: Floats) -> float:
    r"""Return the b > 0 that minimises the log loss of the probabilities :math:`e^{b s_m} / \sum_u e^{b s_u}`.

    .. math:: F(b) = \sum_i w_i \Bigl(\log \sum_m e^{b s_{im}} - b s_{i, y_i}\Bigr)

    is convex. Newton's method for F' = 0, halved in the logarithm where it leaves the bracket. Scores that tell all
    held-out examples right have no best b, and such that tell less than nothing have b = 0: it stays between
    :math:`e^{-10}` and :math:`e^{10}`, in units of the inverse mean difference between the scores of the right class
    and the others.

    Parameters
    ----------
    scores : array of shape (n, k)
        Scores of the classes.
    labels : array of shape (n,)
        Numbers of the classes.
    weights : array of shape (n,)
        How often each example counts.

    Returns
    -------
    float
        b, the inverse of the temperature.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On calibration of modern neural networks", ICML 2017.
    """
    z = scores - scores[np.arange(len(labels)), labels][:, None]
    size = float(weights @ np.abs(z).mean(axis=1)) / float(weights.sum())
    if size == 0.0:
        return 1.0
    low, high = 1.0 / (_RANGE * size), _RANGE / size
    if _slopes(z, weights, high)[0] <= 0:
        return high
    if _slopes(z, weights, low)[0] >= 0:
        return low
    b = 1.0 / size
    for _ in range(_MOST_STEPS):
        slope, curvature = _slopes(z, weights, b)
        low, high = (b, high) if slope < 0 else (low, b)
        new = b - slope / curvature if curvature > 0 else np.inf
        if not low < new < high:
            new = float(np.sqrt(low * high))
        moved, b = abs(new - b), new
        if moved <= _SETTLED * b:
            break
    return b


def _slopes(z: Floats, weights: Floats, b: float) -> tuple[float, float]:
    """Return F' and F'', where the scores are less those of the right class."""
    first, second = 0.0, 0.0
    for part in slices(len(z), max(1, _AT_ONCE // z.shape[1])):
        p = softmax(b * z[part], axis=1)
        mean = (p * z[part]).sum(axis=1)
        spread = (p * (z[part] - mean[:, None]) ** 2).sum(axis=1)
        first += float(weights[part] @ mean)
        second += float(weights[part] @ spread)
    return first, second


_FITS: dict[str, Callable[[Floats, Ints, Floats], Calibration]] = {
    "sigmoid": _fit_sigmoid,
    "isotonic": _fit_isotonic,
    "temperature": _fit_temperature,
}


class ScoredDecision(Protocol):
    """A decision by scores of the classes, which can be calibrated."""

    def public_scores(self, scores: Floats) -> Floats:
        """Return the scores, of all that a model has, that are shown as its own."""

    def shown_scores(self, values: Floats) -> Floats:
        """Return the scores of the classes, of two one in one column, positive for the second."""

    def moved(self, values: Floats, errors: Floats) -> Floats:
        """Return by how much errors of the values may move the scores of each row."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The class with the largest probability, the probabilities being fitted to the scores of another decision."""

    by_score: ScoredDecision
    calibration: Calibration

    def public_scores(self, scores: Floats) -> Floats:
        """Return the scores that have weights: those of the machine."""
        return self.by_score.public_scores(scores)

    def decide(self, values: Floats) -> Ints:
        """Return the number of the class that the values name."""
        decided: Ints = self.calibration.log_weights(self.by_score.shown_scores(values)).argmax(axis=1)
        return decided

    def predict(self, model: KernelModel, X: Matrix, threads: int) -> Ints:
        """Return the number of the class of each row."""
        decided: Ints = self.log_weights(model, X, threads).argmax(axis=1)
        return decided

    def decision_function(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the logarithms of what probabilities are scaled from; for two classes that of their ratio."""
        logarithms = self.log_weights(model, X, threads)
        return logarithms[:, 1] - logarithms[:, 0] if logarithms.shape[1] == 2 else logarithms

    def probabilities(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the probability of each class."""
        return softmax_probabilities(self.log_weights(model, X, threads))

    def log_weights(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the logarithms of what the probabilities are scaled from; a row that is close decides alone."""
        scores = settled_by(model, X, threads, self.by_score.shown_scores, self._close)
        return self.calibration.log_weights(scores)

    def _close(self, scores: Floats, values: Floats, errors: Floats) -> Bools:
        """Return the rows whose largest probability could be another's."""
        moved = self.by_score.moved(values, errors)[:, None]
        ends = self.calibration.log_weights(scores - moved), self.calibration.log_weights(scores + moved)
        least, most = np.minimum(*ends), np.maximum(*ends)
        best = self.calibration.log_weights(scores).argmax(axis=1)[:, None]
        own, classes = np.take_along_axis(least, best, axis=1), np.arange(least.shape[1])
        close: Bools = ((most > own) & (classes > best) | (most >= own) & (classes < best)).any(axis=1)
        return close
