"""What a search knows before any work: examples, folds, kernels, and the memory for their matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from polymargin.kernels import Kernel, uses_gamma
from polymargin.selection.evaluation import Evaluation, Fold
from polymargin.selection.kernel_matrices import BLOCK_BYTES, KernelMatrices, pattern_of_ones
from polymargin.selection.plan import KernelGroup, Plan
from polymargin.support.examples import checked_examples
from polymargin.support.numeric import Matrix

_ROWS = 64  # that show what a kernel will be


@dataclass(frozen=True)
class KernelUse:
    """A kernel with the candidates that have it and the folds on which they do: all, or one if gamma depends on it."""

    group: KernelGroup
    kernel: Kernel
    folds: list[Fold]

    def repeats(self, other: KernelUse) -> bool:
        """Whether the candidates and the folds are those of another one but for the width of the kernel."""
        numbers = [fold.number for fold in other.folds]
        return [fold.number for fold in self.folds] == numbers and self.group.repeats(other.group)


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that a search needs, checked and divided, and the memory that it may take: known before any work."""

    plan: Plan
    X: Any
    y: Any
    params: dict[str, Any]
    splits: list[Any]
    refit_metric: str
    evaluation: Evaluation
    ordered: Any  # examples in the order in which kernel matrices have them
    ordered_y: NDArray[Any]
    folds: list[Fold]
    fit_params: dict[str, Any]
    rows: Matrix | None  # the examples as machines get them, None if there are steps before
    threads: int

    @cached_property
    def matrices_at_once(self) -> int:
        """How many kernel matrices there may be at a time; 0 if not one fits."""
        matrix_bytes = self._matrix_bytes
        kernels = len(self.plan.groups) * len(self.folds)  # at most, where gamma depends on the fold
        wanted = max(1, min(kernels, BLOCK_BYTES // max(1, matrix_bytes)))
        return self.plan.matrices_at_once(matrix_bytes, wanted, self.threads)

    @cached_property
    def _matrix_bytes(self) -> int:
        """The memory of a kernel matrix, at most: values may be in single precision, which steps before hide."""
        n = len(self.ordered_y)
        if self.rows is None:
            return 8 * n**2 if any(group.needs_kernel(n) for group in self.plan.groups) else 0
        return 0 if self._family is None else self._family.matrix_bytes

    @cached_property
    def _family(self) -> KernelMatrices | None:
        """What computes the matrices where all folds have the same examples, if any are needed."""
        uses = self.uses(self.rows, self.folds)
        return self._matrices(self.rows, uses) if uses else None

    def too_large(self) -> str:
        """Return why kernel matrices cannot be shared."""
        needed = self._matrix_bytes * (2 + self.threads)
        return (
            f"kernel matrices of {len(self.ordered_y)} examples take {needed / 1e6:.0f} MB, more than "
            f"cache_size={self.plan.smallest_cache()} allows"
        )

    def views(self) -> Iterator[tuple[Matrix, list[Fold]]]:
        """Yield the examples as machines get to see them: once for all folds, or with steps before them for each."""
        if self.rows is not None:
            yield self.rows, self.folds
            return
        machine = clone(self.plan.groups[0].machine)
        for fold in self.folds:
            steps = clone(self.plan.steps).fit(_safe_indexing(self.ordered, fold.train), fold.y_train)
            transformed = steps.transform(self.ordered)
            yield checked_examples(machine, transformed, self.ordered_y, reset=True)[0], [fold]

    def uses(self, rows: Matrix, folds: list[Fold]) -> list[KernelUse]:
        """Return the kernels that are trained on."""
        groups = [group for group in self.plan.groups if group.needs_kernel(rows.shape[0])]
        return [use for group in groups for use in _by_kernel(group, rows, folds)]

    def family(self, rows: Matrix, uses: list[KernelUse]) -> KernelMatrices:
        """Return what computes the matrices of all kernels."""
        return self._family if rows is self.rows and self._family is not None else self._matrices(rows, uses)

    def _matrices(self, rows: Matrix, uses: list[KernelUse]) -> KernelMatrices:
        exact = [(use.kernel, *use.group.exactness(self.ordered_y, self.fit_params)) for use in uses]
        return KernelMatrices(rows, exact, self.threads)


def probable_repeats(rows: Matrix, uses: list[KernelUse], dtype: np.dtype[Any]) -> Iterator[KernelUse]:
    """Yield the uses that will cost nothing, as far as some rows of their kernels show: see `pattern_of_ones`."""
    n = rows.shape[0]
    some = np.unique(np.linspace(0, n - 1, min(n, _ROWS)).astype(np.int64))
    seen: dict[bytes, KernelUse] = {}
    for use in uses:
        if use.kernel.precomputed or callable(use.kernel.kind):
            continue
        pattern = pattern_of_ones(use.kernel.matrix(rows, some, rows, np.arange(n), 1, dtype))
        if pattern is not None and (twin := seen.setdefault(pattern, use)) is not use and use.repeats(twin):
            yield use


def prepared_folds(
    splits: list[Any], y: NDArray[Any], place: NDArray[np.int64], evaluation: Evaluation, X: Any
) -> list[Fold]:
    """Return the folds, their examples numbered as in the kernel matrices."""
    with_train = evaluation.with_train_score
    return [
        Fold(
            number,
            place[train],
            place[test],
            y[train],
            y[test],
            evaluation.fit_parameters(X, train),
            evaluation.score_parameters(X, test),
            evaluation.score_parameters(X, train) if with_train else {},
        )
        for number, (train, test) in enumerate(splits)
    ]


def kernel_of(machine: Any, X: Matrix, weight: Any) -> Kernel:
    """Return the kernel of a machine on some training examples."""
    return Kernel.resolved(machine.kernel, machine.gamma, machine.coef0, machine.degree, X, weight)


def _by_kernel(group: KernelGroup, rows: Matrix, folds: list[Fold]) -> Iterator[KernelUse]:
    """Yield the kernel of a group with the folds that have it: all, unless gamma depends on the training part."""
    machine = group.machine
    own = isinstance(machine.gamma, str) and uses_gamma(machine.kernel)
    for part in [[fold] for fold in folds] if own else [folds]:
        weight = part[0].fit_params.get("sample_weight") if own else None
        yield KernelUse(group, kernel_of(machine, rows[part[0].train] if own else rows, weight), part)
