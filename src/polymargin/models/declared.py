"""What a fit leaves, declared once: checked before it is used, stored and loaded as it is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polymargin import kernels

FLOATS = {
    "real": (np.dtype(np.float64),),
    "extended": (np.dtype(np.float64),),
    "data": (np.dtype(np.float64), np.dtype(np.float32)),
}
_LARGE = 50_000  # numbers, from which on their sum is faster than a test of each


@dataclass(frozen=True)
class Declared:
    """A fitted attribute: what it holds, and the names of its dimensions.

    ``values`` is one of

    - ``"real"``: finite float64 numbers; ``"data"``: float32 ones as well, or objects that only a kernel in Python
      understands; ``"extended"``: infinite ones as well;
    - ``"count"``: whole numbers that are not negative, all of them smaller than the dimension ``below``;
    - ``"labels"``: the classes, sorted; ``"names"``: texts; ``"kernel"``: a :class:`Kernel`;
    - ``"number"``, ``"flag"``, ``"text"``: a float of any value, a bool, a str.

    ``shape`` has a name or a number for each dimension, and is None where any will do. Two dimensions of one name have
    one size: a known one, or else of the first attribute that has it.
    """

    values: str
    shape: tuple[str | int, ...] | None = ()
    below: str | None = None
    optional: bool = False
    sparse: bool = False
    report: bool = False  # tells of the fit and takes no part in predictions


@dataclass(frozen=True)
class DeclaredField:
    """Where a declared attribute is: the field of a value, and what is declared of it."""

    field: str
    declared: Declared


def declare(
    attribute: str,
    values: str,
    shape: tuple[str | int, ...] | None = (),
    *,
    below: str | None = None,
    optional: bool = False,
    sparse: bool = False,
    report: bool = False,
) -> Any:
    """Return the field of a frozen dataclass that estimators show, and files store, as an attribute of this name.

    An optional field is None where there is nothing.
    """
    declared = Declared(values, shape, below=below, optional=optional, sparse=sparse, report=report)
    metadata = {"attribute": attribute, "declared": declared}
    return field(default=None, metadata=metadata) if optional else field(metadata=metadata)


def declared_fields(kind: type) -> dict[str, DeclaredField]:
    """Return the declared fields of a dataclass by the names of their attributes."""
    return _declared_fields(kind)


@cache
def _declared_fields(kind: Any) -> dict[str, DeclaredField]:
    return {
        each.metadata["attribute"]: DeclaredField(each.name, each.metadata["declared"])
        for each in fields(kind)
        if "attribute" in each.metadata
    }


def array_fields(kind: type) -> tuple[str, ...]:
    """Return the declared fields of a dataclass that may hold arrays."""
    return _array_fields(kind)


@cache
def _array_fields(kind: Any) -> tuple[str, ...]:
    return tuple(of.field for of in _declared_fields(kind).values() if of.declared.shape != ())


def declarations(*kinds: type) -> dict[str, Declared]:
    """Return what the fields of some dataclasses are declared to hold, by the names of their attributes."""
    return {name: of.declared for kind in kinds for name, of in declared_fields(kind).items()}


def attributes(value: Any) -> dict[str, Any]:
    """Return the declared fields of a value by the names of their attributes, those that are None left out."""
    every = ((name, getattr(value, of.field)) for name, of in declared_fields(type(value)).items())
    return {name: content for name, content in every if content is not None}


def frozen(array: Any) -> Any:
    """Return a view of an array, or of the arrays of a sparse matrix, that cannot be written to."""
    if sp.issparse(array):
        view = array.copy() if not hasattr(array, "indptr") else type(array)(array, copy=False)
        for part in ("data", "indices", "indptr"):
            if hasattr(view, part):
                setattr(view, part, frozen(getattr(view, part)))
        return view
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


class Value:
    """A frozen dataclass whose declared arrays cannot be written to; copies are the value itself."""

    def __post_init__(self) -> None:
        for name in array_fields(type(self)):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        Value.__post_init__(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def defects(
    declarations: Mapping[str, Declared],
    state: Mapping[str, Any],
    dimensions: Callable[[], dict[str, int]] = dict,
    *,
    reports: bool = True,
) -> Iterator[tuple[str, str]]:
    """Yield the attributes that are not what was declared, each with what is wrong with it.

    The sizes of ``dimensions()`` may depend on attributes without dimensions that are declared before all others.
    ``reports=False`` leaves out what takes no part in predictions.
    """
    known: dict[str, int] = {}
    sized = False
    for name, declared in declarations.items():
        if declared.report and not reports:
            continue
        if name not in state:
            if not declared.optional:
                yield name, "is missing"
            continue
        if not sized and declared.shape != ():
            known, sized = dict(dimensions()), True
        defect = _defect_of_shape(declared, state[name], known) or _defect_of_values(declared, state[name], known)
        if defect is not None:
            yield name, defect


def _defect_of_shape(declared: Declared, value: Any, known: dict[str, int]) -> str | None:
    if declared.shape is None:
        return None
    found = getattr(value, "shape", ())  # what is no array has no dimensions
    if found == declared.shape:
        return None
    before = dict(known)
    sizes = [known.setdefault(d, n) if isinstance(d, str) else d for d, n in zip(declared.shape, found, strict=False)]
    expected = (*sizes, *declared.shape[len(sizes) :])
    if found == expected:
        return None
    known.clear()
    known.update(before)
    return f"has shape {found}, expected {expected}"


def _defect_of_values(declared: Declared, value: Any, known: Mapping[str, int]) -> str | None:
    if declared.values in FLOATS:
        return _defect_of_floats(declared, value)
    if declared.values == "count":
        return _defect_of_counts(value, None if declared.below is None else known[declared.below])
    if declared.values == "labels":
        return None if len(value) > 1 and np.all(value[:-1] < value[1:]) else "must hold two or more classes, sorted"
    if declared.values == "names":
        return None if all(isinstance(name, str) for name in value) else "must hold texts"
    if declared.values == "kernel":
        return _defect_of_kernel(value)
    kind = {"number": float, "flag": bool, "text": str}[declared.values]
    return None if isinstance(value, kind) else f"must be of type {kind.__name__}"


def _defect_of_floats(declared: Declared, value: Any) -> str | None:
    if sp.issparse(value) and not declared.sparse:
        return "must be dense"
    numbers = value.data if sp.issparse(value) else np.asarray(value)
    allowed = FLOATS[declared.values]
    if declared.values == "data" and numbers.dtype == object:
        return None
    if numbers.dtype not in allowed:
        return f"has type {numbers.dtype}, expected {' or '.join(map(str, allowed))}"
    if declared.values == "extended":
        return "has values that are not numbers" if np.isnan(numbers).any() else None
    return None if _all_finite(numbers) else "is not finite everywhere"


def _all_finite(numbers: NDArray[Any]) -> bool:
    if numbers.size > _LARGE:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(numbers.sum()):  # one fast pass, where it is enough
                return True
    return bool(np.isfinite(numbers).all())


def _defect_of_counts(value: Any, below: int | None) -> str | None:
    if type(value) is int and value >= 0 and below is None:
        return None if value < 2**63 else "is too large"
    numbers = np.asarray(value)
    if numbers.dtype.kind != "i":
        return "must hold whole numbers of a signed type"
    if numbers.min(initial=0) < 0:
        return "must not be negative"
    if below is not None and numbers.max(initial=0) >= max(below, 1):
        return f"has {numbers.max()}, but must be below {below} everywhere"
    return None


def _defect_of_kernel(value: Any) -> str | None:
    if not isinstance(value, kernels.Kernel) or not (callable(value.kind) or value.kind in kernels.KERNELS):
        return "is not one that fit stored"
    sound = 0 <= value.gamma < np.inf and np.isfinite(value.coef0) and 0 <= value.degree < 2**31
    return None if sound else "must have a finite gamma >= 0, a finite coef0 and a degree from 0 to 2,147,483,647"
