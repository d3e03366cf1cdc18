"""Decisions that ask one pair at a time and drop the loser: DAGSVM (Platt et al.) and ADAG (Wang & Huang 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polymargin.decision.voting import pair_decision_function, pair_values, second_of_two
from polymargin.models import KernelModel, LinearModel, pair_index
from polymargin.support.numeric import Floats, Ints, Matrix

Answer = Callable[[int, NDArray[np.int64]], NDArray[np.float64]]
"""``answer(p, rows)`` is the decision value of pair machine ``p`` for some rows; positive keeps the first class."""


def _ask(
    i: NDArray[np.int64], j: NDArray[np.int64], rows: NDArray[np.int64], n_classes: int, answer: Answer
) -> NDArray[np.bool_]:
    """Ask machine (i, j), i < j, for each row, all rows of one machine together; True keeps ``i``."""
    machine = pair_index(i, j, n_classes)
    order = np.argsort(machine, kind="stable")
    starts = np.flatnonzero(np.diff(machine[order], prepend=-1))
    kept = np.empty(len(rows), dtype=bool)
    for group in np.split(order, starts[1:]):
        kept[group] = answer(int(machine[group[0]]), rows[group]) > 0
    return kept


def dag(answer: Answer, n_rows: int, n_classes: int) -> NDArray[np.int64]:
    """Decide by the directed acyclic graph: ask (first, last) of the classes left, drop the loser; k-1 questions.

    Parameters
    ----------
    answer : callable
        ``answer(p, rows)`` gives the decision values of pair machine ``p`` for an array of row numbers.
    n_rows, n_classes : int
        How many rows to decide, and the number k of classes.

    Returns
    -------
    array of shape (n_rows,)
        Class indices.
    """
    first = np.zeros(n_rows, dtype=np.int64)
    last = np.full(n_rows, n_classes - 1, dtype=np.int64)
    rows = np.arange(n_rows)
    for _ in range(n_classes - 1 if n_rows else 0):
        kept = _ask(first, last, rows, n_classes, answer)
        last -= kept
        first += ~kept
    return first


def adag(answer: Answer, n_rows: int, n_classes: int) -> NDArray[np.int64]:
    """Decide by the adaptive graph: in each round first plays last, second plays second-last, and so on.

    A lone class in the middle goes through; the winners, in the order of their matches, form the next round.
    Parameters and result are those of :func:`dag`.
    """
    left = np.tile(np.arange(n_classes, dtype=np.int64), (n_rows, 1))
    rows = np.arange(n_rows)
    while left.shape[1] > 1 and n_rows:
        matches = left.shape[1] // 2
        one = left[:, :matches]
        other = left[:, ::-1][:, :matches]
        low, high = np.minimum(one, other), np.maximum(one, other)
        kept = _ask(low.ravel(), high.ravel(), np.repeat(rows, matches), n_classes, answer)
        winners = np.where(kept.reshape(n_rows, matches), low, high)
        left = np.column_stack([winners, left[:, matches : left.shape[1] - matches]])
    return left[:, 0] if n_rows else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Elimination:
    """The class that is left when pairs are asked one after the other and the loser of each is dropped."""

    rule: Literal["dag", "adag"]
    n_classes: int
    class_order: Ints | None = None

    def public_scores(self, scores: Floats) -> Floats:
        """Return the scores that are shown: the values of all pairs."""
        return scores

    def decide(self, values: Floats) -> Ints:
        """Return the number of the class that is left, by the values of all pairs."""
        if self.n_classes == 2:
            return second_of_two(values[:, 0], self.class_order)
        eliminate = dag if self.rule == "dag" else adag
        return eliminate(lambda p, rows: values[rows, p], len(values), self.n_classes)

    def predict(self, model: KernelModel, X: Matrix, threads: int) -> Ints:
        """Return the number of the class of each row; only the pairs on the path of a row are evaluated."""
        by_weights = isinstance(model, LinearModel)  # all pairs are one product
        if by_weights or self.n_classes == 2 or not model.kernel.in_core or min(X.shape[0], len(model.support)) == 0:
            return self.decide(pair_values(model, X, threads))
        bounds, accuracy = model.error_bounds, model.tolerance / 2
        classes, unsure = model.scorer.eliminate(X, self.rule, bounds, threads, accuracy)
        if len(unsure) > 0:  # rounding could decide: the rows on their own
            classes[unsure] = self.decide(pair_values(model, X[unsure], threads))
        return classes

    def decision_function(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the score of each class, or the value of the pair of two classes."""
        return pair_decision_function(self.decide(values := pair_values(model, X, threads)), values, model)
