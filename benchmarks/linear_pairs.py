"""Time linear one-against-one with and without a matrix of kernel values, beside LinearSVC in pairs and SVC.

LIBLINEAR's bias is regularised, so its machine is another one; SVC's is the same.
"""

import argparse
import statistics
import time
import warnings
from typing import Any, NamedTuple

import linear_data
from linear_data import LinearData
from report import Cell, Table, console, number, publish
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, LinearSVC

from polymargin import OneVsOneSVC

NAMES = ("reuters8", "20newsgroups", "news20", "mnist")
QUICK = ("reuters8",)
COSTS = {"mnist": 0.1}
OURS = ("auto", "sequential-dual", "decomposition")
SOURCES = linear_data.ALL | {"reuters8": lambda: linear_data.split_file("reuters8")}


class Fit(NamedTuple):
    """One fit of one contender."""

    data: str
    contender: str
    threads: int
    seconds: float
    rate: float
    gap: float | None


def load(name: str) -> LinearData:
    """Load both parts of a data set."""
    X_train, y_train, X_test, y_test = SOURCES[name]()
    return LinearData(name, X_train, y_train, X_test, y_test, int(y_train.max()) + 1)


def contenders(C: float, options: argparse.Namespace) -> dict[tuple[str, int], Any]:
    """Return who is timed, by name and number of threads."""
    found: dict[tuple[str, int], Any] = {}
    for threads in options.threads:
        for solver in OURS:
            found[solver, threads] = OneVsOneSVC(C=C, kernel="linear", solver=solver, n_jobs=threads)
        found["LinearSVC", threads] = OneVsOneClassifier(LinearSVC(C=C, loss="hinge"), n_jobs=threads)
    if options.svc:
        found["SVC", 1] = SVC(C=C, kernel="linear", cache_size=4000)
    return {who: machine for who, machine in found.items() if who[0] in options.contenders}


def race(data: LinearData, options: argparse.Namespace) -> list[Fit]:
    """Fit all in turns; who takes long does so once."""
    found: list[Fit] = []
    machines = contenders(COSTS.get(data.name, 1.0), options)
    for turn in range(options.rounds):
        for (name, threads), machine in machines.items():
            if any((f.contender, f.threads) == (name, threads) and f.seconds > options.long for f in found):
                continue
            start = time.perf_counter()
            machine.fit(data.X_train, data.y_train)
            seconds = time.perf_counter() - start
            rate, gap = machine.score(data.X_test, data.y_test), getattr(machine, "duality_gap_", None)
            found.append(Fit(data.name, name, threads, seconds, rate, gap))
            console.print(f"  {data.name}, {name}, {threads} threads, {turn}: {seconds:.3g} s", style="dim")
    return found


def row(found: list[Fit]) -> list[Cell]:
    """Return the medians of one contender on one data set."""
    first = found[0]
    seconds = statistics.median(f.seconds for f in found)
    return [
        Cell(first.data),
        Cell(first.contender),
        number(first.threads, "d"),
        number(seconds),
        number(100 * first.rate, ".2f"),
        number(first.gap, ".1e"),
    ]


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=list(SOURCES), default=list(NAMES))
    parser.add_argument("--contenders", nargs="+", default=[*OURS, "LinearSVC", "SVC"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", type=float, default=5.0, help="seconds of a fit that is not repeated")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--svc", action="store_true", help="time SVC as well, which may take minutes")
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)} alone")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    found: list[Fit] = []
    for name in QUICK if options.quick else options.data:
        found += race(load(name), options)
    groups = dict.fromkeys((f.data, f.contender, f.threads) for f in found)
    columns = ["data set", "contender", "threads", "seconds", "rate", "gap"]
    table = Table("Fits of linear pairs", columns, note="Medians. C = 1, for mnist 0.1.")
    table.rows = [row([f for f in found if (f.data, f.contender, f.threads) == group]) for group in groups]
    publish("Linear one-against-one", options.output, [table], notes=options.note, data=[f._asdict() for f in found])


if __name__ == "__main__":
    main()
