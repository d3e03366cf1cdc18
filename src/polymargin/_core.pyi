"""The compiled core of polymargin: kernels, problems, solvers."""

from collections.abc import Sequence
import enum
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class Data:
    """
    Examples, or their kernel values, as the core reads them: without a copy.
    """

    @staticmethod
    def dense(values: Annotated[NDArray, dict(order='C', device='cpu', writable=False)]) -> Data: ...

    @staticmethod
    def csr(values: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], columns: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], row_starts: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], rows: int, features: int) -> Data: ...

    @staticmethod
    def precomputed(values: Annotated[NDArray, dict(order='C', device='cpu', writable=False)]) -> Data: ...

def check_csr(columns: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], row_starts: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], stored: int, rows: int, features: int) -> None:
    """
    Raise ValueError, naming the place, unless the structure of a CSR matrix is sound.
    """

class KernelType(enum.Enum):
    linear = 0

    poly = 1

    rbf = 2

    sigmoid = 3

    precomputed = 4

class Kernel:
    """A kernel function and its parameters."""

    def __init__(self, type: KernelType, gamma: float, coef0: float, degree: int) -> None: ...

class KernelSession:
    """
    Trains machines on one data set and kernel, and keeps kernel values between calls.
    """

    def __init__(self, data: Data, kernel: Kernel, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], largest_bound: float, tolerance: float, whole: bool, budget_bytes: int, threads: int, rough: bool = False) -> None: ...

    def train(self, problems: Annotated[NDArray[numpy.int64], dict(shape=(None, 6), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: tuple | None, folds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, refine: bool, tolerance: float, max_iterations: int, time_limit: float, progress: object | None) -> dict:
        """
        Solve binary problems; returns their solutions side by side. With a fold for each example, also each example's decision values by the machines without its fold.
        """

    def train_paths(self, problems: Annotated[NDArray[numpy.int64], dict(shape=(None, 6), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tolerance: float, max_iterations: int, progress: object | None) -> dict:
        """
        Solve binary problems for ascending costs, which are factors of the bounds, and this for each row of bounds; returns the solutions side by side, those of the first row and its first cost first.
        """

    def path_scores(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], problems: Annotated[NDArray[numpy.int64], dict(shape=(None, 6), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], support: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], intercept: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu')], threads: int) -> None:
        """
        Write the scores that some rows of the kernel matrix get from problems solved for a path of costs to `out`, by problem, row and cost.
        """

    def train_together(self, upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: int, loss: str, margin: float, bias: str | None, start: tuple | None, gap: float, refine: bool, tolerance: float, max_iterations: int, time_limit: float, progress: object | None) -> dict:
        """Train an all-together machine; returns its solution."""

def single_precision_suffices(largest_value: float, largest_bound: float, tolerance: float, rough: bool) -> bool:
    """Return whether stored kernel values may be in single precision."""

def exact_step(loss: str, margin: float, gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], curvature: float, label: int, bound: float, row: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> object | None:
    """
    Return the row of one example that is best while all others stay; None if there is no best one.
    """

def train_linear(data: Data, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: int, loss: str, margin: float, bias: str | None, start: tuple | None, method: str, seed: int, shuffling: bool, shrinking: bool, cooling: bool, newton: bool, tolerance: float, max_iterations: int, time_limit: float, threads: int, progress: object | None) -> dict:
    """Train a linear machine without kernel values; returns its solution."""

@overload
def apply_kernel(kernel: Kernel, products: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None: ...

@overload
def apply_kernel(kernel: Kernel, products: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    Write the kernel values of scalar products to `out`; RBF takes minus half the squared distances instead.
    """

@overload
def kernel_values(data: Data, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], vectors: Data, kernel: Kernel, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None: ...

@overload
def kernel_values(data: Data, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], vectors: Data, kernel: Kernel, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    Write the kernel values of some rows with all vectors to `out`, in its precision.
    """

class Elimination(enum.Enum):
    """How pairs of classes are asked until one class is left."""

    dag = 0

    adag = 1

class ScoreErrors:
    """
    How far off scores may be: min(unit * (size * masses + |intercepts|), largest).
    """

    def __init__(self, unit: float, masses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], largest: float) -> None: ...

class Scorer:
    """A model that is ready to score: what every prediction needs is kept."""

    def __init__(self, vectors: Data, kernel: Kernel, coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], ranges: Annotated[NDArray[numpy.int64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], column_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], intercepts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @staticmethod
    def are_few(rows: int) -> bool:
        """
        Whether so few rows are taken one by one: without BLAS, unless sums must be the same.
        """

    def scores(self, data: Data, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], sizes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], accuracy: float, threads: int, same_sums: bool) -> None:
        """
        Write the scores of some rows, or all, and the sizes of rounding in their kernel values.
        """

    def eliminate(self, data: Data, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, rule: Elimination, errors: ScoreErrors, classes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], uncertain: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], accuracy: float, threads: int) -> None:
        """
        Write the classes of some rows, or all, and whether rounding could have led elsewhere.
        """

def add_scores(data: Data, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], vectors: Data, kernel: Kernel, coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], blocks: Sequence[tuple[tuple[int, int], Sequence[int]]], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], accuracy: float, threads: int) -> None:
    """
    Add the scores of some rows to `out`; each support vector's kernel values are computed once.
    """

class SvmlightReader:
    """A reader of the text format of svmlight and LIBSVM."""

    def __init__(self, zero_based: bool) -> None: ...

    def feed(self, text: bytes) -> None:
        """Read a piece of the text; ValueError names line and column."""

    def finish(self) -> tuple:
        """Return labels, row starts, columns, values and the number of features."""

def instruction_set() -> str:
    """Return what the vectorised loops run on."""

def compiler() -> str:
    """Return what the core was compiled with."""
