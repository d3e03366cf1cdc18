"""How a fit ended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from polymargin.models.declared import Value, attributes, declarations, declare, defects


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome(Value):
    """What a solver reports.

    Parameters
    ----------
    primal, dual : float
        Objectives, summed over the problems if there are several; the dual is maximised, so never larger.
    gap : float
        Their relative difference.
    converged : bool
        Whether the tolerance was met.
    stop_reason : str
        "converged", "max_iter", "time_limit", "stopped" (by a callback) or "precision" (rounding hides the rest).
    solver : str
        The solver that was used.
    iterations : int or array
        Its steps, for each problem if there are several.
    evaluations : int
        Kernel values computed.
    seconds : float
        What the fit took.
    """

    primal: float = declare("primal_objective_", "number", report=True)
    dual: float = declare("dual_objective_", "number", report=True)
    gap: float = declare("duality_gap_", "number", report=True)
    converged: bool = declare("converged_", "flag", report=True)
    stop_reason: str = declare("stop_reason_", "text", report=True)
    solver: str = declare("solver_used_", "text", report=True)
    iterations: Any = declare("n_iter_", "count", None, report=True)
    evaluations: int = declare("n_kernel_evaluations_", "count", report=True)
    seconds: float = declare("fit_time_", "number", report=True)

    @cached_property
    def defect(self) -> tuple[str, str] | None:
        """The first attribute that takes part in more than reports and is not sound, and what is wrong with it."""
        return next(defects(declarations(type(self)), attributes(self), reports=False), None)
