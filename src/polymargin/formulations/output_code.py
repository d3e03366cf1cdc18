"""A binary problem for each column of a code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polymargin import _core
from polymargin.decision import code_defect
from polymargin.formulations.binary import solve_binary
from polymargin.formulations.family import CostFamily
from polymargin.formulations.folds import folds_of
from polymargin.formulations.formulation import PairsSolution, RunOptions
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.models import CodeLayout, pair_list
from polymargin.support.numeric import Ints

Code = NDArray[np.int8]
_MOST_EXHAUSTIVE = 11  # classes with which 1,023 problems are all there are
_DRAWS = 100  # random codes, of which the best is taken
_PROBLEMS = {"dense": 10, "sparse": 15}  # times log2(k): Allwein, Schapire & Singer, 6
_MOST_LISTED = 2200  # columns that are listed, and some of them chosen, rather than drawn one by one
_LISTED_FOR_EACH = 16  # the same where many are wanted: nearly all of few are not to be drawn by chance
_MOST_ENTRIES = 1 << 28


@dataclass(frozen=True, eq=False)
class OutputCode:
    """Hsu & Lin (1) for each column of a code, positive and negative examples being those of the classes it says.

    Parameters
    ----------
    code : str or array of shape (k, n_problems)
        The code, or how it is made.
    code_size : float or None
        Problems of a random code, as a multiple of the number of classes; None: 10 log2(k) for dense and 15 log2(k) for
        sparse ones.
    held_out : bool
        Whether every problem is solved again without each of five folds, for the decision values of held-out examples.
    """

    code: str | ArrayLike = "one-vs-one"
    code_size: float | None = None
    held_out: bool = False

    def layout(self, n_classes: int, code: NDArray[Any] | None = None) -> CodeLayout:
        """Return a score for each column of the code."""
        return CodeLayout(self.matrix(n_classes, 0) if code is None else code.astype(np.int8, copy=False))

    def n_problems(self, n_classes: int) -> int:
        """Return the number of columns."""
        return int(self.matrix(n_classes, 0).shape[1])

    def matrix(self, n_classes: int, seed: int) -> Code:
        """Return the code; raise ValueError if it cannot be one for so many classes."""
        if isinstance(self.code, str):
            return made_code(self.code, n_classes, self.code_size, seed)
        given = np.asarray(self.code)
        defect = code_defect(given, n_classes)
        if defect is not None:
            raise ValueError(f"code {defect}")
        return given.astype(np.int8)

    @property
    def drops_by_cost(self) -> bool:
        """Whether an example with the cost 0 takes no part, so that folds can be solved on one matrix."""
        return True

    def measure(self, training: TrainingSet, kernel: Kernel) -> str:
        """Solvers stop on the violation of Hsu & Lin (22)."""
        return "violation"

    @property
    def is_family(self) -> bool:
        """Whether it is a family of binary problems and nothing more, so that many costs can be solved by one call."""
        return not self.held_out

    def problems(self, class_starts: Ints) -> _core.BinaryProblems:
        """Return the problems of all columns."""
        return code_problems(self.matrix(len(class_starts) - 1, 0), class_starts)

    def family(
        self, K: NDArray[Any], codes: Ints, costs: list[float], exact_to: float, options: RunOptions
    ) -> CostFamily:
        """Return the problems for many costs and many parts of the examples of a kernel matrix."""
        drawn = replace(self, code=self.matrix(int(codes.max()) + 1, options.seed))
        return CostFamily(drawn, K, codes, costs, exact_to, options)

    def solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> PairsSolution:
        """Solve all problems, side by side on one kernel."""
        folds = folds_of(kernel.examples(training.X), training, options.random_state) if self.held_out else None
        layout = self.layout(training.n_classes, self.matrix(training.n_classes, options.seed))
        return solve_binary(code_problems(layout.code, training.class_starts), layout, training, kernel, options, folds)


def code_problems(code: Code, class_starts: Ints) -> _core.BinaryProblems:
    """Return the problem of each column: neighbouring classes with the same sign are one range of examples."""
    signs = code.T.astype(np.int64)
    n_problems, n_classes = signs.shape
    begins = np.ones(signs.shape, dtype=bool)
    begins[:, 1:] = signs[:, 1:] != signs[:, :-1]
    problem, first = np.nonzero(begins)
    place = problem * n_classes + first
    end = np.append(place[1:], n_problems * n_classes) - problem * n_classes
    table = np.column_stack([problem, class_starts[first], class_starts[end], signs[problem, first]])
    return _core.BinaryProblems(np.ascontiguousarray(table[table[:, 3] != 0]))


@lru_cache(maxsize=64)
def made_code(kind: str, n_classes: int, code_size: float | None, seed: int) -> Code:
    """Return the code of a kind.

    ``"one-vs-one"`` has a column for each pair of classes, ``"one-vs-rest"`` one for each class, ``"exhaustive"`` one
    for each way to divide all classes. ``"dense"`` and ``"sparse"`` are random: of many draws that whose nearest rows
    are farthest apart.

    Parameters
    ----------
    kind : {"one-vs-one", "one-vs-rest", "dense", "sparse", "exhaustive"}
        How it is made.
    n_classes : int
        The number k of classes.
    code_size : float or None
        Columns of a random code, in units of k.
    seed : int
        Of the draws.

    Returns
    -------
    array of int8 of shape (k, n_problems)
        The code, which cannot be written to.
    """
    code = np.array([[-1], [1]], dtype=np.int8) if n_classes == 2 else _MAKERS[kind](n_classes, code_size, seed, kind)
    code.flags.writeable = False
    return code


def _one_vs_one(n_classes: int, *_: object) -> Code:
    if n_classes**3 // 2 > _MOST_ENTRIES:
        raise ValueError(f"a code of all pairs of {n_classes} classes has too many entries: take OneVsOneSVC")
    pairs = pair_list(n_classes)
    code = np.zeros((n_classes, len(pairs)), dtype=np.int8)
    columns = np.arange(len(pairs))
    code[pairs[:, 0], columns], code[pairs[:, 1], columns] = 1, -1
    return code


def _one_vs_rest(n_classes: int, *_: object) -> Code:
    return (2 * np.eye(n_classes, dtype=np.int8) - 1).astype(np.int8)


def _exhaustive(n_classes: int, *_: object) -> Code:
    if n_classes > _MOST_EXHAUSTIVE:
        raise ValueError(
            f"code='exhaustive' has 2^(k - 1) - 1 problems, for {n_classes} classes {2 ** (n_classes - 1) - 1:,}: "
            f"it is for up to {_MOST_EXHAUSTIVE} classes; take code='dense'"
        )
    return _all_columns(n_classes, (-1, 1))


def _random(n_classes: int, code_size: float | None, seed: int, kind: str) -> Code:
    """Draw codes with columns that differ, and return the one whose nearest rows are farthest apart."""
    size = ceil(_PROBLEMS[kind] * log2(n_classes)) if code_size is None else max(1, round(code_size * n_classes))
    rng, values = np.random.default_rng(seed), (-1, 1) if kind == "dense" else (-1, 0, 1)
    draw = _chosen if len(values) ** n_classes <= max(_MOST_LISTED, _LISTED_FOR_EACH * size) else _drawn
    best = max((draw(n_classes, values, size, rng) for _ in range(_DRAWS)), key=row_distance)
    if code_defect(best, n_classes) is not None:
        raise ValueError(f"code_size={code_size} is too small: {size} problems do not tell {n_classes} classes apart")
    return best


def _chosen(n_classes: int, values: tuple[int, ...], size: int, rng: np.random.Generator) -> Code:
    """Choose among all columns, the likelier the fewer zeros they would have if drawn; all if there are no more."""
    every = _all_columns(n_classes, values)
    if size >= every.shape[1]:
        return every
    chance = 0.5 ** (every != 0).sum(axis=0) if 0 in values else np.ones(every.shape[1])
    return every[:, np.sort(rng.choice(every.shape[1], size, replace=False, p=chance / chance.sum()))]


def _drawn(n_classes: int, values: tuple[int, ...], size: int, rng: np.random.Generator) -> Code:
    """Draw columns, half of them zeros if there are any, until there are enough that differ and have both signs."""
    likely = np.array([-1, 0, 0, 1] if 0 in values else [-1, 1], dtype=np.int8)
    columns: dict[bytes, Code] = {}
    while len(columns) < size:
        for column in rng.choice(likely, (size, n_classes)):
            if column.min() < 0 < column.max():
                column *= column[np.flatnonzero(column)[0]]  # the first class that takes part is positive
                columns.setdefault(column.tobytes(), column)
    return np.array(list(columns.values())[:size]).T


def _all_columns(n_classes: int, values: tuple[int, ...]) -> Code:
    """Return every column of these values that has both signs, of a column and its opposite one."""
    columns = np.stack(np.meshgrid(*[values] * n_classes, indexing="ij")).reshape(n_classes, -1).astype(np.int8)
    first = columns[(columns != 0).argmax(axis=0), np.arange(columns.shape[1])]
    return columns[:, (first > 0) & (columns.min(axis=0) < 0)]


def row_distance(code: Code) -> float:
    """Return the least Hamming distance between two rows of a code, where a 0 is half a difference."""
    rows = code.astype(np.float64)
    products = rows @ rows.T
    np.fill_diagonal(products, -np.inf)
    return float(code.shape[1] - products.max()) / 2


_MAKERS: dict[str, Callable[..., Code]] = {
    "one-vs-one": _one_vs_one,
    "one-vs-rest": _one_vs_rest,
    "dense": _random,
    "sparse": _random,
    "exhaustive": _exhaustive,
}
CODES = tuple(_MAKERS)
"""The names of codes that are made."""
