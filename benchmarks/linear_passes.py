"""Time fits of linear machines in units of one product X @ W, and see what a tenth of the time is worth.

The unit is the least time of several float32 products of the examples with weights of all classes, before and after
every fit; a fit counts with its least time as well. Worst first; a star marks what misses a bar: 100 units to a gap of
1e-3, and after a tenth of the time a rate within two points of the last.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import datasets
import linear_data
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from polymargin import CrammerSingerSVC, OneVsRestSVC, WestonWatkinsSVC

MACHINES = {"one-vs-rest": OneVsRestSVC, "crammer-singer": CrammerSingerSVC, "weston-watkins": WestonWatkinsSVC}
TEST_ROWS = 20_000
DATA = ("linear-100000", "linear-1000000", "mnist", "covtype")
GAP, UNITS_BAR, RATE_BAR = 1e-3, 100.0, 0.02
UNITS = 5
"""Products that are timed at a time."""


class Row(NamedTuple):
    """One machine on one data set."""

    data: str
    machine: str
    passes: float
    seconds: float
    gap: float
    rate: float
    early_rate: float

    def line(self) -> str:
        """As text."""
        slow = "*" if self.passes > UNITS_BAR or self.gap > GAP else " "
        late = "*" if self.early_rate < self.rate - RATE_BAR else " "
        return (
            f"{self.data:16}{self.machine:16}{self.passes:8.0f}{slow}{self.seconds:8.2f}{self.gap:9.1e}"
            f"{self.rate:8.4f}{self.early_rate:14.4f}{late}"
        )


def made(rows: int) -> linear_data.Parts:
    """`generate.py linear` of the data folder, with rows to test on."""
    sys.path.insert(0, str(datasets.data_folder()))
    from generate import linear

    X, y = linear(rows + TEST_ROWS)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def load(name: str) -> linear_data.Parts:
    """Dense single precision: what the product is of."""
    kind, _, rows = name.partition("-")
    train, y, test, y_test = made(int(rows)) if kind == "linear" else linear_data.ALL[name]()
    return dense(train), y, dense(test), y_test


def dense(X: Any) -> NDArray[np.float32]:
    """As rows of float32."""
    return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float32)


def least(work: Callable[[], Any], rounds: int) -> float:
    """Return the least time of several rounds, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """All machines on one data set."""
    X, y, X_test, y_test = load(name)
    W = np.random.default_rng(0).normal(size=(X.shape[1], int(y.max()) + 1)).astype(np.float32)
    given = X.astype(np.float64) if options.double else X
    for machine in options.machines:
        settings = {"kernel": "linear", "C": options.C, "stop": "gap", "tol": GAP, "n_jobs": options.threads}
        whole = MACHINES[machine](time_limit=options.limit, **settings)
        unit = seconds = float("inf")
        for _ in range(options.rounds):
            unit = min(unit, least(lambda: X @ W, UNITS))
            seconds = min(seconds, least(lambda whole=whole: whole.fit(given, y), 1))
            unit = min(unit, least(lambda: X @ W, UNITS))
        early = MACHINES[machine](time_limit=0.1 * seconds, **settings).fit(given, y)
        rates = whole.score(X_test, y_test), early.score(X_test, y_test)
        yield Row(name, machine, seconds / unit, seconds, whole.duality_gap_, *rates)


def main() -> None:
    """Measure, and print the worst first."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", nargs="+", default=DATA, help="linear-ROWS, mnist, covtype, ...")
    parser.add_argument("--machines", nargs="+", default=list(MACHINES), choices=MACHINES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120.0, help="of a fit, in seconds")
    parser.add_argument("--double", action="store_true", help="fit to float64, which StandardScaler makes of most data")
    parser.add_argument("--C", type=float, default=1.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = [row for name in options.data for row in measure(name, options)]
    print(f"{'data':16}{'machine':16}{'X @ W':>8}{'seconds':>9}{'gap':>9}{'rate':>8}{'after a tenth':>15}")
    for row in sorted(rows, key=lambda row: -row.passes):
        print(row.line())


if __name__ == "__main__":
    main()
