"""Which candidates share what: a kernel, and within it a series of costs. Decided before any work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints

from polymargin.estimators.base import MulticlassSVC
from polymargin.formulations import OneVsRest, OutputCode, Pairs, RunOptions, training_set
from polymargin.support.callbacks import has_callbacks
from polymargin.support.memory import budget_bytes
from polymargin.support.numeric import Floats, Ints

KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0", "solver")  # the last says whether there is a matrix


@dataclass(frozen=True)
class Series:
    """Candidates that differ in C alone, in ascending order: each solution starts the next."""

    machine: Any  # with the parameters of the series, not fitted
    candidates: list[int]
    costs: list[float]

    def costliest(self) -> Any:
        """Return the machine with the largest C."""
        return clone(self.machine).set_params(C=self.costs[-1])

    def repeats(self, other: Series) -> bool:
        """Whether the candidates are those of another series but for the width of their kernel."""

        def rest(machine: Any) -> dict[str, Any]:
            return {name: _key(v) for name, v in machine.get_params(deep=False).items() if name not in ("C", "gamma")}

        return self.costs == other.costs and rest(self.machine) == rest(other.machine)

    def is_family(self) -> bool:
        """Whether all costs and folds can be solved by one call: binary problems, no limit of time, sound parameters.

        Where a parameter is not sound, each fit says so, and gets the score of a fit that failed.
        """
        formulation = self.machine.formulation
        if not isinstance(formulation, Pairs | OneVsRest | OutputCode) or not formulation.is_family:
            return False
        if isinstance(self.machine.random_state, np.random.RandomState):  # another code for every fit
            return False
        if self.machine.calibration_method is not None:  # which decides
            return False
        if self.machine.time_limit is not None or not np.isfinite(self.costs[-1]):
            return False
        return self._has_sound_parameters()

    def _has_sound_parameters(self) -> bool:
        constraints, name = self.machine._parameter_constraints, type(self.machine).__name__
        try:
            self.machine._validate_params()
            for cost in (self.costs[0], self.costs[-1]):  # C lies in an interval
                validate_parameter_constraints(constraints, {"C": cost}, name)
        except InvalidParameterError:
            return False
        return True


@dataclass(frozen=True)
class KernelGroup:
    """Candidates with the same kernel: one matrix serves all of them."""

    machine: Any  # one of them, for the parameters of the kernel
    series: list[Series]

    @property
    def tolerance(self) -> float:
        """The smallest violation that the solver of any candidate may have to see."""
        machines = [series.machine for series in self.series]
        return min(RunOptions(tolerance=float(each.tol), stop=each.stop).exact_to for each in machines)

    def repeats(self, other: KernelGroup) -> bool:
        """Whether the candidates are those of another group but for the width of their kernel."""
        pairs = zip(self.series, other.series, strict=False)
        return len(self.series) == len(other.series) and all(own.repeats(its) for own, its in pairs)

    def needs_kernel(self, n_examples: int) -> bool:
        """Whether candidates are trained on kernel values; else on the examples themselves."""
        formulation = self.machine.formulation
        if not hasattr(formulation, "needs_kernel"):
            return True
        hard = any(np.isinf(series.costs[-1]) for series in self.series)
        return bool(formulation.needs_kernel(self.machine.kernel, n_examples, hard))

    def exactness(self, y: NDArray[Any], fit_params: Mapping[str, Any]) -> tuple[float, float]:
        """Return the largest C_i that any candidate has on these examples, and the smallest tol."""
        classes, codes = np.unique(y, return_inverse=True)
        weight = fit_params.get("sample_weight")
        weight = None if weight is None else np.asarray(weight, dtype=float)
        bounds = [_largest_cost_bound(series, codes, classes, weight) for series in self.series]
        return max(bounds), self.tolerance


def _largest_cost_bound(series: Series, codes: Ints, classes: NDArray[Any], weight: Floats | None) -> float:
    """Return the largest C_i of a series; where weights are not sound, each fit says so."""
    class_weight = series.machine.class_weight
    if not has_sound_weights(class_weight, codes, classes, weight):
        return float("inf")
    options = {"C": series.costs[-1], "class_weight": class_weight, "sample_weight": weight}
    return training_set(codes, codes, classes, **options).largest_cost_bound


def has_sound_weights(class_weight: Any, codes: Ints, classes: NDArray[Any], sample_weight: Floats | None) -> bool:
    """Whether a fit takes these weights: every class has some, none is negative, and all are finite."""
    if len(classes) < 2 or np.any(np.bincount(codes, weights=sample_weight, minlength=len(classes)) <= 0):
        return False
    if sample_weight is not None and not (np.all(np.isfinite(sample_weight)) and np.all(sample_weight >= 0)):
        return False
    if not isinstance(class_weight, Mapping):
        return True
    sound = all(0 < factor < np.inf for factor in class_weight.values())
    return sound and set(class_weight) <= set(classes.tolist())


@dataclass(frozen=True)
class Plan:
    """The steps before the machine, if any, and the candidates by kernel; or why nothing can be shared."""

    steps: Pipeline | None = None
    groups: list[KernelGroup] = field(default_factory=list)
    unshared: str | None = None

    def matrices_at_once(self, matrix_bytes: int, wanted: int, threads: int) -> int:
        """Return how many kernel matrices, up to those wanted, there may be at a time; 0 if not one.

        Every candidate's ``cache_size`` must allow what they are made from, the matrices, and once more the part of
        every fold that is under way.
        """
        sizes = {series.machine.cache_size for group in self.groups for series in group.series}
        for count in (wanted, 1):
            needed = matrix_bytes * (1 + count + threads)
            if needed <= min(budget_bytes(size, needed) for size in sizes):
                return count
        return 0

    def smallest_cache(self) -> Any:
        """Return the ``cache_size`` of the candidate that allows least."""
        sizes = {series.machine.cache_size for group in self.groups for series in group.series}
        return min((size for size in sizes if size != "auto"), default="auto")


def plan(estimator: BaseEstimator, candidates: Iterable[Mapping[str, Any]]) -> Plan:
    """Return what the candidates share, or why they have to be evaluated one by one."""
    machine: Any = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(machine, MulticlassSVC):
        return Plan(unshared=f"{type(machine).__name__} is not a kernel machine of this package")
    if has_callbacks(machine):
        return Plan(unshared=f"the callbacks of {type(machine).__name__} are to see every fit of it")
    steps = estimator[:-1] if isinstance(estimator, Pipeline) else None
    prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    base = machine.get_params(deep=False)
    grouped: dict[Any, dict[Any, list[tuple[float, int, dict[str, Any]]]]] = {}
    for index, candidate in enumerate(candidates):
        foreign = next((name for name in candidate if not name.startswith(prefix)), None)
        if foreign is not None:
            return Plan(unshared=f"{foreign} changes what comes before the machine")
        changed = {name.removeprefix(prefix): value for name, value in candidate.items()}
        if not changed.keys() <= base.keys():
            clone(machine).set_params(**changed)  # says what is wrong
        own = base | changed
        kernel = tuple(_key(own.get(name)) for name in KERNEL_PARAMETERS)
        rest = tuple(_key(own[name]) for name in sorted(own) if name != "C" and name not in KERNEL_PARAMETERS)
        grouped.setdefault(kernel, {}).setdefault(rest, []).append((float(own["C"]), index, changed))
    groups: dict[Any, list[KernelGroup]] = {}
    for kernel, by_rest in grouped.items():
        series = [_series(machine, members) for members in by_rest.values()]
        groups.setdefault(kernel[0], []).append(KernelGroup(series[0].machine, series))
    return Plan(steps, [group for of_kind in groups.values() for group in spread(of_kind)])


def spread(items: Sequence[Any]) -> list[Any]:
    """Return items so that the first few are spread over all: the ends, the middle, what lies between.

    What the first ones took then says what the others will take.
    """
    if len(items) < 3:
        return list(items)
    places = [0, len(items) - 1]
    while len(places) < len(items):
        places += [(low + high) // 2 for low, high in pairwise(sorted(places)) if high - low > 1]
    return [items[place] for place in places]


def _series(machine: Any, members: list[tuple[float, int, dict[str, Any]]]) -> Series:
    members = sorted(members, key=lambda member: member[:2])
    costs, candidates, parameters = zip(*members, strict=True)
    return Series(clone(machine).set_params(**parameters[0]), list(candidates), list(costs))


def _key(value: Any) -> Any:
    """Return something hashable that is equal for equal parameters."""
    try:
        hash(value)
    except TypeError:
        if isinstance(value, np.ndarray) and value.dtype != object:
            return value.shape, value.dtype.str, value.tobytes()
        return repr(value) if isinstance(value, dict | list) else id(value)
    return type(value).__name__, value
