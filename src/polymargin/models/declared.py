"""What a fitted machine keeps, declared once: checked before every prediction, and stored as it is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polymargin.kernels import KERNELS, Kernel

FLOATS = {
    "real": (np.dtype(np.float64),),
    "extended": (np.dtype(np.float64),),
    "data": (np.dtype(np.float64), np.dtype(np.float32)),
}
_LARGE = 50_000  # numbers, from which on their sum is faster than a test of each


@dataclass(frozen=True)
class Kept:
    """A fitted attribute: what it holds, and the names of its dimensions.

    ``values`` is one of

    - ``"real"``: finite float64 numbers; ``"data"``: float32 ones as well, or objects that only a kernel in Python
      understands; ``"extended"``: infinite ones as well;
    - ``"count"``: whole numbers that are not negative, all of them smaller than the dimension ``below``;
    - ``"labels"``: the classes, sorted; ``"names"``: texts; ``"kernel"``: a :class:`Kernel`;
    - ``"number"``, ``"flag"``, ``"text"``: a float of any value, a bool, a str.

    ``shape`` has a name or a number for each dimension, and is None where any will do. Two dimensions of one name have
    one size: that of the machine's own ``_dimensions()``, or else of the first attribute that has it.
    """

    values: str
    shape: tuple[str | int, ...] | None = ()
    below: str | None = None
    optional: bool = False
    sparse: bool = False
    report: bool = False  # tells of the fit and takes no part in predictions


class KeepsState:
    """For machines that say what a fit leaves: it is checked before predictions, and models on disk are made of it."""

    _kept: ClassVar[dict[str, Kept]]

    def _dimensions(self) -> dict[str, int]:
        """Return the sizes of named dimensions, as far as they are known without the arrays that have them."""
        return {}

    def _flaws(self) -> Iterator[tuple[str, str]]:
        """Yield the fitted attributes that do not belong together, each with what is wrong with it."""
        yield from flaws(self._kept, vars(self), self._dimensions, reports=False)

    def _checked_state(self) -> None:
        """Refuse to predict with fitted attributes that do not belong together."""
        check_is_fitted(self)
        for name, flaw in self._flaws():
            raise ValueError(f"the fitted state is damaged: {name} {flaw}; fit again")


def flaws(
    kept: Mapping[str, Kept],
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
    for name, declared in kept.items():
        if declared.report and not reports:
            continue
        if name not in state:
            if not declared.optional:
                yield name, "is missing"
            continue
        if not sized and declared.shape != ():
            known, sized = dict(dimensions()), True
        flaw = _flaw_of_shape(declared, state[name], known) or _flaw_of_values(declared, state[name], known)
        if flaw is not None:
            yield name, flaw


def _flaw_of_shape(kept: Kept, value: Any, known: dict[str, int]) -> str | None:
    if kept.shape is None:
        return None
    found = getattr(value, "shape", ())  # what is no array has no dimensions
    if found == kept.shape:
        return None
    before = dict(known)
    sizes = [known.setdefault(d, n) if isinstance(d, str) else d for d, n in zip(kept.shape, found, strict=False)]
    expected = (*sizes, *kept.shape[len(sizes) :])
    if found == expected:
        return None
    known.clear()
    known.update(before)
    return f"has shape {found}, expected {expected}"


def _flaw_of_values(kept: Kept, value: Any, known: Mapping[str, int]) -> str | None:
    if kept.values in FLOATS:
        return _flaw_of_floats(kept, value)
    if kept.values == "count":
        return _flaw_of_counts(value, None if kept.below is None else known[kept.below])
    if kept.values == "labels":
        return None if len(value) > 1 and np.all(value[:-1] < value[1:]) else "must hold two or more classes, sorted"
    if kept.values == "names":
        return None if all(isinstance(name, str) for name in value) else "must hold texts"
    if kept.values == "kernel":
        return _flaw_of_kernel(value)
    kind = {"number": float, "flag": bool, "text": str}[kept.values]
    return None if isinstance(value, kind) else f"must be of type {kind.__name__}"


def _flaw_of_floats(kept: Kept, value: Any) -> str | None:
    if sp.issparse(value) and not kept.sparse:
        return "must be dense"
    numbers = value.data if sp.issparse(value) else np.asarray(value)
    allowed = FLOATS[kept.values]
    if kept.values == "data" and numbers.dtype == object:
        return None
    if numbers.dtype not in allowed:
        return f"has type {numbers.dtype}, expected {' or '.join(map(str, allowed))}"
    if kept.values == "extended":
        return "has values that are not numbers" if np.isnan(numbers).any() else None
    return None if _all_finite(numbers) else "is not finite everywhere"


def _all_finite(numbers: NDArray[Any]) -> bool:
    if numbers.size > _LARGE:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(numbers.sum()):  # one fast pass, where it is enough
                return True
    return bool(np.isfinite(numbers).all())


def _flaw_of_counts(value: Any, below: int | None) -> str | None:
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


def _flaw_of_kernel(value: Any) -> str | None:
    if not isinstance(value, Kernel) or not (callable(value.kind) or value.kind in KERNELS):
        return "is not one that fit stored"
    sound = 0 <= value.gamma < np.inf and np.isfinite(value.coef0) and 0 <= value.degree < 2**31
    return None if sound else "must have a finite gamma >= 0, a finite coef0 and a degree from 0 to 2,147,483,647"
