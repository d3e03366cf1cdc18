"""Small things must be quick: iris, one row, import, and Ctrl-C.

Without polymargin the same measurements are taken of scikit-learn, to show that they work.
"""

import argparse
import signal
import statistics
import time
from typing import Any

import bars
import fresh
from report import Cell, Table, number, publish

INTERRUPT_DATA = "mnist-60000"
LINEAR_INTERRUPT_DATA = "covtype"
KERNEL = "kernel"
PREDICTED = ("iris", "digits", "letter")
ROWS = (1, 10, 100, 1000)
PEER = "scikit-learn SVC"
ROUNDS = 15
PEER_ROUNDS = 3
"""Least rounds of a measurement, and the most of the peer where it is slow and only ours are judged."""
READY = "ready"
IMPORTS = """
import json, time
start = time.perf_counter()
import sklearn.base, sklearn.multiclass, sklearn.svm, sklearn.utils.validation
between = time.perf_counter()
try:
    from polymargin import OneVsOneSVC
    added = time.perf_counter() - between
except ImportError:
    added = None
print(json.dumps({"sklearn": between - start, "added": added}))
"""
"""What importing us adds once the parts of scikit-learn that any such package needs are there."""


def module_name() -> str:
    """What is measured."""
    from contenders import polymargin_available

    return "polymargin" if polymargin_available() else "sklearn.svm"


def make(parameters: Any) -> Any:
    """Our machine, or scikit-learn's where ours cannot be imported."""
    from contenders import polymargin_available, polymargin_one_vs_one, scikit_learn_svc

    return polymargin_one_vs_one(parameters, 2) if polymargin_available() else scikit_learn_svc(parameters)


def iris(repeats: str) -> dict[str, Any]:
    """Child: median and slowest of many fit + predict with default parameters."""
    import importlib

    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    module = importlib.import_module(module_name())
    machine = getattr(module, "OneVsOneSVC", None) or module.SVC
    times = []
    for _ in range(int(repeats)):
        start = time.perf_counter()
        machine().fit(X, y).predict(X)
        times.append(time.perf_counter() - start)
    return {"first": times[0], "median": statistics.median(times)}


def prediction_data(name: str) -> tuple[Any, Any, Any, Any]:
    """Training rows, their classes, rows to predict, parameters; of digits about 1,600 rows are support vectors."""
    import datasets
    from sklearn.datasets import load_digits

    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X / 16, y, X / 16, datasets.Parameters(10.0, 1.5)
    data = datasets.load_iris_like() if name == "iris" else datasets.load(name)
    return data.X_train, data.y_train, data.X_test, data.source.one_vs_one


def prediction_machines(parameters: Any) -> dict[str, Any]:
    """scikit-learn's machine and ours, all with the same parameters and one thread."""
    from sklearn.svm import SVC

    from polymargin import OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC

    options = {"C": parameters.C, "gamma": parameters.gamma}
    return {
        PEER: SVC(**options),
        "votes": OneVsOneSVC(**options),
        "dag": OneVsOneSVC(decision="dag", **options),
        "adag": OneVsOneSVC(decision="adag", **options),
        "one-vs-rest": OneVsRestSVC(**options),
        "weston-watkins": WestonWatkinsSVC(**options),
    }


def predictions(name: str, seconds: str) -> dict[str, Any]:
    """Child: medians of the time to predict some rows, the machines one after the other, again and again."""
    X, y, queries, parameters = prediction_data(name)
    machines = {label: machine.fit(X, y) for label, machine in prediction_machines(parameters).items()}
    found = {}
    for n in sorted({*(rows for rows in ROWS if rows < len(queries)), len(queries)}):
        times: dict[str, list[float]] = {label: [] for label in machines}
        until = time.perf_counter() + float(seconds)
        first = 0
        while time.perf_counter() < until or len(times["votes"]) < ROUNDS:
            rows = queries[first : first + n]
            first = (first + n) % (len(queries) - n + 1)
            for label, machine in machines.items():
                if label == PEER and n >= bars.ELIMINATION_ROWS and len(times[PEER]) == PEER_ROUNDS:
                    continue
                start = time.perf_counter()
                machine.predict(rows)
                times[label].append(time.perf_counter() - start)
        found[str(n)] = {label: statistics.median(values) for label, values in times.items()}
    vectors = {label: len(machine.support_) for label, machine in machines.items()}
    return {"times": found, "vectors": vectors}


