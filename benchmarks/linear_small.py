"""Linear machines on small data as they come: every machine, bias and cost, the slowest fits first.

Columns of very different sizes and large costs are what stalls solvers that move some examples at a time. Every fit has
a limit; all are to end below a second.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import sweep_data
from report import Cell, Table, console, number, publish

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC

COSTS = (1.0, 100.0, 1e4, 1e5)
BIASES = ("free", "regularized", None)
MOST_ROWS = 3_000
BAR = 1.0
"""Seconds."""
QUICK = ("sklearn-iris", "sklearn-wine")


def machines(**options: Any) -> Iterator[tuple[str, Any]]:
    """Every linear machine, and its name."""
    yield "one-vs-one", OneVsOneSVC(kernel="linear", **options)
    for bias in BIASES:
        for Machine in (OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC):
            yield f"{Machine.__name__} bias={bias}", Machine(kernel="linear", bias=bias, **options)


def cells(names: list[str], costs: list[float], limit: float, threads: int) -> Iterator[tuple[float, list[Cell]]]:
    """Fit all; the seconds and the row of each."""
    for name in names:
        X, y = sweep_data.load(name, "raw")
        if X.shape[0] >= MOST_ROWS:
            continue
        for C in costs:
            for machine, estimator in machines(C=C, time_limit=limit, n_jobs=threads):
                started = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    estimator.fit(X, y)
                seconds = time.perf_counter() - started
                ended = estimator.converged_
                row = [
                    Cell(f"{machine}, {name}, C={C:g}"),
                    number(seconds, ".3f", seconds < BAR and ended),
                    number(estimator.duality_gap_, ".1e"),
                    Cell(estimator.stop_reason_),
                    Cell(estimator.solver_used_),
                ]
                yield (seconds if ended else max(seconds, limit)), row
        console.print(f"{name}: done")


def main() -> None:
    """Parse, fit, show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", help="names of the sweep's data sets; all small ones by default")
    parser.add_argument("--costs", type=float, nargs="+", default=COSTS)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for a fit")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--show", type=int, default=40, help="rows of the table")
    parser.add_argument("--quick", action="store_true", help="two small data sets")
    parser.add_argument("--output", help="name of the page in results/")
    arguments = parser.parse_args()
    names = list(QUICK) if arguments.quick else arguments.data or list(sweep_data.find())
    found = sorted(cells(names, arguments.costs, arguments.limit, arguments.threads), key=lambda cell: -cell[0])
    slow = sum(seconds >= BAR for seconds, _ in found)
    table = Table(
        f"Linear machines on small raw data: {slow} of {len(found)} fits take a second or do not end",
        ["fit", "seconds", "gap", "stopped", "solver"],
        [row for _, row in found[: arguments.show]],
        f"{arguments.threads} thread(s), limit {arguments.limit:g} s.",
    )
    data = [[cell.text for cell in row] for _, row in found]
    publish("Linear machines on small raw data", arguments.output, [table], data=data)


if __name__ == "__main__":
    main()
