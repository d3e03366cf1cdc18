r"""The primal objective of a machine on finite features, with derivatives and a lower bound of its optimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import bandwidth, cho_solve

from polymargin.solvers.primal_losses import PrimalLoss
from polymargin.support.blocks import RowBlocks
from polymargin.support.factorisation import factorise
from polymargin.support.numeric import Floats, Ints

_BLOCK_NUMBERS = 2**20  # of a block of features: a part of the cache
_CALL_NUMBERS = 2**30  # multiplications of a call that nobody can interrupt: some hundredths of a second
Part = tuple[float, Floats, Floats]  # of a block of rows: a value, the pullback Z'GB, and the column sums of G


class Objective:
    r"""What is minimised, as a function of one vector that holds V and, if it is free, b.

    .. math:: P(V, b) = \tfrac12 \|V\|^2 + \sum_i C_i \, L(s_i, y_i), \qquad s_i = B V' z_i + b,

    with features :math:`z_i` (Z is n x r), weights V (r x q), and a factor B (k x q) of the kernel of the classes,
    :math:`K_Y = B B'`. Let G be the slopes :math:`C_i \, \partial L / \partial s_i` (n x k). The gradient is
    :math:`V + Z' G B` in V and :math:`G' 1` in b.

    **The bound.** G is also a point of the dual: by Fenchel's inequality, for a convex loss,

    .. math:: P^* \ge D(G) = \sum_i C_i L(s_i, y_i) - \langle S, G \rangle - \tfrac12 \|Z' G B\|^2
              = P(V, b) - \tfrac12 \|V + Z' G B\|^2 - b' G' 1,

    provided that :math:`G' 1 = 0` if b is free. Without b it is the objective less half the squared gradient, as strong
    convexity has it too. With it, G is first balanced: :math:`G_t = (1 - t) G + t F`, see :meth:`PrimalLoss.balance`,
    where the conjugate of the loss is convex and at most 0 at F, so that

    .. math:: P^* \ge (1 - t) \Bigl(\sum_i C_i L(s_i, y_i) - \langle S, G \rangle\Bigr) - \tfrac12 \|Z' G_t B\|^2 .

    Parameters
    ----------
    Z : {ndarray, CSR} of shape (n, r)
        Features.
    labels : ndarray of shape (n,)
        Classes, 0 to k - 1.
    costs : ndarray of shape (n,)
        Costs :math:`C_i`.
    loss : PrimalLoss
        The loss.
    factor : ndarray of shape (k, q)
        B.
    free_bias : bool
        Whether there is a b.
    blocks : RowBlocks
        Threads.
    """

    def __init__(
        self,
        Z: Any,
        labels: Ints,
        costs: Floats,
        loss: PrimalLoss,
        factor: Floats,
        free_bias: bool,
        blocks: RowBlocks,
    ) -> None:
        self.Z = Z
        self.labels = labels
        self.costs = costs
        self.loss = loss
        self.factor = factor
        self.free_bias = free_bias
        self.n_classes: int = len(factor)
        self.shape: tuple[int, int] = (Z.shape[1], factor.shape[1])
        self._n_weights: int = Z.shape[1] * factor.shape[1]
        self._blocks = blocks
        self._last: tuple[Floats, float, Floats] | None = None  # a point with its value and gradient
        # In a triangular basis the first rows have few features.
        self._upper: int | None = None if sp.issparse(Z) else int(bandwidth(Z)[1])
        self._step = _block_rows(Z)
        self._curvature: dict[int, Any] = {}  # of each block, by its first row
        self.damping: float = 1.0  # of second derivatives where the loss is straight
        self._totals = np.bincount(labels, weights=costs, minlength=self.n_classes).astype(np.float64)
        self._class_sums: Floats | None = None

    @property
    def size(self) -> int:
        """The number of variables."""
        return self._n_weights + (self.n_classes if self.free_bias else 0)

    @property
    def stiffness(self) -> float:
        """The mean of the costs times the squared norms of the features: how much more losses bend than the norm."""
        squares = self.Z.multiply(self.Z).sum(axis=1) if sp.issparse(self.Z) else np.einsum("ij,ij->i", self.Z, self.Z)
        return float(self.costs @ np.asarray(squares).ravel()) / len(self.labels)

    @property
    def product_work(self) -> float:
        """Operations of a product with the Hessian."""
        numbers = self.Z.nnz if sp.issparse(self.Z) else self.Z.size
        return float(4 * numbers * self.shape[1])

    def split(self, point: Floats) -> tuple[Floats, Floats]:
        """Return V and b of a point; b is 0 where it is not free."""
        b = point[self._n_weights :] if self.free_bias else np.zeros(self.n_classes)
        return point[: self._n_weights].reshape(self.shape), b

    def join(self, V: Floats, b: Floats) -> Floats:
        """Return the point that V and b make."""
        return np.concatenate([V.ravel(), b]) if self.free_bias else V.ravel().copy()

    def _derivative(self, V: Floats, b: Floats) -> Floats:
        """Return a derivative; what rounding leaves of a common shift of b, along which nothing changes, is removed."""
        return self.join(V, b - b.sum() / len(b) if self.loss.relative else b)

    def score_weights(self, point: Floats) -> tuple[Floats, Floats]:
        """Return the weights of the features in each class score, r x k, and the intercepts."""
        V, b = self.split(point)
        return V @ self.factor.T, b

    def projection(self, examples: Ints, coefficients: Floats, b: Floats) -> Floats:
        """Return the point nearest to the scores that expand on some examples with coefficients (examples x k)."""
        weights = np.asarray(self.Z[examples].T @ coefficients)
        return self.join(weights @ np.linalg.pinv(self.factor).T, b)

    def representation(self, point: Floats) -> Floats:
        """Return coefficients of all examples (n x k) whose expansion has, at the optimum, the scores of the point."""
        V, b = self.split(point)

        def slopes(block: slice) -> Floats:
            return self.loss.evaluate(self._product(V, b, block), self.labels[block]).slopes * self.costs[block, None]

        G = np.concatenate(list(self._blocks.map(slopes, len(self.labels), self._step)))
        return -G @ self.factor @ self.factor.T

    def _product(self, V: Floats, b: Floats, block: slice) -> Floats:
        weights = V @ self.factor.T
        if self._upper is None:
            return np.asarray(self.Z[block] @ weights) + b
        used = block.stop + self._upper
        scores: Floats = self.Z[block, :used] @ weights[:used] + b
        return scores

    def _transposed(self, G: Floats, block: slice) -> Floats:
        if self._upper is None:
            return np.asarray(self.Z[block].T @ (G @ self.factor))
        used = block.stop + self._upper
        pullback = np.zeros(self.shape)
        pullback[:used] = self.Z[block, :used].T @ (G @ self.factor)
        return pullback

    def _sum(self, function: Callable[[slice], Part]) -> Part:
        """Add up what a function returns for the blocks, in their order."""
        parts = iter(self._blocks.map(function, len(self.labels), self._step))
        value, pullback, sums = next(parts)
        for part in parts:
            value += part[0]
            pullback += part[1]
            sums += part[2]
        return value, pullback, sums

    def value_and_gradient(self, point: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient, which is kept for the next question and not to be changed."""
        if self._last is not None and (point == self._last[0]).all():
            return self._last[1:]
        V, b = self.split(point)
        self._last = None

        def evaluate(block: slice) -> Part:
            values, slopes, curvature = self.loss.evaluate(self._product(V, b, block), self.labels[block])
            slopes *= self.costs[block, None]
            self._curvature[block.start] = curvature
            return float(self.costs[block] @ values), self._transposed(slopes, block), slopes.sum(axis=0)

        value, pullback, sums = self._sum(evaluate)
        value += 0.5 * float(V.ravel() @ V.ravel())
        self._last = point.copy(), value, self._derivative(V + pullback, sums)
        return self._last[1:]

    def _curvature_of(self, block: slice) -> Any:
        return self.loss.damped(self._curvature[block.start], self.damping)

    def hessian_product(self, point: Floats, direction: Floats) -> Floats:
        """Return the product of the Hessian at a point with a direction."""
        self.value_and_gradient(point)  # leaves the curvature there
        D, d = self.split(direction)

        def multiply(block: slice) -> Part:
            moved = self.loss.product(self._curvature_of(block), self.labels[block], self._product(D, d, block))
            moved *= self.costs[block, None]
            return 0.0, self._transposed(moved, block), moved.sum(axis=0)

        _, pullback, sums = self._sum(multiply)
        return self._derivative(D + pullback, sums)

    def mean_curvature(self, point: Floats) -> Floats:
        """Return, for each example, its cost times the mean second derivative of its loss in the scores."""
        self.value_and_gradient(point)  # leaves the curvature there
        parts = []
        for block in self._blocks.map(lambda block: block, len(self.labels), self._step):
            labels, total = self.labels[block], np.zeros(block.stop - block.start)
            for c in range(self.n_classes):
                direction = np.zeros((len(labels), self.n_classes))
                direction[:, c] = 1.0
                total += self.loss.product(self._curvature_of(block), labels, direction)[:, c]
            # Where only differences count, one of the directions is flat.
            parts.append(self.costs[block] * total / (self.n_classes - self.loss.relative))
        return np.concatenate(parts)

    def preconditioner(self, point: Floats, go_on: Callable[[], bool]) -> Callable[[Floats], Floats] | None:
        r"""Return an approximate inverse of the Hessian: that of a loss with one curvature for all classes.

        .. math:: (I + \beta Z' \mathrm{diag}(h) Z)^{-1}

        for the weights of every class, :math:`\beta` the mean square of a row of B and h the mean curvature, and
        :math:`1 / \sum_i h_i` for b. None if ``go_on`` says no.
        """
        h = np.maximum(self.mean_curvature(point), 0.0)  # a loss need not be convex
        beta = float(np.sum(self.factor**2)) / self.factor.shape[1]
        M = np.eye(self.shape[0])

        def fill(strip: slice) -> None:
            first = max(0, strip.start - (self._upper or 0))  # above, a triangular basis has nothing
            weighted = self.Z[first:, strip] * (beta * h[first:])[:, None]
            M[strip, : strip.stop] += weighted.T @ self.Z[first:, : strip.stop]

        width = int(np.clip(_CALL_NUMBERS // self.Z.size, 32, 256))
        for _ in self._blocks.map(fill, len(M), width):
            if not go_on():
                return None
        if not factorise(M, self._blocks.threads, go_on):
            return None
        inverse_sum = 1.0 / max(float(h.sum()), np.finfo(float).eps * float(self._totals.sum()))

        def solve(direction: Floats) -> Floats:
            V, b = self.split(direction)
            # the transpose is LAPACK's order: no copy
            return self.join(cho_solve((M.T, False), V, check_finite=False), b * inverse_sum)

        return solve

    def exact_inverse(self, point: Floats, go_on: Callable[[], bool]) -> Callable[[Floats], Floats] | None:
        r"""Return the inverse of the Hessian of a loss of differences of scores; None if ``go_on`` says no.

        With b = B t, and a feature 1 for t, it is :math:`\operatorname{diag}(1, 0) + \sum_i C_i \, z_i z_i' \otimes
        B' H_i B`, where H_i is the Hessian of the loss of example i.
        """
        self.value_and_gradient(point)  # leaves the curvature there
        (r, q), n_free = self.shape, int(self.free_bias)
        M = np.zeros((r + n_free, q, r + n_free, q))
        M[range(r), :, range(r), :] = np.eye(q)
        for block in self._blocks.map(lambda block: block, len(self.labels), self._step):
            Z = self.Z[block].toarray() if sp.issparse(self.Z) else self.Z[block]
            Z = np.hstack([Z, np.ones((len(Z), n_free))])
            H = self._class_hessians(block)
            for a in range(q):
                for b in range(a + 1):
                    if not go_on():
                        return None
                    M[:, a, :, b] += Z.T @ (Z * H[:, a, b, None])
        for a in range(q):
            for b in range(a):
                M[:, b, :, a] = M[:, a, :, b]
        factor = M.reshape((r + n_free) * q, -1)
        factor[np.diag_indices_from(factor)] += np.finfo(float).eps * np.trace(factor)  # rounding leaves it definite
        if not factorise(factor, self._blocks.threads, go_on):
            return None

        def solve(direction: Floats) -> Floats:
            V, b = self.split(direction)
            parts = np.vstack([V, (b @ self.factor)[None]]) if n_free else V
            solved = cho_solve((factor.T, False), parts.ravel(), check_finite=False).reshape(-1, q)
            return self.join(solved[:r], self.factor @ solved[-1])

        return solve

    def _class_hessians(self, block: slice) -> Floats:
        """Return C_i B' H_i B of the examples of a block."""
        curvature, labels = self._curvature_of(block), self.labels[block]
        products = [
            self.loss.product(curvature, labels, np.tile(column, (len(labels), 1))) @ self.factor
            for column in self.factor.T
        ]
        return np.stack(products, axis=1) * self.costs[block, None, None]

    def with_loss(self, loss: PrimalLoss) -> Objective:
        """Return the objective with another loss."""
        return Objective(self.Z, self.labels, self.costs, loss, self.factor, self.free_bias, self._blocks)

    def bound(self, point: Floats, softer: PrimalLoss | None = None) -> float:
        """Return a lower bound of the objective's minimum, from a point where a softer loss was minimised."""
        V, b = self.split(point)

        def evaluate(block: slice) -> Part:
            scores = self._product(V, b, block)
            values, slopes = self.loss.minorant(scores, self.labels[block], softer)
            G = slopes * self.costs[block, None]
            value = float(self.costs[block] @ values) - float(np.sum(scores * G))
            return value, self._transposed(G, block), G.sum(axis=0)

        linear, pullback, sums = self._sum(evaluate)
        share = 0.0
        if self.free_bias:
            share, F = self.loss.balance(sums, self._totals)
            pullback = (1.0 - share) * pullback + share * self._class_pullback(F)
        return (1.0 - share) * linear - 0.5 * float(np.sum(pullback * pullback))

    def distance_to_bound(self, value: float, gradient: Floats) -> float:
        """Estimate how far below a convex objective its bound is, without a pass over the data."""
        V, b = self.split(gradient)
        share = self.loss.balance(b, self._totals)[0] if self.free_bias else 0.0
        return 0.5 * float(V.ravel() @ V.ravel()) + share * abs(value)

    def _class_pullback(self, F: Floats) -> Floats:
        """Return Z'GB where every example has the slopes F of its class, times its cost."""
        if self._class_sums is None:
            rows = np.arange(len(self.labels))
            shares = sp.csr_array((self.costs, (rows, self.labels)), shape=(len(self.labels), self.n_classes))
            product = self.Z.T @ shares
            self._class_sums = product.toarray() if sp.issparse(product) else np.asarray(product)
        return self._class_sums @ F @ self.factor


def _block_rows(Z: Any) -> int:
    """Return how many rows make a block: enough for BLAS, and where they are long, blocks for several threads."""
    return int(np.clip(_BLOCK_NUMBERS // max(1, Z.shape[1]), 256, 2048)) if isinstance(Z, np.ndarray) else 2048


def class_factor(kernel: Any, n_classes: int) -> Floats:
    """Return B with BB' the kernel of the classes, or raise ValueError if it is none."""
    K = np.asarray(kernel, dtype=np.float64)
    if K.shape != (n_classes, n_classes):
        raise ValueError(
            f"class_kernel must have a row and a column for each class, {n_classes} x {n_classes}, got {K.shape}"
        )
    if not np.all(np.isfinite(K)) or not np.allclose(K, K.T):
        raise ValueError("class_kernel must be finite and symmetric")
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    small = n_classes * np.finfo(float).eps * max(abs(values[0]), abs(values[-1]))
    if not values[-1] > 0 or values[0] < -100 * small:
        raise ValueError(
            f"class_kernel must be positive semi-definite and not zero; its smallest eigenvalue is {values[0]:.3g}, "
            f"its largest {values[-1]:.3g}"
        )
    kept = values > small
    factor: Floats = vectors[:, kept] * np.sqrt(values[kept])
    return factor
