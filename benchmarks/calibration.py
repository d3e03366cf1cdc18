"""Time machines with calibrated probabilities against scikit-learn's `CalibratedClassifierCV`, interleaved in one run.

Both hold out five folds: scikit-learn refits its `SVC` (or `LinearSVC`) from nothing for each, ours goes on from the
whole solution. The log losses on the test rows are those of these fits, and of scikit-learn's calibration of our
machine on our folds, which is what ours has to be as good as.
"""

import argparse
import itertools
import json
import statistics
import time
from typing import Any, NamedTuple

import datasets
import linear_data
import numpy as np
from report import RESULTS, Cell, Table, console, number, publish
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit
from sklearn.svm import SVC, LinearSVC

from polymargin import CrammerSingerSVC, OneVsRestSVC, WestonWatkinsSVC
from polymargin.formulations import training_set
from polymargin.formulations.folds import folds_of

KERNEL = ("vowel", "segment", "dna", "satimage", "usps", "letter", "mnist-10000")
LINEAR = ("news20", "20newsgroups", "mnist")
QUICK = ("vowel", "segment", "dna")
MOST_ROWS = 5000  # of a kernel's training rows, and of mnist's for a linear machine
METHODS = ("sigmoid", "isotonic", "temperature")
MACHINES = {"one-against-all": OneVsRestSVC, "Weston-Watkins": WestonWatkinsSVC, "Crammer-Singer": CrammerSingerSVC}
PEER = "scikit-learn"
LEAST = 5.0
WORSE = 1.005  # log losses that are taken for the same


class Data(NamedTuple):
    """What is fitted, and how."""

    name: str
    parts: tuple[Any, ...]  # rows and labels of training and test
    parameters: dict[str, Any]


class Fit(NamedTuple):
    """One fit of one contender."""

    data: str
    method: str
    contender: str
    threads: int
    seconds: float
    loss: float