def judged(name: str, n: int, label: str, times: dict[str, float]) -> bool | None:
    """Whether a time reaches its bars; None where there is none."""
    if label in ("dag", "adag"):
        least = bars.ELIMINATION_LEAST if name == "letter" and n >= bars.ELIMINATION_ROWS else 1 / bars.ELIMINATION_MOST
        return times["votes"] >= least * times[label]
    return times[label] <= bars.ROW_MOST * times[PEER] if n == 1 and label != PEER else None


def prediction_table(seconds: float) -> tuple[Table, list[str]]:
    """Times to predict, with the ratio to scikit-learn's, and of eliminations to votes."""
    labels = (PEER, "votes", "dag", "adag", "one-vs-rest", "weston-watkins")
    note = (
        "Microseconds, one thread, medians; in brackets how many times as fast as scikit-learn, and for DAG and ADAG "
        f"as votes. Bars: one row at least {1 / bars.ROW_MOST:g} x as fast as scikit-learn; DAG and ADAG at least "
        f"{1 / bars.ELIMINATION_MOST:.2f} x as votes, and {bars.ELIMINATION_LEAST:g} x on letter from "
        f"{bars.ELIMINATION_ROWS:,} rows on."
    )
    table, notes = Table("Time to predict", ["data, rows", *labels], note=note), []
    for name in PREDICTED:
        found = fresh.call(__file__, "predictions", name, str(seconds))
        if "error" in found:
            notes.append(f"{name}: {found['error']}")
            continue
        notes.append(f"support vectors of {name}: " + ", ".join(f"{k} {n:,}" for k, n in found["vectors"].items()))
        for n, times in found["times"].items():
            cells = [Cell(f"{name}, {int(n):,}")]
            for label in labels:
                ratio = times["votes" if label in ("dag", "adag") else PEER] / times[label]
                text = f"{1e6 * times[label]:,.0f}" + ("" if label == PEER else f" ({ratio:.2f})")
                cells.append(Cell(text, judged(name, int(n), label, times)))
            table.rows.append(cells)
    return table, notes


def kernel_problem() -> tuple[Any, Any, Any]:
    """A machine that has fitted iris, and mnist, which will take it long."""
    import datasets

    small = datasets.load_iris_like()
    model = make(datasets.SOURCES[INTERRUPT_DATA].one_vs_one).fit(small.X_train, small.y_train)
    return model, *datasets.load_part(INTERRUPT_DATA, "train", "float32")


def linear_problem(machine: str) -> tuple[Any, Any, Any]:
    """The same for a linear machine, and covtype."""
    import linear_data
    import linear_peers

    small, large = linear_data.load("iris"), linear_data.load(LINEAR_INTERRUPT_DATA)
    model = linear_peers.polymargin(machine, 1e-3, 2).fit(small.X_train, small.y_train)
    return model.set_params(tol=1e-9), large.X_train, large.y_train


def interrupt(problem: str) -> dict[str, Any]:
    """Child: fit something small, then something large until Ctrl-C comes; the clock is shared with the parent."""
    import joblib

    model, X, y = kernel_problem() if problem == KERNEL else linear_problem(problem)
    before = joblib.hash(vars(model))
    print(READY, flush=True)
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        caught = time.monotonic()
        return {"caught": caught, "unchanged": joblib.hash(vars(model)) == before}
    return {"error": "the fit ended before the signal"}


