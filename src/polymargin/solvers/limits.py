"""When a solver stops: the limits that it is given, and the reason that it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

Status = Literal["converged", "max_iter", "time_limit", "stopped", "precision", "unbounded"]
"""Why a solver stopped: at the tolerance; at a limit; asked to by ``progress``; because rounding hides the rest; or
because there is no solution, as with a hard margin for data that cannot be separated."""

Result = TypeVar("Result")
Reported = TypeVar("Reported", contravariant=True)


class Progress(Protocol[Reported]):
    """Who is told how a solver gets on."""

    def __call__(
        self, done: int, total: int, iterations: int, gap: float, result: Callable[[], Reported] | None = None, /
    ) -> bool:
        """Return whether to go on.

        Of ``total`` problems ``done`` are solved (the solvers here have one), after so many ``iterations``, up to a
        relative ``gap``. ``result`` is given where a new point was reached; it returns the result so far.
        """


@dataclass(frozen=True)
class Limits(Generic[Result]):
    """How far a solver goes, with how many threads, and who hears of it."""

    tolerance: float = 1e-3  # relative duality gap
    # If given, the tolerance is that of the mean violation: the gap of the objectives by the sum of all costs.
    total_cost: float | None = None
    max_iterations: int = -1  # -1: no limit
    time_limit: float = float("inf")  # seconds
    threads: int = 1  # results do not depend on them
    progress: Progress[Result] | None = None

    def wanted_gap(self, primal: float, dual: float) -> float:
        """Return the relative gap to stop at, for objectives of this size."""
        scale = max(abs(primal), abs(dual))
        if self.total_cost is None or not 0 < scale < float("inf"):
            return self.tolerance
        return self.tolerance * self.total_cost / scale
