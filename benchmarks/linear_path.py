"""Time a path of costs, each fit started from the last, against as many fits from nothing (Keerthi et al. 2008, 2.3).

Both are ours and alternate; visits to examples are counted too, which no other work on the machine disturbs.
"""

import argparse
import statistics
import time
from collections import defaultdict
from typing import Any

import bars
import linear_data
import linear_peers
import numpy as np
from linear_data import LinearData
from report import Cell, Table, console, number, publish
from sklearn.base import clone

from polymargin.selection import regularization_path

COSTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
MACHINES = ("crammer-singer", "weston-watkins", "one-vs-rest")
NAMES = ("news20", "20newsgroups", "mnist")
PATH, APART = "path", "apart"


def path(machine: Any, data: LinearData) -> list[Any]:
    """All costs, each from the one before."""
    return regularization_path(machine, data.X_train, data.y_train, COSTS)


def apart(machine: Any, data: LinearData) -> list[Any]:
    """All costs, each from nothing."""
    return [clone(machine).set_params(C=cost).fit(data.X_train, data.y_train) for cost in COSTS]


WAYS = {PATH: path, APART: apart}


def measure(machine: Any, data: LinearData, rounds: int) -> dict[str, Any]:
    """Median seconds, epochs and the largest gap of both ways."""
    seconds, facts = defaultdict(list), {}
    for _ in range(rounds):
        for name, way in WAYS.items():
            started = time.perf_counter()
            fitted = way(machine, data)
            seconds[name].append(time.perf_counter() - started)
            epochs = sum(float(np.mean(model.n_iter_)) for model in fitted) / len(data.y_train)
            facts[name] = {"epochs": epochs, "gap": max(model.duality_gap_ for model in fitted)}
    return {name: {"seconds": statistics.median(seconds[name]), **facts[name]} for name in WAYS}


def table(found: list[dict[str, Any]]) -> Table:
    """One row for each machine and number of threads."""
    columns = ["data set", "machine", "threads", "path, s", "apart, s", "share", "path, epochs", "apart, epochs", "gap"]
    result = Table("A path of seven costs, and seven fits", columns)
    result.note = (
        f"Medians. Share: of the path in the time of the fits apart, ✓ at most {bars.LINEAR_PATH_MOST:g}. Epochs: "
        "visits in units of the rows, those of Newton steps included. Gap: the largest of all fits."
    )
    for row in found:
        share = row[PATH]["seconds"] / row[APART]["seconds"]
        result.rows.append(
            [
                Cell(row["data"]),
                Cell(row["machine"]),
                number(row["threads"], "d"),
                *(number(row[name]["seconds"]) for name in WAYS),
                number(share, ".2f", share <= bars.LINEAR_PATH_MOST),
                *(number(row[name]["epochs"], ".0f") for name in WAYS),
                number(max(row[name]["gap"] for name in WAYS), ".1e"),
            ]
        )
    return result


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=linear_data.LARGE, default=list(NAMES))
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=list(MACHINES))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tol", type=float, default=1e-3, help="relative duality gap of a fit")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    found = []
    for name in options.data:
        data = linear_data.load(name)
        for machine in options.machines:
            for threads in options.threads:
                console.print(f"  {name}, {machine}, threads={threads}", style="dim", highlight=False)
                ours = linear_peers.polymargin(machine, options.tol, threads)
                settings = {"data": name, "machine": machine, "threads": threads}
                found.append(settings | measure(ours, data, options.rounds))
    publish("Paths of costs", options.output, [table(found)], data=found)


if __name__ == "__main__":
    main()
