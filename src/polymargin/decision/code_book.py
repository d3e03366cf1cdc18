r"""Deciding by a code: what each binary problem calls each class, and which class that is nearest to.

A code M has a row for each class and a column for each problem: 1 where the class is positive, -1 where it is negative,
0 where it takes no part. With the decision values f of the problems, class c has the score

.. math:: -\sum_s L(M_{cs} f_s), \qquad L(z) = \max(0, 1 - z)
          \quad\text{or}\quad L(z) = (1 - \operatorname{sign} z) / 2,

the loss-based and the Hamming decoding of Allwein, Schapire & Singer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from polymargin.decision.coupling import Sigmoids, fit_sigmoids
from polymargin.models import KernelModel
from polymargin.models.declared import Value, attributes, declarations, declare, defects
from polymargin.models.settled import near_zero, settled_by, settled_scores
from polymargin.support.numeric import Bools, Floats, Ints, Matrix
from polymargin.support.threads import one_blas_thread

_CLOSE = 1e-9  # of scores that are sums of a few hundred numbers near 1: what may be rounding
_MOVED = 64.0  # from errors in the log odds of problems to errors in probabilities
_PRIOR = 0.01  # where problems contradict each other a class had 1e-100; the log loss of others grows by 1 % at most
_MOST_CYCLES = 3000  # of three iterations each
_SETTLED = 1e-12  # change of a probability in a cycle
_LONGEST = 1e6  # extrapolation
_LEAST = 1e-100  # probability: its logarithm is taken


def code_defect(code: NDArray[Any], n_classes: int) -> str | None:
    """Return what is wrong with an array that should be a code, None if nothing is.

    Parameters
    ----------
    code : array
        What should have a row for each class and a column for each problem.
    n_classes : int
        The number of classes.

    Returns
    -------
    str or None
        The end of a sentence that begins with what the array is.
    """
    code = np.asarray(code)
    if code.ndim != 2 or code.shape[0] != n_classes or code.shape[1] == 0:
        return f"must have a row for each of the {n_classes} classes and a column for each problem, got {code.shape}"
    if code.dtype.kind not in "if" or not np.all(np.isin(code, (-1, 0, 1))):
        return "must hold 1, -1 and 0 alone: where a class is positive, negative, and takes no part"
    one_sided = np.flatnonzero(~((code == 1).any(axis=0) & (code == -1).any(axis=0)))
    if len(one_sided) > 0:
        return f"must have a 1 and a -1 in every column, but column {one_sided[0]} has not"
    unknown = np.flatnonzero(~code.any(axis=1))
    if len(unknown) > 0:
        return f"must have a 1 or a -1 in every row, but class {unknown[0]} takes part in no problem"
    columns = code.T.astype(np.int8)
    columns *= columns[np.arange(len(columns)), (columns != 0).argmax(axis=1)][:, None]  # the first entry is 1
    twins = _twins(columns)
    if twins is not None:
        return f"must not ask twice for one problem, but columns {twins[0]} and {twins[1]} are equal, or opposite"
    twins = _twins(code.astype(np.int8))
    if twins is not None:
        return f"must tell classes apart, but rows {twins[0]} and {twins[1]} are equal"
    return None


def _twins(vectors: NDArray[np.int8]) -> tuple[int, int] | None:
    """Return the places of two vectors that are equal, if there are any."""
    seen: dict[bytes, int] = {}
    for place, vector in enumerate(vectors):
        before = seen.setdefault(vector.tobytes(), place)
        if before < place:
            return before, place
    return None


@dataclass(frozen=True, eq=False, kw_only=True)
class CodeBook(Value):
    """The code that a machine was fitted with, and the sigmoids of its problems where it has probabilities."""

    code: Floats = declare("code_book_", "real", ("classes", "scores"))
    A: Floats | None = declare("probA_", "real", ("scores",), optional=True)
    B: Floats | None = declare("probB_", "real", ("scores",), optional=True)

    @property
    def sigmoids(self) -> Sigmoids | None:
        """The sigmoids, if there are any."""
        return None if self.A is None or self.B is None else Sigmoids(self.A, self.B)

    def defects(self, model: KernelModel) -> Iterator[tuple[str, str]]:
        """Yield the attributes that do not belong together, or to the model."""
        sizes = {"scores": model.layout.n_scores, "classes": model.layout.n_classes}
        yield from defects(declarations(type(self)), attributes(self), lambda: sizes)
        if not np.array_equal(self.code, getattr(model.layout, "code", ())):  # which was looked at
            yield "code_book_", "is not that of the coefficients"
        if (self.A is None) != (self.B is None):
            yield "probA_" if self.A is None else "probB_", "is missing"


def fitted_code_book(code: NDArray[np.int8], held_out: Floats, class_starts: Ints, weights: Floats) -> CodeBook:
    """Fit the sigmoid of each problem to the values of its held-out examples, which are in the order of the classes.

    Parameters
    ----------
    code : array of shape (k, n_problems)
        The code.
    held_out : array
        Values of all problems one after the other, by machines that have not seen the example; empty: no sigmoids.
    class_starts : array of shape (k + 1,)
        The examples of class c are [class_starts[c], class_starts[c + 1]).
    weights : array
        How often each example counts.

    Returns
    -------
    CodeBook
        The code, and the sigmoids.
    """
    if len(held_out) == 0:
        return CodeBook(code=code.astype(np.float64))
    signs = np.repeat(code, np.diff(class_starts), axis=0).T
    problem, example = np.nonzero(signs)
    starts = np.searchsorted(problem, np.arange(len(signs) + 1))
    A, B = fit_sigmoids(held_out, signs[problem, example] > 0, weights[example], starts)
    return CodeBook(code=code.astype(np.float64), A=A, B=B)


def hamming_scores(values: Floats, code: Floats) -> Floats:
    """Return minus the Hamming distance of each class to the signs of the values; a 0 on either side is half of one."""
    scores: Floats = (np.sign(values) @ code.T - code.shape[1]) / 2
    return scores


def loss_scores(values: Floats, code: Floats) -> Floats:
    """Return minus the hinge loss of each class, its code being the labels; a 0 in the code has the loss 1."""
    losses = np.maximum(0.0, 1.0 - values) @ (code > 0).T + np.maximum(0.0, 1.0 + values) @ (code < 0).T
    scores: Floats = -(losses + (code == 0).sum(axis=1))
    return scores


def code_probabilities(positive: Floats, code: Floats) -> Floats:
    r"""Return the class probabilities under which those of the problems are likeliest.

    Problem s says that the class is among its positive ones, :math:`S^+`, with probability :math:`r_s`, given that it
    is among :math:`S = S^+ \cup S^-`. With :math:`q_S = \sum_{c \in S} p_c` the probabilities maximise

    .. math:: \sum_s r_s \log \frac{q_{S^+}}{q_S} + (1 - r_s) \log \frac{q_{S^-}}{q_S} + \lambda \sum_c \log p_c,

    the generalised Bradley-Terry model of Huang, Weng & Lin, with a prior, :math:`k \lambda = 0.01`: that of a
    hundredth of a problem which finds all classes alike, so that none is out of the question. Jensen's inequality for
    the numerators and a tangent for the denominators bound it from below by a function whose maximum is

    .. math:: p_c \propto \frac{\lambda
              + p_c \sum_{s: c \in S^+} r_s / q_{S^+} + p_c \sum_{s: c \in S^-} (1 - r_s) / q_{S^-}}
              {k \lambda + \sum_{s: c \in S} 1 / q_S},

    so that no iteration makes it worse. There are thousands where a probability is tiny: after every two, the step that
    they suggest is taken in the logarithms (squared extrapolation), unless it makes the likelihood less. A row
    ends when its probabilities stay where they are.

    Parameters
    ----------
    positive : array of shape (n, n_problems)
        The :math:`r_s`, strictly between 0 and 1.
    code : array of shape (k, n_problems)
        Which classes are positive (1) and negative (-1) in each problem.

    Returns
    -------
    array of shape (n, k)
        Probabilities; each row sums to 1.

    References
    ----------
    T.-K. Huang, R. C. Weng, C.-J. Lin, "Generalized Bradley-Terry models and multi-class probability estimates",
    Journal of Machine Learning Research 7, 2006.

    R. Varadhan, C. Roland, "Simple and globally convergent methods for accelerating the convergence of any EM
    algorithm", Scandinavian Journal of Statistics 35, 2008.
    """
    p = np.full((len(positive), len(code)), 1.0 / len(code))
    left = np.arange(len(p))
    for _ in range(_MOST_CYCLES):
        old, r = p[left], positive[left]
        once = _likelier(old, r, code)
        twice = _likelier(once, r, code)
        new = _likelier(_extrapolated(old, once, twice), r, code)
        worse = ~(log_likelihood(new, r, code) >= log_likelihood(twice, r, code))
        new[worse] = twice[worse]
        moves = np.abs(new - old).max(axis=1) > _SETTLED
        p[left] = new
        left = left[moves]
        if len(left) == 0:
            break
    return p


def _likelier(p: Floats, r: Floats, code: Floats) -> Floats:
    """Return the maximum of the lower bound at p."""
    ups, downs = (code > 0).astype(np.float64), (code < 0).astype(np.float64)
    up, down = p @ ups, p @ downs
    seen = p * ((r / up) @ ups.T + ((1 - r) / down) @ downs.T)
    return _normalized((seen + _PRIOR / len(code)) / ((1 / (up + down)) @ (ups + downs).T + _PRIOR))


def _extrapolated(old: Floats, once: Floats, twice: Floats) -> Floats:
    """Return where two iterations lead to if their changes go on as they began, in logarithms."""
    first, second = np.log(once / old), np.log(twice / once)
    bend = np.maximum(np.linalg.norm(second - first, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    length = np.minimum(np.maximum(1.0, np.linalg.norm(first, axis=1, keepdims=True) / bend), _LONGEST)
    exponents = 2 * length * first + length**2 * (second - first) + np.log(old)
    return _normalized(np.exp(exponents - exponents.max(axis=1, keepdims=True)))


def _normalized(p: Floats) -> Floats:
    p = np.maximum(p, _LEAST)
    normalized: Floats = p / p.sum(axis=1, keepdims=True)
    return normalized


def log_likelihood(probabilities: Floats, positive: Floats, code: Floats) -> Floats:
    """Return what :func:`code_probabilities` maximises, for each row."""
    up, down = probabilities @ (code > 0), probabilities @ (code < 0)
    terms = positive * np.log(up / (up + down)) + (1 - positive) * np.log(down / (up + down))
    sums: Floats = terms.sum(axis=1) + _PRIOR * np.log(probabilities).mean(axis=1)
    return sums


DECODINGS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "hamming": hamming_scores,
    "loss": loss_scores,
    "probability": code_probabilities,
}
"""The scores of the classes from the values of the problems, or from their probabilities, and the code."""


@dataclass(frozen=True, eq=False)
class NearestCode:
    """The class whose row of the code fits best to the values of the problems; of several the first.

    With sigmoids it is the class with the largest probability.
    """

    code: Floats
    decoding: str
    sigmoids: Sigmoids | None = None

    @classmethod
    def of(cls, book: CodeBook, decoding: str) -> NearestCode:
        """Return the way to decode, for a code that was fitted."""
        if decoding != "probability":
            return cls(book.code, decoding)
        if book.sigmoids is None:
            raise NotFittedError(
                "this machine was fitted without probabilities, and decoding='probability' was set afterwards: fit it "
                "again, or set back the decoding that it was fitted with"
            )
        return cls(book.code, decoding, book.sigmoids)

    def class_scores(self, values: Floats) -> Floats:
        """Return the score of each class; for probabilities, these; of two classes the value of their problem."""
        with one_blas_thread():
            if self.sigmoids is not None:
                return code_probabilities(self.sigmoids.probabilities(values), self.code)
            return values * self.code[:, 0] if len(self.code) == 2 else DECODINGS[self.decoding](values, self.code)

    def public_scores(self, scores: Floats) -> Floats:
        """Return the scores that are shown: the values of all problems."""
        return scores

    def decide(self, values: Floats) -> Ints:
        """Return the number of the class that the values of all problems name."""
        decided: Ints = self.class_scores(values).argmax(axis=1)
        return decided

    def predict(self, model: KernelModel, X: Matrix, threads: int) -> Ints:
        """Return the number of the class of each row."""
        decided: Ints = self.settled_class_scores(model, X, threads).argmax(axis=1)
        return decided

    def decision_function(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the score of each class; of two classes half the difference, positive for the second."""
        shown = _shown(self.settled_class_scores(model, X, threads))
        return shown[:, 0] if shown.shape[1] == 1 else shown

    def probabilities(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the probability of each class."""
        return self.settled_class_scores(model, X, threads)

    def shown_scores(self, values: Floats) -> Floats:
        """Return the scores of the classes; of two half the difference, in one column."""
        return _shown(self.class_scores(values))

    def moved(self, values: Floats, errors: Floats) -> Floats:
        """Return by how much errors of the values may move the scores of each row."""
        moved: Floats
        if len(self.code) == 2:
            moved = errors.max(axis=1)
        elif self.decoding == "hamming":  # a sign that changes is worth 1
            moved = near_zero(values, errors).sum(axis=1).astype(np.float64)
        else:  # a hinge moves by no more than its value
            moved = errors.sum(axis=1) + _CLOSE
        return moved

    def settled_class_scores(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the score of each class; where two are close, those of the row alone."""
        if self.decoding == "hamming":  # nothing but signs counts
            return self.class_scores(settled_scores(model, X, threads, near_zero))
        return settled_by(model, X, threads, self.class_scores, self._close)

    def _close(self, scores: Floats, values: Floats, errors: Floats) -> Bools:
        """Return the rows whose two largest scores could change places."""
        moved = 2 * self.moved(values, errors) if self.sigmoids is None else self._moved(errors)
        close: Bools = self._lead(scores) <= moved
        return close

    def _lead(self, scores: Floats) -> Floats:
        """Return by how much the largest score leads; of probabilities in their logarithm."""
        second, first = np.partition(scores, -2, axis=1)[:, -2:].T
        lead: Floats = first - second
        return lead if self.sigmoids is None else lead / first

    def _moved(self, errors: Floats) -> Floats:
        """Return by how much errors of the values may change the lead of a probability."""
        assert self.sigmoids is not None
        moved: Floats = _MOVED * (errors * np.abs(self.sigmoids.A)).max(axis=1) + _CLOSE
        return moved


def _shown(scores: Floats) -> Floats:
    return (scores[:, [1]] - scores[:, [0]]) / 2 if scores.shape[1] == 2 else scores
