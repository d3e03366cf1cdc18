"""The hinges of linear machines, as products with a matrix that is never formed.

A hinge of an example is ``max(0, M - margin)``, with a margin that is linear in the weights V: a score with a sign, or
the score of the own class minus that of another. Its dual variables are those of the margins. With X the examples, one
factor for each hinge and a sum over those of an example, the products that an interior-point method needs are

- ``margins(V)``, a row for each example,
- ``weights(a)``, the transposed product: the weights that variables stand for,
- ``normal(T, shared)``, the matrix of the quadratic form ``sum_i dm_i' G_i dm_i`` in the change of V, where ``dm_i``
  are the changes of the margins of example i, ``G = diag(T) - shared T T' / (1 + shared sum T)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from polymargin.support.numeric import Bools, Floats, Ints

_NEGLIGIBLE = 1e-6  # of the matrix, in all


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
        return float(np.mean(self._squares)) or 1.0

    @cached_property
    def _squares(self) -> Floats:
        squares: Floats = np.sum(self.X * self.X, axis=1)
        return squares

    def curved(self, T: Floats) -> Ints:
        """Return the examples that count beside a penalty of 1: without the others a matrix is as good, and cheaper."""
        weights = T.max(axis=1) * self._squares
        return np.flatnonzero(weights > _NEGLIGIBLE * min(1.0, float(weights.max(initial=0.0))) / len(T))


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
        rows = self.curved(T)
        rooted = self.X[rows] * np.sqrt(T[rows] / (1.0 + shared[rows, None] * T[rows]))
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

        Nothing is formed as a difference: rounding must not be of the size of factors that are to be large.
        """
        rows = self.curved(T)
        X, labels, T, shared = self.X[rows], self.labels[rows], T[rows], shared[rows]
        own = np.arange(len(labels)), labels
        sums = T.sum(axis=1)
        share = 1.0 / (1.0 + shared * sums)
        others = np.hstack([np.zeros((len(T), 1)), np.cumsum(T, axis=1)[:, :-1]])
        others[:, :-1] += np.cumsum(T[:, :0:-1], axis=1)[:, ::-1]
        diagonal = T * (1.0 + shared[:, None] * others) * share[:, None]
        diagonal[own] = sums * share
        k, d = self.columns, X.shape[1]
        M = self._coupled(X, T, shared, share, own) if np.any(shared) else np.zeros((k * d, k * d))
        for c in range(k):
            if not go_on():
                return None
            mine = slice(c * d, (c + 1) * d)
            rooted = X * np.sqrt(diagonal[:, c, None])
            M[mine, mine] = rooted.T @ rooted
            for e in range(c + 1, k):
                theirs = slice(e * d, (e + 1) * d)
                for label, other in ((c, e), (e, c)):
                    members = np.flatnonzero((labels == label) & (shared == 0.0))
                    part = X[members]
                    M[mine, theirs] -= (part * T[members, other, None]).T @ part
        return M

    def _coupled(self, X: Floats, T: Floats, shared: Floats, share: Floats, own: tuple[Ints, Ints]) -> Floats:
        """Return the blocks of two classes, of examples whose variables have a sum that is limited."""
        factor = T * np.sqrt(share * shared)[:, None]
        factor[own] = np.sqrt(np.where(shared > 0.0, share / np.where(shared > 0.0, shared, 1.0), 0.0))
        used = shared > 0.0
        wide = (factor[used, :, None] * X[used, None, :]).reshape(np.count_nonzero(used), -1)
        return -(wide.T @ wide)