def interrupt_after(problem: str, delay: float, timeout: float = 30.0) -> dict[str, Any]:
    """Start the child, send the signal `delay` seconds into the fit, and see when it was noticed."""
    process = fresh.start(__file__, "interrupt", problem)
    if process.stdout.readline().strip() != READY:
        return fresh.finish(process, timeout)
    time.sleep(delay)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    found = fresh.finish(process, timeout)
    return found if "error" in found else {"latency": found["caught"] - sent, "unchanged": found["unchanged"]}


def milliseconds(label: str, seconds: float | None, bar: float | None = None) -> list[Cell]:
    """A row of the table."""
    value = None if seconds is None else 1000 * seconds
    ok = None if value is None or bar is None else value <= bar
    return [Cell(label), number(value, ".2f", ok), number(bar, "g")]


def median(values: list[float]) -> float | None:
    """Median, None of nothing."""
    return statistics.median(values) if values else None


def import_rows(repeats: int) -> list[list[Cell]]:
    """Medians over fresh interpreters; one more goes first, to fill the disk cache."""
    found = [fresh.run_code(IMPORTS) for _ in range(repeats + 1)][1:]
    found = [one for one in found if "error" not in one]
    added = [one["added"] for one in found if one["added"] is not None]
    return [
        milliseconds("import of scikit-learn's own", median([one["sklearn"] for one in found])),
        milliseconds("polymargin on top", median(added), bars.IMPORT_MS),
    ]


def interrupt_row(problem: str, delay: float) -> list[Cell]:
    """Ctrl-C at one moment of the fit: early the kernel is computed, or the rows are read; later the solver runs."""
    found = interrupt_after(problem, delay)
    what = INTERRUPT_DATA if problem == KERNEL else f"linear {problem}, {LINEAR_INTERRUPT_DATA}"
    label = f"Ctrl-C {delay:g} s into {what}"
    if "error" in found:
        return [Cell(label), Cell(found["error"], False), number(bars.INTERRUPT_MS, "g")]
    state = "as it was" if found["unchanged"] else "CHANGED"
    value = 1000 * found["latency"]
    ok = value <= bars.INTERRUPT_MS and found["unchanged"]
    return [Cell(label), Cell(f"{value:.2f}, estimator {state}", ok), number(bars.INTERRUPT_MS, "g")]


def problems() -> list[str]:
    """What is interrupted; of the linear machines there is no stand-in if ours cannot be imported."""
    import linear_peers
    from contenders import polymargin_available

    return [KERNEL, *(linear_peers.MACHINES if polymargin_available() else ())]


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=500, help="fits of iris")
    parser.add_argument("--imports", type=int, default=9, help="fresh interpreters")
    parser.add_argument("--delays", nargs="*", type=float, default=[0.1, 0.3, 1.0, 3.0], help="seconds until Ctrl-C")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each number of rows that are predicted")
    parser.add_argument("--only-predictions", action="store_true", help="leave out fits, imports and Ctrl-C")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    tables, notes = [], []
    if not options.only_predictions:
        small = fresh.call(__file__, "iris", str(options.repeats))
        table = Table(f"Latency of {module_name()}", ["what", "ms", "bar"])
        table.rows = [
            milliseconds("iris fit + predict, the first", small.get("first")),
            milliseconds("iris fit + predict, median", small.get("median"), bars.IRIS_MS),
            *import_rows(options.imports),
            *(interrupt_row(problem, delay) for problem in problems() for delay in options.delays),
        ]
        tables.append(table)
        notes += [f"iris: {small['error']}"] if "error" in small else []
    if module_name() == "polymargin":
        table, remarks = prediction_table(options.seconds)
        tables.append(table)
        notes += remarks
    publish("Latency", options.output, tables, notes=[*options.note, *notes])


if __name__ == "__main__":
    fresh.dispatch({"iris": iris, "interrupt": interrupt, "predictions": predictions}, main)
