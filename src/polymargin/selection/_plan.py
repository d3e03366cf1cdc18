"""Which candidates share what: a kernel, and within it a series of costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from polymargin.estimators._machine import KernelMachine
from polymargin.support.callbacks import has_callbacks

KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0", "solver")  # the last says whether there is a matrix


class NothingToShareError(Exception):
    """Candidates that have to be evaluated one by one; the message says why."""


@dataclass(frozen=True)
class Series:
    """Candidates that differ in C alone, in ascending order: each solution starts the next."""

    machine: Any  # with the parameters of the series, not fitted
    candidates: list[int]
    costs: list[float]

    def costliest(self) -> Any:
        """Return the machine with the largest C."""
        return clone(self.machine).set_params(C=self.costs[-1])


@dataclass(frozen=True)
class KernelGroup:
    """Candidates with the same kernel: one matrix serves all of them."""

    machine: Any  # one of them, for the parameters of the kernel
    series: list[Series]

    @property
    def tolerance(self) -> float:
        """The smallest tol of any candidate."""
        return min(float(series.machine.tol) for series in self.series)

    def exactness(self, y: NDArray[Any], fit_params: Mapping[str, Any]) -> tuple[float, float]:
        """Return the largest C_i that any candidate has on these examples, and the smallest tol."""
        classes, codes = np.unique(y, return_inverse=True)
        weight = fit_params.get("sample_weight")
        weight = None if weight is None else np.asarray(weight, dtype=float)
        try:
            largest = max(series.costliest()._training_set(codes, classes, weight).largest for series in self.series)
        except ValueError:  # bad weights: the fit will say so, for each candidate
            largest = float("inf")
        return largest, self.tolerance


@dataclass(frozen=True)
class Plan:
    """The steps before the machine, if any, and the candidates by kernel."""

    steps: Pipeline | None
    groups: list[KernelGroup]


def plan(estimator: BaseEstimator, candidates: Iterable[Mapping[str, Any]]) -> Plan:
    """Return what the candidates share; raise NothingToShareError if they do not share a kernel."""
    steps, machine, prefix = _taken_apart(estimator)
    if has_callbacks(machine):
        raise NothingToShareError(f"the callbacks of {type(machine).__name__} are to see every fit of it")
    grouped: dict[Any, dict[Any, list[tuple[float, int, Any]]]] = {}
    for index, candidate in enumerate(candidates):
        current = clone(machine).set_params(**_own_parameters(candidate, prefix))
        own = current.get_params(deep=False)
        kernel = tuple(_key(own.get(name)) for name in KERNEL_PARAMETERS)
        rest = tuple(_key(own[name]) for name in sorted(own) if name != "C" and name not in KERNEL_PARAMETERS)
        grouped.setdefault(kernel, {}).setdefault(rest, []).append((float(own["C"]), index, current))
    groups = []
    for by_rest in grouped.values():
        series = [_series(members) for members in by_rest.values()]
        groups.append(KernelGroup(series[0].machine, series))
    return Plan(steps, groups)


def _taken_apart(estimator: BaseEstimator) -> tuple[Pipeline | None, KernelMachine, str]:
    if isinstance(estimator, KernelMachine):
        return None, estimator, ""
    if isinstance(estimator, Pipeline) and isinstance(estimator[-1], KernelMachine):
        return estimator[:-1], estimator[-1], f"{estimator.steps[-1][0]}__"
    machine = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    raise NothingToShareError(f"{type(machine).__name__} is not a kernel machine of this package")


def _own_parameters(candidate: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    for name in candidate:
        if not name.startswith(prefix):
            raise NothingToShareError(f"{name} changes what comes before the machine")
    return {name.removeprefix(prefix): value for name, value in candidate.items()}


def _series(members: list[tuple[float, int, Any]]) -> Series:
    members = sorted(members, key=lambda member: member[:2])
    costs, candidates, machines = zip(*members, strict=True)
    return Series(machines[0], list(candidates), list(costs))


def _key(value: Any) -> Any:
    """Return something hashable that is equal for equal parameters."""
    try:
        hash(value)
    except TypeError:
        return repr(value) if isinstance(value, dict | list) else id(value)
    return type(value).__name__, value
