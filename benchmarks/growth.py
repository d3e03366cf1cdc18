"""Steps and time of the all-together machines as C grows: large C is where decompositions get slow.

Hsu & Lin 2002 (section V) put the long training times of Crammer-Singer down to large C. The data sets are scaled to
[-1, 1], the width is the same for all.
"""

import argparse
import statistics
import time
import warnings
from typing import Any, NamedTuple

import datasets
from contenders import polymargin_crammer_singer, polymargin_weston_watkins
from datasets import Dataset, Parameters
from report import Cell, Table, console, number, publish
from sklearn.exceptions import ConvergenceWarning

MACHINES = {"weston-watkins": polymargin_weston_watkins, "crammer-singer": polymargin_crammer_singer}
NAMES = ("segment", "vehicle")
GAMMA = 2.0**-3
EXPONENTS = range(-2, 13)
QUICK = range(-2, 13, 7)
TOL = 1e-3
COLUMNS = ["C", "steps", "seconds", "relative gap", "converged", "unique SVs"]


class Growth(NamedTuple):
    """One machine at one C."""

    data: str
    machine: str
    exponent: int
    steps: int
    seconds: float
    gap: float
    stop_reason: str
    n_support: int

    def row(self) -> list[Cell]:
        """As a row of a table."""
        done = self.stop_reason == "converged"
        return [
            Cell(f"2^{self.exponent}"),
            number(self.steps, "d"),
            number(self.seconds),
            number(self.gap, ".1e"),
            Cell("yes" if done else self.stop_reason, done),
            number(self.n_support, "d"),
        ]


def measure(data: Dataset, machine: str, exponent: int, options: argparse.Namespace) -> Growth:
    """Fit as often as asked; the steps are the same every time, unless the time limit ends them."""
    model: Any = None
    seconds = []
    for _ in range(options.rounds):
        model = MACHINES[machine](Parameters(2.0**exponent, GAMMA), options.threads, tol=TOL, time_limit=options.limit)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
            model.fit(data.X_train, data.y_train)
        seconds.append(time.perf_counter() - start)
    found = (int(model.n_iter_), statistics.median(seconds), float(model.duality_gap_), model.stop_reason_)
    console.print(f"  {data.name}, {machine}, C = 2^{exponent}: {found[0]} steps", style="dim", highlight=False)
    return Growth(data.name, machine, exponent, *found, len(model.support_))


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=datasets.ALL, default=list(NAMES))
    parser.add_argument("--rounds", type=int, default=1, help="fits at every C; the median time is reported")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a fit is given up")
    parser.add_argument("--quick", action="store_true", help="three values of C")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    tables, records = [], []
    for name in options.data:
        data = datasets.load(name)
        for machine in MACHINES:
            table = Table(f"{name}, {machine}: gamma = 2^-3, tol = {TOL:g}", COLUMNS)
            table.note = (
                f"Threads: {options.threads}. Steps: exact steps, each on all coefficients of one example. "
                f"A fit that has not converged after {options.limit:g} s is ended."
            )
            found = [measure(data, machine, e, options) for e in (QUICK if options.quick else EXPONENTS)]
            table.rows = [one.row() for one in found]
            tables.append(table)
            records += [one._asdict() for one in found]
    publish("Growth with C", options.output, tables, notes=options.note, data=records)


if __name__ == "__main__":
    main()
