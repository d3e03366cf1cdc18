"""Smooth losses of the scores of all classes in the primal, Zien, De Bona and Ong's among them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from polymargin.features.basis import (
    Basis,
    Examples,
    chosen_points,
    incomplete_cholesky,
    kernel_pca,
    subset,
    whole_span,
)
from polymargin.formulations.formulation import RunOptions, Solution, expansion, outcome, previous_examples
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.models import ClassLayout, KernelModel, LinearModel, Outcome
from polymargin.models.declared import declare
from polymargin.solvers import (
    Limits,
    NewtonResult,
    Objective,
    OneVsRestLoss,
    Polish,
    PrimalLoss,
    SoftmaxLoss,
    class_factor,
    minimize,
)
from polymargin.support.blocks import RowBlocks, row_blocks
from polymargin.support.examples import dense
from polymargin.support.numeric import Floats, Ints, Matrix
from polymargin.support.typing import Bias, FeatureBasis, Strategy

# Up to here a fit goes on to the limits of rounding where that is asked for, or cheap, so that the order of the rows,
# or weights in place of repeated rows, change nothing.
_SMALL = 1024
_EXACT_TOLERANCE = 1e-5  # who asks for as much is taken to ask for an exact answer, as in the core


@dataclass(frozen=True, eq=False, kw_only=True)
class PrimalOutcome(Outcome):
    """The norm of the gradient beside how the problem was solved.

    Parameters
    ----------
    gradient_norm : float
        Norm of the gradient at the end.
    """

    gradient_norm: float = declare("gradient_norm_", "number", report=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class PrimalMachine(ABC):
    """A smooth loss of class scores, on coordinates in a basis of the span of the examples.

    Parameters
    ----------
    basis : {"kpca", "cholesky", "subset"}
        The features.
    rank : int or None
        At most so many of them.
    bias : {"free", "regularized"} or None
        Whether scores have an intercept, and whether it costs something.
    """

    basis: FeatureBasis = "kpca"
    rank: int | None = None
    bias: Bias = "free"
    why_soft: ClassVar[str] = "there is no hard margin in the primal"

    @abstractmethod
    def loss(self, n_classes: int) -> PrimalLoss:
        """Return the loss of the scores of so many classes."""

    @abstractmethod
    def class_factor(self, n_classes: int) -> Floats:
        """Return B, with which the weights V of the features make scores ``B V' z``."""

    def is_joint(self, n_classes: int) -> bool:
        """Whether there is one problem for all classes, of which only differences of scores count."""
        return True

    def layout(self, n_classes: int) -> ClassLayout:
        """Return a score for each class."""
        return ClassLayout(n_classes, n_classes)

    def n_problems(self, n_classes: int) -> int | None:
        """There are Newton steps."""
        return None

    def measure(self, training: TrainingSet, kernel: Kernel) -> str:
        """The solver stops on the gap."""
        return "gap"

    def solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        """Minimise by Newton's method."""
        if not np.isfinite(training.largest_cost_bound):
            raise ValueError(f"C must be finite: {self.why_soft}")
        kernel.check_training(training.X)
        factor = self.class_factor(training.n_classes)
        started, report = time.perf_counter(), options.progress
        with row_blocks(options.threads) as blocks:
            order = training.order
            key = self.basis, self.rank, options.random_state, order.tobytes()
            basis, Z, evaluations = kernel.features(
                key, lambda: self._features(training.X, kernel, order, blocks, options)
            )
            objective = self._objective(Z, training, factor, blocks)

            def solution(result: NewtonResult) -> Solution:
                return self._solution(result, objective, basis, training, kernel, options, evaluations)

            def progress(
                done: int, total: int, steps: int, gap: float, result: Callable[[], Any] | None = None, /
            ) -> bool:
                assert report is not None
                return report(done, total, steps, gap, None if result is None else lambda: solution(result()))

            limits = Limits(
                tolerance=options.tolerance,
                total_cost=options.total_cost(training),
                max_iterations=options.max_iterations,
                time_limit=options.time_limit - (time.perf_counter() - started),
                threads=options.threads,
                progress=None if report is None else progress,
            )
            start = self._start(objective, options.start, training)
            return solution(minimize(objective, start, limits, polish=_polish(training, kernel, options)))

    def _features(
        self, X: Matrix, kernel: Kernel, order: Ints, blocks: RowBlocks, options: RunOptions
    ) -> tuple[Basis | None, Any, int]:
        """Return the basis (None where the examples themselves are the features), features, kernel evaluations."""
        if kernel.kind == "linear" and self.rank is None:
            Z = sp.csr_array(X[order]) if sp.issparse(X) else X[order]
            return None, Z.astype(np.float64), 0
        examples = Examples(X, order, kernel, options.threads)
        # All of the span is the same in any orthonormal basis, and a triangular factor is found ten times as fast as
        # eigenvectors. Where there are negative eigenvalues, only those tell the span.
        if self.basis == "kpca" and self.rank is None and kernel.definite:
            basis, Z = whole_span(examples, blocks, options.threads)
        elif self.basis == "kpca":
            basis, Z = kernel_pca(examples, self.rank)
        elif self.basis == "cholesky":
            basis, Z = incomplete_cholesky(examples, self.rank, blocks)
        else:
            points = chosen_points(len(order), self.rank, "random", options.random_state)
            basis, Z = subset(examples, points, blocks)
        return basis, Z, examples.evaluations

    def _objective(self, Z: Any, training: TrainingSet, factor: Floats, blocks: RowBlocks) -> Objective:
        n = training.n_examples
        if self.bias == "regularized":
            Z = sp.csr_array(sp.hstack([Z, np.ones((n, 1))])) if sp.issparse(Z) else np.hstack([Z, np.ones((n, 1))])
        loss = self.loss(training.n_classes)
        return Objective(Z, training.labels, training.cost_bounds, loss, factor, self.bias == "free", blocks)

    def _start(self, objective: Objective, model: KernelModel | None, training: TrainingSet) -> Floats:
        """Return the last solution, projected onto the basis, or zero."""
        example = None if model is None else previous_examples(model, training)
        if model is None or example is None:
            return np.zeros(objective.size)
        known = example >= 0
        return objective.projection(example[known], dense(model.coefficients.T[known]), model.intercepts)

    def _solution(
        self,
        result: NewtonResult,
        objective: Objective,
        basis: Basis | None,
        training: TrainingSet,
        kernel: Kernel,
        options: RunOptions,
        evaluations: int,
    ) -> Solution:
        """Return the scores as an expansion on the points of the basis, or on the features."""
        weights, intercept = objective.score_weights(result.point)
        if self.bias == "regularized":
            weights, intercept = weights[:-1], weights[-1]
        if basis is None:
            points = np.arange(training.n_examples)
            coefficients = objective.representation(result.point)
        else:
            ascending = np.argsort(basis.points)
            points = basis.points[ascending]
            coefficients = basis.coefficients[ascending] @ weights
        if self.is_joint(training.n_classes):  # a common part of all scores decides nothing
            weights, coefficients, intercept = (
                part - part.mean(axis=-1, keepdims=True) for part in (weights, coefficients, intercept)
            )
        layout = self.layout(training.n_classes)
        fields = {
            **expansion(training, kernel, points),
            "coefficients": np.ascontiguousarray(coefficients.T),
            "intercept": layout.kept(intercept),
            "layout": layout,
            "tolerance": options.tolerance,
        }
        ended = outcome(
            primal=result.primal,
            dual=result.dual,
            status=result.status,
            iterations=int(result.iterations),
            solver="newton-cg",
            evaluations=evaluations,
        )
        return Solution(
            model=KernelModel(**fields) if basis is not None else LinearModel(**fields, weights=weights),
            outcome=PrimalOutcome(**vars(ended), gradient_norm=float(result.gradient_norm)),
            by_gap=options.stop != "violation",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PrimalSoftmax(PrimalMachine):
    """A soft maximum of logistic losses, Zien et al. (1.1).

    Parameters
    ----------
    aggregation : float
        From 0 (the sum of the losses) to inf (the largest).
    class_kernel : array-like of shape (k, k) or None
        A kernel of the classes, Zien et al. (1.2).
    strategy : {"joint", "one-vs-rest"}
        One problem, or one for each class.
    """

    aggregation: float = 1.0
    class_kernel: Any = None
    strategy: Strategy = "joint"
    why_soft: ClassVar[str] = "the logistic loss is never zero, so there is no hard margin"

    def loss(self, n_classes: int) -> PrimalLoss:
        """Return the loss of the scores of so many classes."""
        return SoftmaxLoss(self.aggregation) if self.is_joint(n_classes) else OneVsRestLoss()

    def is_joint(self, n_classes: int) -> bool:
        """Whether there is one problem for all classes; one class against the rest of one is both."""
        return self.strategy == "joint" or n_classes == 2

    def class_factor(self, n_classes: int) -> Floats:
        """Return a factor B of the kernel of the classes, BB'."""
        if self.class_kernel is not None:
            if self.strategy != "joint":
                raise ValueError("class_kernel needs strategy='joint': binary problems know nothing of each other")
            return class_factor(self.class_kernel, n_classes)
        # A binary problem has scores +s and -s of one weight vector where the joint problem has two: half the norm.
        return np.eye(n_classes) if self.is_joint(n_classes) else np.eye(n_classes) / np.sqrt(2.0)


def _polish(training: TrainingSet, kernel: Kernel, options: RunOptions) -> Polish:
    """Return how far to go for an exact answer; examples of a class that have weights are to count as so many."""
    if training.n_examples > _SMALL or not kernel.refine:
        return "never"
    costs, firsts = training.cost_bounds, training.class_starts[:-1]
    weighted = bool(np.any(np.maximum.reduceat(costs, firsts) > np.minimum.reduceat(costs, firsts)))
    return "always" if weighted or options.tolerance <= _EXACT_TOLERANCE else "cheap"
