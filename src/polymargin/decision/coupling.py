"""Probabilities from pairs: a sigmoid for each pair (Platt), then pairwise coupling (Wu, Lin & Weng)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from polymargin.models import KernelModel, pair_list
from polymargin.models.declared import Value, attributes, declarations, declare, defects
from polymargin.models.settled import near_zero, precisions
from polymargin.support.numeric import Floats, Ints, Matrix
from polymargin.support.threads import one_blas_thread

LEAST = 1e-7
"""No pair is surer than this of its answer, so that every class keeps a chance."""
_AT_ONCE = 1 << 16
"""Decision values, or entries of the coupling matrices, worked on together: few enough to stay in the cache."""
_RIDGE = 1e-12
_SUFFICIENT_DECREASE = 1e-4
_SHORTEST_STEP = 1e-10
_LEAST_GAIN = 1e-16
_ROUNDING = 1e-14
_MOST_ITERATIONS = 100
_PAIRWISE_AT_ONCE = 1 << 24
"""Decision values of pairs held at once for probabilities: 128 MB."""
_MOVED = 64.0
"""From errors in the log odds of pairs to errors in probabilities."""
_COUPLING_ROUNDING = 1e-12


class Sigmoids(NamedTuple):
    """P(first class | one of the two) = 1 / (1 + exp(A f + B)) for the decision value f, an entry for each pair."""

    A: Floats
    B: Floats

    def probabilities(self, values: Floats) -> Floats:
        """Return P(first class), kept between 1e-7 and 1 - 1e-7, for values with a column for each pair."""
        first: Floats = np.clip(expit(-(self.A * values + self.B)), LEAST, 1 - LEAST)
        return first

    def second_class_log_odds(self, values: Floats) -> Floats:
        """Return log(P(second class) / P(first class)); positive exactly where the second probability is the larger."""
        odds = self.A * values + self.B
        return np.where(self.probabilities(values) < 0.5, odds, np.minimum(odds, 0.0))


class _Examples(NamedTuple):
    """The decision values of some pairs one after the other; ``starts`` is where each pair begins."""

    values: Floats
    targets: Floats
    weights: Floats
    starts: Ints

    def of_each(self, per_pair: Floats) -> Floats:
        """Repeat what belongs to a pair for each of its examples."""
        return np.repeat(per_pair, np.diff(self.starts, append=len(self.values)))

    def sums(self, summands: Floats) -> Floats:
        """Sum over the examples of each pair."""
        return np.add.reduceat(summands, self.starts, axis=-1)


def fit_sigmoids(values: Floats, positive: NDArray[np.bool_], weights: Floats, starts: Ints) -> Sigmoids:
    r"""Fit the sigmoid of each pair to its decision values, by Newton's method for all pairs side by side.

    With z = A f + B and Platt's targets, t = (N+ + 1) / (N+ + 2) for the first class and 1 / (N- + 2) for the second,
    N+ and N- being sums of weights, the negative log likelihood

    .. math:: F(A, B) = \sum_i w_i \left( t_i z_i + \log(1 + e^{-z_i}) \right)

    is convex. Exponents are never positive, steps are halved until F falls enough, and a ridge of 1e-12 keeps the
    Hessian regular: the algorithm of Lin, Lin & Weng, but run to rounding, on values of size 1. A machine whose
    values say the opposite of the labels knows nothing of its pair: A is at most 0, and where it is 0, the probability
    is the mean target.

    Parameters
    ----------
    values : array of shape (n,)
        Decision values of all pairs one after the other; they should come from machines that have not seen the example.
    positive : array of bool of shape (n,)
        Whether the example is of the first class of the pair.
    weights : array of shape (n,)
        How often the example counts.
    starts : array of shape (n_pairs + 1,)
        The values of pair p are [starts[p], starts[p + 1]); none is empty.

    Returns
    -------
    Sigmoids
        A and B of each pair.

    References
    ----------
    J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized likelihood methods",
    Advances in Large Margin Classifiers, MIT Press, 2000.

    H.-T. Lin, C.-J. Lin, R. C. Weng, "A note on Platt's probabilistic outputs for support vector machines", Machine
    Learning 68, 2007, doi:10.1007/s10994-007-5018-6.
    """
    fitted = []
    for begin, end in _blocks_of_pairs(starts):
        part = slice(starts[begin], starts[end])
        own = starts[begin:end] - starts[begin]
        fitted.append(_fit_block(values[part], positive[part], weights[part], own))
    A, B = np.hstack(fitted)
    return Sigmoids(A, B)


def _blocks_of_pairs(starts: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of pairs that have about ``_AT_ONCE`` values together, at least one pair each."""
    begin, last = 0, len(starts) - 1
    while begin < last:
        end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + _AT_ONCE, side="right")) - 1)
        yield begin, end
        begin = end


