"""The one table of kernels: all that differs from one to the other outside the core.

A kernel is a function of one number for each pair of points, which ``reads`` names: their scalar product, their squared
distance, or a sum over features of a term of its own. Parameters, constraints, documentation, the command line, files
and exports ask the table; nothing else names a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polymargin import _core

Floats: TypeAlias = NDArray[np.float64]
KernelName: TypeAlias = Literal["linear", "poly", "rbf", "sigmoid", "precomputed", "laplacian"]
KernelParameter: TypeAlias = KernelName | Callable[[Any, Any], Any]
PARAMETERS = ("degree", "gamma", "coef0")  # that kernels may read, in the order of LIBSVM's files


class Numbers(Protocol):
    """The parameters of a kernel, as numbers."""

    @property
    def gamma(self) -> float: ...
    @property
    def coef0(self) -> float: ...
    @property
    def degree(self) -> int: ...


@dataclass(frozen=True)
class KernelEntry:
    """A kernel: its names, what it reads, and its function, in NumPy and in ONNX."""

    name: str
    number: int  # of the command line's option -t; those below 5 are LIBSVM's
    formula: str  # one line, for --help and docstrings
    core: _core.KernelType
    reads: _core.KernelInput
    parameters: tuple[str, ...]  # of PARAMETERS, those that it reads
    value: Callable[[Numbers, Floats], Floats]  # from what it reads, each operation in LIBSVM's order
    rounding: Callable[[Numbers, Floats], Floats]
    """From the size of the numbers that make up what it reads to the rounding of its values, in units of the last place
    of 1."""
    positive: bool = False  # values lie in [0, 1], and are tiny for points that are far apart
    definite: bool = False  # no matrix of its values has a negative eigenvalue, whatever the parameters
    term: Callable[[Floats, Floats], Floats] | None = None  # summed over features, if that is what it reads
    dimension: int = 2  # what it reads grows with this power of the unit of the features
    libsvm: str | None = None  # LIBSVM's name, if LIBSVM has it
    onnx: Callable[[Any, Numbers, str], str] | None = None  # adds the values to a graph of ONNX, from what it reads
    onnx_term: Callable[[Any, str, str], str] | None = None  # adds the terms of two arrays

    def __post_init__(self) -> None:
        if unknown := set(self.parameters) - set(PARAMETERS):
            raise ValueError(f"kernel {self.name!r}: there is no parameter {', '.join(sorted(unknown))}")
        if (self.term is not None) != (self.reads is _core.KernelInput.feature_sums):
            raise ValueError(f"kernel {self.name!r}: a kernel has a term if, and only if, it reads sums over features")
        if self.onnx is not None and (self.onnx_term is None) != (self.term is None):
            raise ValueError(f"kernel {self.name!r}: ONNX needs the term too")

    @cached_property
    def needs_gamma(self) -> bool:
        """Whether gamma has to be resolved to a number."""
        return "gamma" in self.parameters

    @cached_property
    def precomputed(self) -> bool:
        """Whether kernel values are given in the place of examples."""
        return self.reads is _core.KernelInput.matrix


# Functions of what a kernel reads. Those of the C library are called: NumPy's own may differ in the last digit.


def _mapped(function: Callable[[float], float], values: Floats) -> Floats:
    return np.array([function(value) for value in values.ravel().tolist()], dtype=np.float64).reshape(values.shape)


def _as_it_is(kernel: Numbers, values: Floats) -> Floats:
    return values


def _decay(kernel: Numbers, distances: Floats) -> Floats:
    return _mapped(math.exp, -kernel.gamma * distances)


def _tanh(kernel: Numbers, products: Floats) -> Floats:
    return _mapped(math.tanh, kernel.gamma * products + kernel.coef0)


def _power(kernel: Numbers, products: Floats) -> Floats:
    """Return powers by squaring."""
    base = kernel.gamma * products + kernel.coef0
    power, degree = np.ones_like(base), kernel.degree
    while degree > 0:
        if degree % 2:
            power *= base
        base = base * base
        degree //= 2
    return power


def _factored(kernel: Numbers, sizes: Floats) -> Floats:
    """Rounding of a function of gamma times what it reads whose slope is at most 1."""
    return 1.0 + kernel.gamma * sizes


def _rounding_of_power(kernel: Numbers, sizes: Floats) -> Floats:
    rounding: Floats = max(1, kernel.degree) * (kernel.gamma * sizes + abs(kernel.coef0)) ** kernel.degree
    return rounding


def _absolute_difference(x: Floats, y: Floats) -> Floats:
    return np.abs(x - y)


# The same as operations of ONNX: `graph(operation, *inputs)` adds one.


def _onnx_as_it_is(graph: Any, kernel: Numbers, values: str) -> str:
    return values


def _onnx_decay(graph: Any, kernel: Numbers, distances: str) -> str:
    name: str = graph("Exp", graph("Mul", distances, graph.constant(-kernel.gamma)))
    return name


def _onnx_inner(graph: Any, kernel: Numbers, products: str) -> str:
    name: str = graph("Add", graph("Mul", products, graph.constant(kernel.gamma)), graph.constant(kernel.coef0))
    return name


def _onnx_tanh(graph: Any, kernel: Numbers, products: str) -> str:
    name: str = graph("Tanh", _onnx_inner(graph, kernel, products))
    return name


def _onnx_power(graph: Any, kernel: Numbers, products: str) -> str:
    name: str = graph("Pow", _onnx_inner(graph, kernel, products), graph.constant(float(kernel.degree)))
    return name


def _onnx_absolute_difference(graph: Any, x: str, y: str) -> str:
    name: str = graph("Abs", graph("Sub", x, y))
    return name


_ENTRIES = (
    KernelEntry(
        name="linear",
        number=0,
        formula="x'y",
        core=_core.KernelType.linear,
        reads=_core.KernelInput.products,
        parameters=(),
        value=_as_it_is,
        rounding=_as_it_is,
        definite=True,
        libsvm="linear",
        onnx=_onnx_as_it_is,
    ),
    KernelEntry(
        name="poly",
        number=1,
        formula="(gamma x'y + coef0)^degree",
        core=_core.KernelType.poly,
        reads=_core.KernelInput.products,
        parameters=("degree", "gamma", "coef0"),
        value=_power,
        rounding=_rounding_of_power,
        libsvm="polynomial",
        onnx=_onnx_power,
    ),
    KernelEntry(
        name="rbf",
        number=2,
        formula="exp(-gamma |x - y|^2)",
        core=_core.KernelType.rbf,
        reads=_core.KernelInput.squared_distances,
        parameters=("gamma",),
        value=_decay,
        rounding=_factored,
        positive=True,
        definite=True,
        libsvm="rbf",
        onnx=_onnx_decay,
    ),
    KernelEntry(
        name="sigmoid",
        number=3,
        formula="tanh(gamma x'y + coef0)",
        core=_core.KernelType.sigmoid,
        reads=_core.KernelInput.products,
        parameters=("gamma", "coef0"),
        value=_tanh,
        rounding=_factored,
        libsvm="sigmoid",
        onnx=_onnx_tanh,
    ),
    KernelEntry(
        name="precomputed",
        number=4,
        formula="values that are given in the place of examples",
        core=_core.KernelType.precomputed,
        reads=_core.KernelInput.matrix,
        parameters=(),
        value=_as_it_is,
        rounding=_as_it_is,
        libsvm="precomputed",
        onnx=_onnx_as_it_is,
    ),
    KernelEntry(
        name="laplacian",
        number=5,
        formula="exp(-gamma |x - y|_1)",
        core=_core.KernelType.laplacian,
        reads=_core.KernelInput.feature_sums,
        parameters=("gamma",),
        value=_decay,
        rounding=_factored,
        positive=True,
        definite=True,
        term=_absolute_difference,
        dimension=1,
        onnx=_onnx_decay,
        onnx_term=_onnx_absolute_difference,
    ),
)

KERNELS: dict[str, KernelEntry] = {entry.name: entry for entry in _ENTRIES}
"""The kernels by name, in the order of their numbers."""


def kernel_entry(kernel: Any) -> KernelEntry | None:
    """Return the entry of a kernel's name; None for a kernel in Python, or a name that there is not."""
    return KERNELS.get(kernel) if isinstance(kernel, str) else None


def uses_gamma(kernel: Any) -> bool:
    """Whether a kernel, a name or a function, reads gamma."""
    entry = kernel_entry(kernel)
    return entry is not None and entry.needs_gamma


def is_precomputed(kernel: Any) -> bool:
    """Whether the parameter ``kernel`` says that values are given."""
    entry = kernel_entry(kernel)
    return entry is not None and entry.precomputed


def names_of_functions() -> list[str]:
    """Return the kernels that are functions of examples."""
    return [name for name, entry in KERNELS.items() if not entry.precomputed]


def readers(parameter: str) -> list[str]:
    """Return the kernels that read a parameter."""
    return [name for name, entry in KERNELS.items() if parameter in entry.parameters]
