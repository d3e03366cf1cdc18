"""Max-wins voting over all pairs of classes (Hsu & Lin, section II)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.models import KernelModel, pair_index, pair_list
from polymargin.models.settled import near_zero, settled_scores
from polymargin.support.numeric import Bools, Floats, Ints, Matrix


def _by_class(pairwise: NDArray[Any], n_classes: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield each class with the columns of its pairs with the classes behind it: k steps for k(k-1)/2 columns."""
    start = 0
    for i in range(n_classes - 1):
        yield i, pairwise[:, start : start + n_classes - 1 - i]
        start += n_classes - 1 - i


_FEW = 1 << 15  # answers to pairs, up to which a pass for each class takes longer than the answers


@lru_cache(maxsize=4)
def _pairs_of_classes(n_classes: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return for each class the positions of its pairs, and whether it is the first of each."""
    other = np.array([[j for j in range(n_classes) if j != c] for c in range(n_classes)])
    own = np.arange(n_classes)[:, None]
    return pair_index(np.minimum(own, other), np.maximum(own, other), n_classes), own < other


def for_first_at_zero(n_classes: int, order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each pair whether a value of 0 is a vote for its first class: if that comes later in ``order``."""
    place = np.argsort(order)
    first, second = pair_list(n_classes).T
    later: NDArray[np.bool_] = place[first] > place[second]
    return later


def _wins(pairwise: NDArray[np.float64], n_classes: int, order: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Count the votes of each row for each class."""
    if pairwise.size <= _FEW:
        for_first = pairwise > 0
        if order is not None:
            for_first |= (pairwise == 0) & for_first_at_zero(n_classes, order)
        pairs, is_first = _pairs_of_classes(n_classes)
        counted: Ints = (for_first[:, pairs] == is_first).sum(axis=2)
        return counted
    wins = np.zeros((len(pairwise), n_classes), dtype=np.int64, order="F" if pairwise.flags.f_contiguous else "C")
    place = None if order is None else np.argsort(order)
    for i, values in _by_class(pairwise, n_classes):
        for_first = values > 0
        if place is not None:
            for_first |= (values == 0) & (place[i] > place[i + 1 :])
        wins[:, i] += for_first.sum(axis=1)
        wins[:, i + 1 :] += ~for_first
    return wins


def is_decided(pairwise: NDArray[np.float64], unsure: NDArray[np.bool_], n_classes: int) -> NDArray[np.bool_]:
    """Return for each row whether one class has most votes whichever way the ``unsure`` pairs vote."""
    certain, open_pairs = _certain_and_open(pairwise, unsure, n_classes)
    rows, winner = np.arange(len(certain)), certain.argmax(axis=1)
    most = certain + open_pairs
    most[rows, winner] = -1
    decided: NDArray[np.bool_] = certain[rows, winner] > most.max(axis=1)
    return decided


def _certain_and_open(
    pairwise: NDArray[np.float64], unsure: NDArray[np.bool_], n_classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the votes of each row for each class that are certain, and its pairs that may vote either way."""
    if pairwise.size <= _FEW:
        pairs, is_first = _pairs_of_classes(n_classes)
        open_ones = unsure[:, pairs]
        return (((pairwise > 0)[:, pairs] == is_first) & ~open_ones).sum(axis=2), open_ones.sum(axis=2)
    certain = np.zeros((len(pairwise), n_classes), dtype=np.int64)
    start = 0
    for i, values in _by_class(pairwise, n_classes):
        sure = ~unsure[:, start : start + values.shape[1]]
        certain[:, i] += ((values > 0) & sure).sum(axis=1)
        certain[:, i + 1 :] += (values <= 0) & sure
        start += values.shape[1]
    open_pairs = np.zeros_like(certain)
    for i, part in _by_class(unsure, n_classes):
        open_pairs[:, i] += part.sum(axis=1)
        open_pairs[:, i + 1 :] += part
    return certain, open_pairs


def _favour(pairwise: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Sum the decision values of each row in favour of each class."""
    favour = np.zeros((len(pairwise), n_classes))
    for i, values in _by_class(pairwise, n_classes):
        favour[:, i] += values.sum(axis=1)
        favour[:, i + 1 :] -= values
    return favour


def votes(pairwise: NDArray[np.float64], n_classes: int, order: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return the class with most votes in each row; a tie goes to the smaller index, or the first in ``order``.

    Parameters
    ----------
    pairwise : array of shape (n, k(k-1)/2)
        Decision values in the order of :func:`pair_list`; positive is a vote for the first class, negative one for the
        second, and 0 one for that which comes later in ``order``: in the order of indices, the second.
    n_classes : int
        The number k of classes.
    order : array of shape (k,), optional
        The classes, that which wins a tie before the others.

    Returns
    -------
    array of shape (n,)
        Class indices.
    """
    wins = _wins(pairwise, n_classes, order)
    most: Ints = wins.argmax(axis=1) if order is None else order[wins[:, order].argmax(axis=1)]
    return most


def vote_scores(
    pairwise: NDArray[np.float64],
    n_classes: int,
    decided: NDArray[np.int64],
    order: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Return a score for each class: its votes, plus its summed decision values squeezed into (-1/3, 1/3).

    The squeezed sums order classes with equally many votes, as in scikit-learn. Where the largest score is not
    that of the class ``decided`` (a tie, or an elimination that ended elsewhere), the two scores change places, so
    that the largest score always names the decision. ``order`` is that of :func:`votes`.
    """
    wins, favour = _wins(pairwise, n_classes, order), _favour(pairwise, n_classes)
    scores: NDArray[np.float64] = wins + favour / (3 * (np.abs(favour) + 1))
    rows = np.arange(len(scores))
    largest = scores.argmax(axis=1)
    top = scores[rows, largest]
    scores[rows, largest] = scores[rows, decided]
    scores[rows, decided] = top
    return scores


@dataclass(frozen=True, eq=False)
class Votes:
    """The class with most votes of the pairs; of several the one that comes first in ``class_order``."""

    n_classes: int
    class_order: Ints | None = None  # None is the order of their numbers

    def public_scores(self, scores: Floats) -> Floats:
        """Return the scores that are shown: the values of all pairs."""
        return scores

    def decide(self, values: Floats) -> Ints:
        """Return the number of the class that the values of all pairs name."""
        if self.n_classes > 2:
            return votes(values, self.n_classes, self.class_order)
        return second_of_two(values[:, 0], self.class_order)

    def uncertain(self, values: Floats, errors: Floats) -> Bools:
        """Return the values that could be of either sign, where the most votes depend on them."""
        unsure = near_zero(values, errors)
        if self.n_classes == 2 or not unsure.any():
            return unsure
        rows = np.flatnonzero(unsure.any(axis=1))
        unsure[rows[is_decided(values[rows], unsure[rows], self.n_classes)]] = False
        return unsure

    def predict(self, model: KernelModel, X: Matrix, threads: int) -> Ints:
        """Return the number of the class of each row."""
        return self.decide(settled_scores(model, X, threads, self.uncertain, shown=False))

    def decision_function(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the score of each class, or the value of the pair of two classes."""
        return pair_decision_function(self.decide(values := pair_values(model, X, threads)), values, model)


def second_of_two(values: Floats, class_order: Ints | None) -> Ints:
    """Return the class of two that values name, positive ones the second; 0 is that which comes later in the order."""
    reversed_order = class_order is not None and class_order[0] == 1
    return (values > 0 if reversed_order else values >= 0).astype(np.int64)


def pair_values(model: KernelModel, X: Matrix, threads: int) -> Floats:
    """Return the values of all pairs, in the signs of the model, their signs not depending on rounding."""
    return settled_scores(model, X, threads, near_zero)


def pair_decision_function(decided: Ints, values: Floats, model: KernelModel) -> Floats:
    """Return the scores of the classes, the largest of each row being that of the class decided for."""
    if model.layout.n_classes == 2:
        return values[:, 0]
    return vote_scores(values, model.layout.n_classes, decided, model.class_order)