def _fit_block(values: Floats, positive: NDArray[np.bool_], weights: Floats, starts: Ints) -> Floats:
    """Return A and B of some pairs, as two rows."""
    examples = _Examples(values, np.empty(0), weights, starts)
    first = examples.sums(np.where(positive, weights, 0.0))
    second = examples.sums(np.where(positive, 0.0, weights))
    high, low = examples.of_each((first + 1) / (first + 2)), examples.of_each(1 / (second + 2))
    scale = np.maximum.reduceat(np.abs(values), starts)
    scale[scale == 0] = 1.0
    scaled = examples._replace(values=values / examples.of_each(scale), targets=np.where(positive, high, low))
    A, B = _newton(scaled)
    return np.stack([A / scale, B])


def _loss(examples: _Examples, A: Floats, B: Floats) -> tuple[Floats, Floats]:
    """Return F of each pair and z of each example."""
    z = examples.of_each(A) * examples.values + examples.of_each(B)
    # log(1 + exp(-z)) with an exponent that is never positive.
    each = examples.targets * z + np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z)))
    return examples.sums(examples.weights * each), z


def _direction(examples: _Examples, z: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the Newton step in A and in B and the slope of F along it."""
    f, w = examples.values, examples.weights
    p = expit(-z)
    residual, curvature = w * (examples.targets - p), w * p * (1 - p)
    gA, gB, hAA, hAB, hBB = examples.sums(
        np.stack([f * residual, residual, f * f * curvature, f * curvature, curvature])
    )
    hAA, hBB = hAA + _RIDGE, hBB + _RIDGE
    determinant = hAA * hBB - hAB * hAB
    dA, dB = -(hBB * gA - hAB * gB) / determinant, -(hAA * gB - hAB * gA) / determinant
    return dA, dB, gA * dA + gB * dB


def _newton(examples: _Examples) -> Floats:
    """Minimise F of each pair; return A and B as two rows."""
    prior = examples.sums(examples.weights * (1 - examples.targets)) / examples.sums(
        examples.weights * examples.targets
    )
    A, B = np.zeros(len(prior)), np.log(prior)
    loss, z = _loss(examples, A, B)
    active = np.ones(len(prior), dtype=bool)
    for _ in range(_MOST_ITERATIONS):
        dA, dB, slope = _direction(examples, z)
        step = np.where(active & (slope < 0), 1.0, 0.0)
        while True:
            new_loss, new_z = _loss(examples, A + step * dA, B + step * dB)
            short = new_loss > (1 + _ROUNDING) * loss + _SUFFICIENT_DECREASE * step * slope
            if not np.any(short):
                break
            step = np.where(short, np.where(step > _SHORTEST_STEP, step / 2, 0.0), step)
        A, B, z, loss = A + step * dA, B + step * dB, new_z, new_loss
        # Newton squares the error: what is left after a step that could gain so little is rounding.
        active &= (step > 0) & (-slope > _LEAST_GAIN * loss)
        if not np.any(active):
            break
    knows = A <= 0
    return np.where(knows, [A, B], [np.zeros_like(A), np.log(prior)])


def couple(pairwise: Floats, n_classes: int) -> Floats:
    r"""Return the class probabilities p that agree best with those of the pairs.

    With :math:`r_{ij}` the probability of class i among i and j, they are the solution of

    .. math:: \min_p \tfrac12 \sum_i \sum_{j \ne i} (r_{ji} p_i - r_{ij} p_j)^2
              \quad\text{s.t.}\quad \sum_i p_i = 1,

    the second method of Wu, Lin & Weng, who show that p >= 0 follows. The objective is p'Qp with
    :math:`Q_{ii} = \sum_{s \ne i} r_{si}^2` and :math:`Q_{ij} = -r_{ji} r_{ij}`, so p is the solution of
    (Q + ee') z = e, scaled to sum to 1: adding ee' changes nothing where the sum is given and makes the matrix positive
    definite. One linear system for each row; with two classes p is the pair's own probability.

    Parameters
    ----------
    pairwise : array of shape (n, k(k-1)/2)
        Probabilities of the first class of each pair, strictly between 0 and 1, in the order of :func:`pair_list`.
    n_classes : int
        The number k of classes.

    Returns
    -------
    array of shape (n, k)
        Probabilities; each row sums to 1.

    References
    ----------
    T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability estimates for multi-class classification by pairwise coupling",
    Journal of Machine Learning Research 5, 2004.
    """
    if n_classes == 2:
        return np.column_stack([pairwise[:, 0], 1 - pairwise[:, 0]])
    out = np.empty((len(pairwise), n_classes))
    rows = max(1, _AT_ONCE // n_classes**2)
    for begin in range(0, len(out), rows):
        out[begin : begin + rows] = _coupled(pairwise[begin : begin + rows], n_classes)
    return out


def _coupled(pairwise: Floats, n_classes: int) -> Floats:
    i, j = pair_list(n_classes).T
    r = np.zeros((len(pairwise), n_classes, n_classes))
    r[:, i, j] = pairwise
    r[:, j, i] = 1 - pairwise
    system = 1 - r * r.swapaxes(1, 2)
    diagonal = np.arange(n_classes)
    system[:, diagonal, diagonal] = 1 + np.einsum("nsi,nsi->ni", r, r)
    p = np.maximum(np.linalg.solve(system, np.ones((len(pairwise), n_classes, 1)))[:, :, 0], 0.0)
    coupled: Floats = p / p.sum(axis=1, keepdims=True)
    return coupled


@dataclass(frozen=True, eq=False, kw_only=True)
class PairProbabilities(Value):
    """The sigmoids of the pairs of a model, where it has any."""

    A: Floats | None = declare("probA_", "real", ("scores",), optional=True)
    B: Floats | None = declare("probB_", "real", ("scores",), optional=True)

    @property
    def sigmoids(self) -> Sigmoids | None:
        """The sigmoids, if there are any."""
        return None if self.A is None or self.B is None else Sigmoids(self.A, self.B)

    def defects(self, model: KernelModel) -> Iterator[tuple[str, str]]:
        """Yield the attributes that do not belong together, or to the model."""
        sizes = {"scores": model.layout.n_scores}
        yield from defects(declarations(type(self)), attributes(self), lambda: sizes)
        if (self.A is None) != (self.B is None):
            yield "probA_" if self.A is None else "probB_", "is missing"


def fitted_probabilities(held_out: Floats, class_starts: Ints, weights: Floats) -> PairProbabilities:
    """Fit the sigmoid of each pair to the values of its held-out examples, first those of its first class.

    Parameters
    ----------
    held_out : array
        Values of all pairs one after the other, by machines that have not seen the example.
    class_starts : array of shape (k + 1,)
        The examples of class c are [class_starts[c], class_starts[c + 1]).
    weights : array
        How often each example counts.

    Returns
    -------
    PairProbabilities
        The sigmoids.
    """
    of_class = [weights[begin:end] for begin, end in pairwise(class_starts)]
    pairs = pair_list(len(of_class))
    sizes = np.diff(class_starts)[pairs]
    positive = np.repeat(np.tile([True, False], len(pairs)), sizes.ravel())
    starts = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
    A, B = fit_sigmoids(held_out, positive, np.concatenate([of_class[c] for c in pairs.ravel()]), starts)
    return PairProbabilities(A=A, B=B)


@dataclass(frozen=True, eq=False)
class Coupling:
    """The class with the largest probability, the probabilities being coupled from those of the pairs."""

    sigmoids: Sigmoids
    n_classes: int
    sign: float  # between the values of a model and the positive first class of a pair
    class_order: Ints | None = None

    def public_scores(self, scores: Floats) -> Floats:
        """Return the scores that are shown: the values of all pairs."""
        return scores

    def decide(self, values: Floats) -> Ints:
        """Return the number of the class that the values of all pairs name."""
        return self._largest(self._probabilities_of(values))

    def predict(self, model: KernelModel, X: Matrix, threads: int) -> Ints:
        """Return the number of the class of each row."""
        return self._largest(self.probabilities(model, X, threads))

    def decision_function(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the probabilities, or the logarithm of the odds of the second of two classes."""
        if self.n_classes > 2:
            return self.probabilities(model, X, threads)
        values, sizes = model.raw_scores(X, threads)
        for precision in precisions(model, threads):
            odds = np.abs(self._log_odds(values))
            errors = np.abs(self.sigmoids.A) * precision.errors(sizes)[:, 0] + _COUPLING_ROUNDING
            close = np.flatnonzero(odds <= errors)
            if len(close) > 0:
                precision.improve(X, values, sizes, close, near_zero, everything=True)
        return self._log_odds(values)

    def probabilities(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the probabilities of each class, some rows at a time: their pairs may be many."""
        out = np.empty((X.shape[0], self.n_classes))
        rows = max(1, _PAIRWISE_AT_ONCE // model.layout.n_scores)
        for begin in range(0, len(out), rows):
            out[begin : begin + rows] = self._probabilities(model, X[begin : begin + rows], threads)
        return out

    def _probabilities(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the probabilities of some rows; where the largest are close, those of the row alone."""
        values, sizes = model.raw_scores(X, threads)
        out = self._probabilities_of(values)
        for precision in precisions(model, threads):
            # An error of a pair's value moves the logarithm of its odds by A times as much, and no probability by more
            # than a few times that.
            moved = (precision.errors(sizes) * np.abs(self.sigmoids.A)).max(axis=1)
            second, first = np.partition(out, -2, axis=1)[:, -2:].T
            close = np.flatnonzero(first - second <= first * (_MOVED * moved + _COUPLING_ROUNDING))
            if len(close) > 0:
                precision.improve(X, values, sizes, close, near_zero, everything=True)
                out[close] = self._probabilities_of(values[close])
        return out

    def _probabilities_of(self, values: Floats) -> Floats:
        with one_blas_thread():
            return couple(self.sigmoids.probabilities(self.sign * values), self.n_classes)

    def _log_odds(self, values: Floats) -> Floats:
        """Return log(P(second) / P(first)) of two classes."""
        return self.sigmoids.second_class_log_odds(-values[:, 0])

    def _largest(self, probabilities: Floats) -> Ints:
        order = np.arange(self.n_classes) if self.class_order is None else self.class_order
        largest: Ints = order[probabilities[:, order].argmax(axis=1)]
        return largest
