"""Fit every machine on scikit-learn's digits and print how well, how fast and how optimal each one is."""

import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC

PARAMETERS = {"C": 10.0, "gamma": 0.001}
MACHINES = {
    "OneVsOneSVC votes": OneVsOneSVC(**PARAMETERS),
    "OneVsOneSVC dag": OneVsOneSVC(decision="dag", **PARAMETERS),
    "OneVsOneSVC adag": OneVsOneSVC(decision="adag", **PARAMETERS),
    "OneVsRestSVC": OneVsRestSVC(**PARAMETERS),
    "WestonWatkinsSVC": WestonWatkinsSVC(**PARAMETERS),
    "CrammerSingerSVC": CrammerSingerSVC(**PARAMETERS),
    "scikit-learn SVC": SVC(cache_size=1000, **PARAMETERS),
}
ROUNDS = 3


def seconds(function, *arguments):
    """Return the shortest of a few runs."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - started)
    return min(times)


def row(name, machine, X, X_test, y, y_test):
    """Fit, predict, and return what the table shows."""
    fit = seconds(machine.fit, X, y)
    predict = seconds(machine.predict, X_test)
    gap = getattr(machine, "duality_gap_", None)
    return (
        name,
        f"{100 * machine.score(X_test, y_test):.2f} %",
        f"{fit:.4f}",
        f"{predict:.4f}",
        f"{len(machine.support_)}",
        f"{np.count_nonzero(machine.dual_coef_)}",
        "none" if gap is None else f"{gap:.1e}",
    )


def main():
    """Print the table."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    for machine in MACHINES.values():  # the first call of a library pays for loading it
        machine.fit(X[:200], y[:200])
    table = Table(title=f"digits: {len(X)} rows to fit, {len(X_test)} to test, 10 classes, one thread")
    table.add_column("machine", no_wrap=True)
    for column in ("test\nrate", "fit\ns", "predict\ns", "unique\nSVs", "nonzero\ncoefs", "relative\ngap"):
        table.add_column(column, justify="right")
    for name, machine in MACHINES.items():
        table.add_row(*row(name, machine, X, X_test, y, y_test))
    Console().print(table)


if __name__ == "__main__":
    main()