def load(name: str) -> Data:
    """Return a data set, thinned where a kernel has too many rows of it."""
    if name.removesuffix(", linear") in LINEAR:
        own = linear_data.load(name.removesuffix(", linear"))
        step = max(1, own.X_train.shape[0] // (2 * MOST_ROWS)) if own.name == "mnist" else 1
        return Data(
            f"{own.name}, linear",
            (own.X_train[::step], own.y_train[::step], own.X_test, own.y_test),
            {"C": 1.0, "kernel": "linear"},
        )
    own = datasets.load(name)
    step = -(-len(own.X_train) // MOST_ROWS)
    best = own.source.one_vs_one
    parts = own.X_train[::step], own.y_train[::step], own.X_test, own.y_test
    return Data(name, parts, {"C": best.C, "gamma": best.gamma})


def ours(data: Data, machine: str, **options: Any) -> Any:
    """Return one of our machines."""
    bias = {"bias": "regularized"} if data.parameters.get("kernel") == "linear" else {}
    return MACHINES[machine](**data.parameters, **bias, **options)


def peer(data: Data, method: str, threads: int) -> Any:
    """Return scikit-learn's machine, with a process for each thread."""
    C = data.parameters["C"]
    linear = data.parameters.get("kernel") == "linear"
    machine = LinearSVC(C=C) if linear else SVC(C=C, gamma=data.parameters["gamma"], cache_size=1000)
    return CalibratedClassifierCV(machine, method=method, ensemble=False, cv=5, n_jobs=threads)


def same_folds(data: Data, machine: str, method: str) -> float:
    """Return the log loss of scikit-learn's calibration of our machine on our folds."""
    X, y, X_test, y_test = data.parts
    classes, codes = np.unique(y, return_inverse=True)
    training = training_set(X, codes, classes, C=1.0)
    folds = np.empty(len(y), dtype=np.int64)
    folds[training.order] = folds_of(X, training, None)
    inner = ours(data, machine, n_jobs=2)
    theirs = CalibratedClassifierCV(inner, method=method, ensemble=False, cv=PredefinedSplit(folds)).fit(X, y)
    return log_loss(y_test, theirs.predict_proba(X_test), labels=classes)


def race(data: Data, options: argparse.Namespace) -> list[Fit]:
    """Fit all in turns; who takes long does so once."""
    X, y, X_test, y_test = data.parts
    found: list[Fit] = []
    for method in options.methods:
        for threads in options.threads:
            contenders = {PEER: peer(data, method, threads)}
            contenders |= {m: ours(data, m, calibration=method, n_jobs=threads) for m in options.machines}
            for turn in range(options.rounds):
                for name, estimator in contenders.items():
                    own = [f for f in found if (f.contender, f.threads, f.method) == (name, threads, method)]
                    if any(f.seconds > options.long for f in own):
                        continue
                    start = time.perf_counter()
                    estimator.fit(X, y)
                    seconds = time.perf_counter() - start
                    loss = log_loss(y_test, estimator.predict_proba(X_test), labels=estimator.classes_)
                    found.append(Fit(data.name, method, name, threads, seconds, loss))
                    console.print(
                        f"  {data.name}, {method}, {name}, {threads} threads, {turn}: {seconds:.3g} s, {loss:.4f}",
                        style="dim",
                    )
    return found


def kept(options: argparse.Namespace) -> tuple[list[Fit], dict[tuple[str, str, str], float]]:
    """Return what earlier runs found of other data sets."""
    path = RESULTS / f"{options.output}.json"
    if options.anew or options.output is None or not path.exists():
        return [], {}
    every = json.loads(path.read_text())["data"]
    found = [Fit(**each) for each in every if "seconds" in each]
    same = {tuple(each["same_folds"][:3]): each["same_folds"][3] for each in every if "same_folds" in each}
    again = set(itertools.product(options.data, options.methods))
    return [f for f in found if (f.data, f.method) not in again], same


def time_table(found: list[Fit], options: argparse.Namespace) -> Table:
    """Seconds of fits with sigmoids, and the ratios to scikit-learn's."""
    found = [f for f in found if f.method == METHODS[0]]
    columns = ["data set", "threads", PEER, *(c for m in options.machines for c in (m, "ratio"))]
    table = Table(f"Fits with calibration={METHODS[0]!r}: seconds", columns)
    table.note = f"Medians. Ratio above 1: polymargin is faster. Bar: {LEAST:g}."
    for data in dict.fromkeys(f.data for f in found):
        for threads in sorted({f.threads for f in found if f.data == data}):

            def median(name: str, data: str = data, threads: int = threads) -> float:
                own = [f for f in found if (f.data, f.threads, f.contender) == (data, threads, name)]
                return statistics.median(f.seconds for f in own)

            theirs = median(PEER)
            cells = [Cell(data), Cell(str(threads)), number(theirs)]
            for machine in options.machines:
                ratio = theirs / median(machine)
                cells += [number(median(machine)), number(ratio, ".1f", ratio >= LEAST)]
            table.rows.append(cells)
    return table


def loss_table(found: list[Fit], same: dict[tuple[str, str, str], float], options: argparse.Namespace) -> Table:
    """Log losses of all methods: ours, and in brackets scikit-learn's calibration of the same machine and folds."""
    table = Table("Log loss on the test rows", ["data set", "method", PEER, *options.machines])
    table.note = (
        "Of scikit-learn's machine, and of ours; in brackets what scikit-learn's calibration makes of our machine with "
        f"our folds. The bar: no more than {100 * (WORSE - 1):.1f} % worse than that."
    )
    for data in dict.fromkeys(f.data for f in found):
        for method in METHODS:
            last = {f.contender: f.loss for f in found if (f.data, f.method) == (data, method)}
            if not last:
                continue
            cells = [Cell(data), Cell(method), number(last[PEER], ".4f")]
            for machine in options.machines:
                beside = same.get((data, method, machine))
                if beside is None:
                    cells.append(number(last[machine], ".4f"))
                else:
                    reached = last[machine] <= WORSE * beside
                    cells.append(Cell(f"{last[machine]:.4f} ({beside:.4f})", reached))
            table.rows.append(cells)
    return table


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [*KERNEL, *(f"{name}, linear" for name in LINEAR)]
    parser.add_argument("--data", nargs="+", choices=names, default=names)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--machines", nargs="+", choices=list(MACHINES), default=list(MACHINES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", type=float, default=10.0, help="seconds of a fit that is not repeated")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--same-folds", action="store_true", help="also calibrate our machines by scikit-learn, slowly")
    parser.add_argument("--anew", action="store_true", help="forget what earlier runs wrote of other data sets")
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)} alone")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    options.data = QUICK if options.quick else options.data
    found, same = kept(options)
    for name in options.data:
        data = load(name)
        found += race(data, options)
        if options.same_folds:
            same |= {
                (data.name, how, which): same_folds(data, which, how)
                for how in options.methods
                for which in options.machines
            }
    tables = [time_table(found, options), loss_table(found, same, options)]
    every = [f._asdict() for f in found] + [{"same_folds": [*key, loss]} for key, loss in same.items()]
    publish("Calibrated probabilities", options.output, tables, notes=options.note, data=every)


if __name__ == "__main__":
    main()
