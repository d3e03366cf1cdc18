"""Time and memory of our linear all-together machines with 52, 1,000 and 10,000 classes.

Every case runs in a fresh process, as in `memory.py`. R52 are the single-topic documents of Reuters-21578; the others
are made up: 20,000 rows of about 50 of 20,000 words, two rows a class where there are 10,000.
"""

import argparse
import time
import warnings
from typing import Any

import fresh
import linear_data
import linear_objective
import linear_peers
from memory import MB, settle, size, status
from report import Cell, Table, console, number, publish

MACHINES = ("crammer-singer", "weston-watkins")
QUICK = ("r52",)
FORMS = {
    "classes": "d",
    "seconds": ".3g",
    "loops": ".1f",
    "us per loop and class": ".3g",
    "relative gap": ".1e",
    "primal": ".7g",
    "baseline": ".0f",
    "peak - baseline": ".0f",
    "model": ".0f",
    "test rate, %": ".2f",
}


def measure(name: str, machine: str, tol: str, threads: str, limit: str) -> dict[str, Any]:
    """Child: one fit, its time and peak, and what came of it."""
    data = linear_data.load(name)
    model = linear_peers.polymargin(machine, float(tol), int(threads), time_limit=float(limit))
    settle()
    baseline, start = status("VmRSS"), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that ran out of time: the table says it
        model.fit(data.X_train, data.y_train)
    seconds, peak = time.perf_counter() - start, status("VmHWM")
    said, weights = linear_peers.account(model), linear_peers.weights_without_bias(model)
    loops = said["visits"] / data.X_train.shape[0]
    return {
        "classes": data.n_classes,
        "seconds": seconds,
        "loops": loops,
        "us per loop and class": 1e6 * seconds / loops / data.n_classes,
        "relative gap": float(said["duality_gap_"]),
        "stop": str(said["stop_reason_"]),
        "primal": linear_objective.primal(machine, data, weights, linear_peers.C),
        "baseline": baseline,
        "peak - baseline": peak - baseline,
        "model": size(vars(model)) / MB,
        "test rate, %": linear_objective.rate(data, weights),
    }


def row(name: str, machine: str, found: dict[str, Any]) -> list[Cell]:
    """One case; dashes if it failed."""
    stop = found.get("stop", "-")
    outcome = Cell(stop, None if stop == "-" else stop == "converged")
    return [Cell(name), Cell(machine), *(number(found.get(key), form) for key, form in FORMS.items()), outcome]


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=linear_data.MANY_CLASSES)
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=list(MACHINES))
    parser.add_argument("--tol", type=float, default=1e-3, help="relative duality gap")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a fit is given up")
    parser.add_argument("--quick", action="store_true", help="R52 alone")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    options.data = options.data or list(QUICK if options.quick else linear_data.MANY_CLASSES)
    return options


def main() -> None:
    """Run, print, write."""
    options = parse_arguments()
    table = Table("Linear machines with many classes", ["data set", "machine", *FORMS, "stop"])
    table.note = (
        f"C = 1, no bias, tol = {options.tol:g}, threads: {options.threads}. Loops: visits in units of the rows. "
        "Memory in MB; baseline is the process with the data. Model: all arrays of the fitted machine."
    )
    notes, records = list(options.note), []
    for name in options.data:
        for machine in options.machines:
            console.print(f"  {name}, {machine}", style="dim", highlight=False)
            settings = (str(options.tol), str(options.threads), str(options.limit))
            found = fresh.call(__file__, "measure", name, machine, *settings)
            notes += [f"{machine} on {name}: {found['error']}"] if "error" in found else []
            table.rows.append(row(name, machine, found))
            records.append({"data": name, "machine": machine, **found})
    publish("Linear machines with many classes", options.output, [table], notes=notes, data=records)


if __name__ == "__main__":
    fresh.dispatch({"measure": measure}, main)
