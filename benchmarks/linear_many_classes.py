"""Time and memory of our linear all-together machines with 52, 1,000 and 10,000 classes.

Every case runs in a fresh process, as in `memory.py`. R52 are the single-topic documents of Reuters-21578; the others
are made up: 20,000 rows of about 50 of 20,000 words, two rows a class where there are 10,000.
"""

import argparse
from typing import Any

import fresh
import linear_data
import linear_objective
import linear_peers
import numpy as np
from memory import MB, measured_fit, size
from report import MISSING, Cell, Table, console, number, publish

MACHINES = ("crammer-singer", "weston-watkins")
QUICK = ("r52",)
TIMES = {
    "classes": "d",
    "seconds": ".3g",
    "processor seconds": ".3g",
    "loops": ".1f",
    "us per loop and class": ".3g",
    "relative gap": ".1e",
    "primal": ".7g",
    "test rate, %": ".2f",
}
SIZES = {
    "coefficients": "d",
    "share of all": ".1e",
    "weights": ".0f",
    "baseline": ".0f",
    "peak - baseline": ".0f",
    "/ weights": ".2f",
    "model": ".0f",
}


def measure(name: str, machine: str, tol: str, threads: str, limit: str) -> dict[str, Any]:
    """Child: one fit, its time and peak, and what came of it."""
    data = linear_data.load(name)
    model = linear_peers.polymargin(machine, float(tol), int(threads), time_limit=float(limit))
    found = measured_fit(model, data.X_train, data.y_train)
    said, weights = linear_peers.account(model), linear_peers.weights_without_bias(model)
    taken = (found["peak"] - found["baseline"]) * MB
    loops, n_coefficients = said["visits"] / data.X_train.shape[0], int(np.sum(model.dual_coef_ != 0))
    return {
        "classes": data.n_classes,
        "seconds": found["seconds"],
        "processor seconds": found["processor seconds"],
        "loops": loops,
        "us per loop and class": 1e6 * found["processor seconds"] / loops / data.n_classes,
        "relative gap": float(said["duality_gap_"]),
        "stop": str(said["stop_reason_"]),
        "primal": linear_objective.primal(machine, data, weights, linear_peers.C),
        "coefficients": n_coefficients,
        "share of all": n_coefficients / (data.X_train.shape[0] * data.n_classes),
        "weights": weights.nbytes / MB,
        "baseline": found["baseline"],
        "peak - baseline": taken / MB,
        "/ weights": taken / weights.nbytes,
        "model": size(vars(model)) / MB,
        "test rate, %": linear_objective.rate(data, weights),
    }


def time_table(records: list[dict[str, Any]], options: argparse.Namespace) -> Table:
    """How long, and how good; dashes where a case failed."""
    table = Table("Linear machines with many classes: time", ["data set", "machine", *TIMES, "stop"])
    table.note = (
        f"C = 1, no bias, tol = {options.tol:g}, threads: {options.threads}. Loops: visits in units of the rows. The "
        "time of a loop is that of the processor, reading and certificate in it."
    )
    for found in records:
        stop = found.get("stop", MISSING)
        outcome = Cell(stop, None if stop == MISSING else stop == "converged")
        table.rows.append([*cells(found, TIMES), outcome])
    return table


def size_table(records: list[dict[str, Any]]) -> Table:
    """How much memory."""
    table = Table("Linear machines with many classes: memory, MB", ["data set", "machine", *SIZES])
    table.note = (
        "Coefficients: those of the dual that are not zero. Weights: features x classes in float64. Baseline: the "
        "process with the data. Model: all arrays of the fitted machine, the weights among them."
    )
    table.rows = [cells(found, SIZES) for found in records]
    return table


def cells(found: dict[str, Any], forms: dict[str, str]) -> list[Cell]:
    """One case."""
    return [Cell(found["data"]), Cell(found["machine"]), *(number(found.get(key), form) for key, form in forms.items())]


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
    notes, records = list(options.note), []
    for name in options.data:
        for machine in options.machines:
            console.print(f"  {name}, {machine}", style="dim", highlight=False)
            settings = (str(options.tol), str(options.threads), str(options.limit))
            found = fresh.call(__file__, "measure", name, machine, *settings)
            notes += [f"{machine} on {name}: {found['error']}"] if "error" in found else []
            records.append({"data": name, "machine": machine, **found})
    tables = [time_table(records, options), size_table(records)]
    publish("Linear machines with many classes", options.output, tables, notes=notes, data=records)


if __name__ == "__main__":
    fresh.dispatch({"measure": measure}, main)
