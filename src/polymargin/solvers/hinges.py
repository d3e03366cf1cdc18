"""The hinges of linear machines, as products with a matrix that is never formed.

A hinge of an example is ``max(0, M - margin)``, with a margin that is linear in the weights V: a score with a sign, or
the score of the own class minus that of another. Its dual variables are those of the margins. With X the examples, one
factor for each hinge and a sum over those of an example, the products that an interior-point method needs are

- ``margins(V)``, a row for each example,
- ``weights(a)``, the transposed product: the weights that variables stand for,
- ``normal(T, shared)``, the matrix of the quadratic form ``sum_i dm_i' G_i dm_i`` in the change of V, where ``dm_i`` are
  the changes of the margins of example i, ``G = diag(T) - shared T T' / (1 + shared sum T)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from polymargin.support.numeric import Bools, Floats, Ints


class Hinges(Protocol):
    """What an interior-point method asks of hinges."""

    @property
    def used(self) -> Bools:
        """Which places of the array of margins are a hinge, (n, q)."""

    @property
    def columns(self) -> int:
        """The columns of V."""

    @property
    def size(self) -> float:
        """The mean squared length of an example."""

    def margins(self, V: Floats) -> Floats:
        """Return the margin of every hinge, (n, q); 0 where there is none."""

    def weights(self, a: Floats) -> Floats:
        """Return the transposed product, (d, columns); ``a`` is 0 where there is no hinge."""

    def normal(self, T: Floats, shared: Floats, go_on: Callable[[], bool]) -> Floats | None:
        """Return the upper part of the matrix, in the order of V's columns; None if asked not to go on."""


@dataclass(frozen=True, eq=False)
class _Examples:
    """What hinges are made of."""

    X: Floats  # (n, d)

    @property
    def size(self) -> float:
        """The mean squared length of an example; 1 if there is nothing but zeros."""
        return float(np.mean(np.sum(self.X * self.X, axis=1))) or 1.0


@dataclass(frozen=True, eq=False)
class SignedScores(_Examples):
    """A hinge for each example, whose margin is the score times a sign."""

    signs: Floats  # (n,)

    @property
    def used(self) -> Bools:
        """Every example has one."""
        return np.ones((len(self.X), 1), dtype=bool)

    @property
    def columns(self) -> int:
        """One score."""
        return 1

    def margins(self, V: Floats) -> Floats:
        """Return the scores times the signs."""
        margins: Floats = self.signs[:, None] * (self.X @ V)
        return margins

    def weights(self, a: Floats) -> Floats:
        """Return the sum of the examples, each times its variable and its sign."""
        weights: Floats = self.X.T @ (self.signs[:, None] * a)
        return weights

    def normal(self, T: Floats, shared: Floats, go_on: Callable[[], bool]) -> Floats | None:
        """Return ``X' G X``."""
        rooted = self.X * np.sqrt(T / (1.0 + shared[:, None] * T))
        return rooted.T @ rooted if go_on() else None


@dataclass(frozen=True, eq=False)
class Differences(_Examples):
    """A hinge for each example and wrong class, whose margin is the score of the own class minus that of the other."""

    labels: Ints  # (n,)
    columns: int

    @property
    def used(self) -> Bools:
        """All but the own class."""
        used = np.ones((len(self.X), self.columns), dtype=bool)
        used[self._own] = False
        return used

    @property
    def _own(self) -> tuple[Ints, Ints]:
        return np.arange(len(self.labels)), self.labels

    def margins(self, V: Floats) -> Floats:
        """Return the differences of the scores."""
        scores = self.X @ V
        margins: Floats = scores[self._own][:, None] - scores
        return margins

    def weights(self, a: Floats) -> Floats:
        """Return the sum of the examples, each times its row of coefficients."""
        B = -a
        B[self._own] = a.sum(axis=1)
        weights: Floats = self.X.T @ B
        return weights

    def normal(self, T: Floats, shared: Floats, go_on: Callable[[], bool]) -> Floats | None:
        """Return the matrix, a block for each two classes.

        The sums without a class, of which rounding must not be of the size of the others, are formed without it.
        """
        k, d = self.columns, self.X.shape[1]
        M = np.zeros((k * d, k * d))
        others = np.hstack([np.zeros((len(T), 1)), np.cumsum(T, axis=1)[:, :-1]])
        others[:, :-1] += np.cumsum(T[:, :0:-1], axis=1)[:, ::-1]
        share = 1.0 / (1.0 + shared * T.sum(axis=1))
        diagonal = T * (1.0 + shared[:, None] * others) * share[:, None]
        diagonal[self._own] = T.sum(axis=1) * share
        coupled = T.copy()
        coupled[self._own] = 1.0
        for c in range(k):
            for e in range(c, k):
                if not go_on():
                    return None
                block = slice(c * d, (c + 1) * d), slice(e * d, (e + 1) * d)
                if c == e:
                    rooted = self.X * np.sqrt(diagonal[:, c, None])
                    M[block] = rooted.T @ rooted
                    continue
                beside = (self.labels == c) | (self.labels == e)
                weight = coupled[:, c] * coupled[:, e] * share * np.where(beside, 1.0, shared)
                rows = np.flatnonzero(weight)
                M[block] = -(self.X[rows] * weight[rows, None]).T @ self.X[rows]
        return M
