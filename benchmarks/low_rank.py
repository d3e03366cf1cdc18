"""Low-rank features before a linear machine against the exact kernel machine: accuracy, and the ratio of the times.

Both get the same rows of mnist, the same kernel and as many threads. The time of the pipeline has everything in it:
choosing points, kernel values, features, the linear machine. The bar: within one point of the exact rate in a tenth of
its time. Contenders take turns; medians are reported.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import datasets
import numpy as np
from report import Cell, Table, console, number, publish
from sklearn.pipeline import make_pipeline

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC
from polymargin.features import CholeskyFeatures, SubsetFeatures

EXACT = {"CrammerSingerSVC": CrammerSingerSVC, "OneVsOneSVC": OneVsOneSVC}
MAPS = {"SubsetFeatures": SubsetFeatures, "CholeskyFeatures": CholeskyFeatures}
POINTS, SHARE = 1.0, 0.1


@dataclass
class Record:
    """What one contender did, round after round."""

    name: str
    rate: float = 0.0
    fit: list[float] = field(default_factory=list)
    predict: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Median time of a fit."""
        return float(np.median(self.fit))


def exact_machines(options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """Kernel machines at mnist's parameters."""
    p = datasets.MNIST
    return {name: lambda M=M: M(C=p.C, gamma=p.gamma, n_jobs=options.threads) for name, M in EXACT.items()}


def pipelines(options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """Features of every rank before linear machines."""
    found = {}
    for map_name in options.maps:
        for rank in options.ranks:
            for Machine in (CrammerSingerSVC, OneVsRestSVC):

                def make(Map: Any = MAPS[map_name], rank: int = rank, Machine: Any = Machine) -> Any:
                    features = Map(rank, gamma=datasets.MNIST.gamma, n_jobs=options.threads)
                    linear = {"kernel": "linear", "tol": options.tol, "n_jobs": options.threads}
                    return make_pipeline(features, Machine(C=options.cost, **linear))

                found[f"{map_name}({rank}) + {Machine.__name__}"] = make
    return found


def race(contenders: dict[str, Callable[[], Any]], options: argparse.Namespace) -> dict[str, Record]:
    """Fit and test every contender in turn."""
    data = datasets.load("mnist-60000", np.float32)
    X, y = data.X_train[: options.rows], data.y_train[: options.rows]
    records = {name: Record(name) for name in contenders}
    for _ in range(options.rounds):
        for name, make in contenders.items():
            machine, record = make(), records[name]
            started = time.perf_counter()
            machine.fit(X, y)
            fitted = time.perf_counter()
            record.rate = 100 * machine.score(data.X_test, data.y_test)
            record.fit.append(fitted - started)
            record.predict.append(time.perf_counter() - fitted)
            console.print(f"{name}: {record.rate:.2f} %, {record.fit[-1]:.2f} s")
    return records


def table(records: dict[str, Record], options: argparse.Namespace) -> Table:
    """Every contender beside both exact machines."""
    columns = ["machine", "test rate, %", "fit, s", "predict, s"]
    columns += [f"{what} {name}" for name in EXACT for what in ("points below", "time /")]
    result = Table(f"mnist, {options.rows:,} training rows, {options.threads} threads", columns)
    result.note = (
        f"Medians of {options.rounds} rounds. ✓: at most {POINTS:g} point below, at most {SHARE:g} of the time. Linear "
        f"machines at C = {options.cost:g} and tol = {options.tol:g}; kernel machines at C = {datasets.MNIST.C:g}, "
        f"gamma = {datasets.MNIST.gamma:g}."
    )
    for record in records.values():
        cells = [Cell(record.name), number(record.rate, ".2f"), number(record.seconds)]
        cells.append(number(float(np.median(record.predict))))
        for name in EXACT:
            below, share = records[name].rate - record.rate, record.seconds / records[name].seconds
            exact = record.name in EXACT
            cells.append(number(below, "+.2f", None if exact else below <= POINTS))
            cells.append(number(share, ".3f", None if exact else share <= SHARE))
        result.rows.append(cells)
    return result


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[500, 1000])
    parser.add_argument("--maps", nargs="+", choices=list(MAPS), default=list(MAPS))
    parser.add_argument("--cost", type=float, default=10.0, help="C of the linear machines")
    parser.add_argument("--tol", type=float, default=1e-2, help="relative gap of the linear machines")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round of 2,000 rows")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.ranks, options.rounds = 2000, [200], 1
    records = race(exact_machines(options) | pipelines(options), options)
    data = [asdict(record) for record in records.values()]
    publish("Low-rank features before a linear machine", options.output, [table(records, options)], data=data)


if __name__ == "__main__":
    main()
