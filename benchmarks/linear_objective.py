"""The primal objective of a linear machine, from nothing but the data and somebody's weights, in float64.

The race is judged by this one function: no solver's own account of its objective is believed.
"""

from collections.abc import Callable, Iterator

import numpy as np
from linear_data import LinearData, Matrix
from numpy.typing import NDArray

BLOCK = 2**22
"""Scores that are looked at together: thousands of classes must not need a matrix of all of them."""


def own_scores(scores: NDArray, y: NDArray) -> NDArray:
    """The score of every row's own class."""
    return np.take_along_axis(scores, y[:, None], axis=1)


def crammer_singer(scores: NDArray, y: NDArray) -> float:
    """Sum over rows of max_m (s_m + [m != y]) - s_y."""
    own = own_scores(scores, y)
    rivals = scores + 1
    np.put_along_axis(rivals, y[:, None], own, axis=1)
    return float((rivals.max(axis=1) - own[:, 0]).sum())


def weston_watkins(scores: NDArray, y: NDArray) -> float:
    """Sum over rows and rivals m != y of max(0, 1 - (s_y - s_m))."""
    slack = np.maximum(0, scores - own_scores(scores, y) + 1)
    return float(slack.sum() - len(y))  # the own class adds exactly one


def one_vs_rest(scores: NDArray, y: NDArray) -> float:
    """Sum over rows and classes of the binary hinge, the own class positive and all others negative."""
    own = own_scores(scores, y)
    every = np.maximum(0, 1 + scores).sum()
    return float(every - np.maximum(0, 1 + own).sum() + np.maximum(0, 1 - own).sum())


LOSSES: dict[str, Callable[[NDArray, NDArray], float]] = {
    "crammer-singer": crammer_singer,
    "weston-watkins": weston_watkins,
    "one-vs-rest": one_vs_rest,
}


def blocks(X: Matrix, W: NDArray) -> Iterator[tuple[slice, NDArray]]:
    """Scores of the rows, some rows at a time; `W` is classes x features."""
    columns = np.ascontiguousarray(W.T, dtype=np.float64)
    step = max(1, BLOCK // columns.shape[1])
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        yield rows, X[rows] @ columns


def primal(machine: str, data: LinearData, W: NDArray, C: float) -> float:
    """1/2 ||W||^2 + C times the loss of the training rows."""
    loss = sum(LOSSES[machine](scores, data.y_train[rows]) for rows, scores in blocks(data.X_train, W))
    return 0.5 * float(np.square(W, dtype=np.float64).sum()) + C * loss


def rate(data: LinearData, W: NDArray) -> float:
    """Test rows whose own class has the largest score, per cent."""
    right = sum((scores.argmax(axis=1) == data.y_test[rows]).sum() for rows, scores in blocks(data.X_test, W))
    return 100 * float(right) / data.X_test.shape[0]
