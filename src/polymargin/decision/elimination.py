"""Decisions that ask one pair at a time and drop the loser: DAGSVM (Platt et al.) and ADAG (Wang & Huang 2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from polymargin.decision.votes import pair_index

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
