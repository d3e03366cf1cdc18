"""Draw Table 1.1 and Figure 1.1 of Zien, De Bona and Ong 2007 again: test errors of the primal machine, beside theirs.

Table 1.1: five data sets in three sizes, twenty random splits, sigma and C chosen by three-fold cross-validation from
five times five values relative to the data (`polymargin.selection.zien_grid`); then the same machine one-vs-rest, and
pairwise coupling. Figure 1.1: error against training time when the features have the rank n, n/2, n/4, ... What is done
is kept under build/: a run that was stopped goes on where it was.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import _path  # noqa: F401
import datasets
import numpy as np
from numpy.typing import NDArray
from report import RESULTS, Cell, Table, console, number, publish
from result_store import ResultStore
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from polymargin import OneVsOneSVC, SoftmaxSVC
from polymargin.selection import zien_grid

SIZES = ("small", "medium", "large")
TRAINING = {
    "abe": (280, 560, 1120),
    "dna": (300, 500, 1000),
    "segment": (250, 500, 1000),
    "waveform": (150, 300, 600),
    "satimage": (1000, 1500, 2000),
}
"""Rows to train on: Duan & Keerthi's sizes as known from their study; Zien et al. do not print them."""
N_FEATURES = {"abe": 16, "dna": 180, "satimage": 36, "segment": 19, "waveform": 21}
METHODS = ("m-SVM", "one vs. rest", "PWC_PSVM")
PAPER = {
    "abe": ((1.94, 0.63), (1.06, 0.38), (0.61, 0.23), (1.75, 0.65), (1.16, 0.63)),
    "dna": ((9.70, 0.57), (7.85, 0.98), (5.59, 0.47), (9.71, 0.75), (9.23, 1.73)),
    "satimage": ((11.12, 0.56), (10.14, 0.37), (9.77, 0.53), (10.89, 0.94), (10.27, 0.92)),
    "segment": ((7.85, 1.44), (5.25, 0.73), (4.27, 0.57), (8.88, 0.90), (6.66, 2.24)),
    "waveform": ((15.80, 1.31), (14.91, 1.08), (14.09, 0.82), (16.96, 0.86), (13.20, 3.70)),
}
"""Table 1.1: m-SVM small, medium, large; one vs. rest small; PWC_PSVM small, of Duan & Keerthi."""
COLUMNS = [("m-SVM", size) for size in SIZES] + [(method, "small") for method in METHODS[1:]]
BASES = {"KPCA": "subset", "Cholesky": "cholesky"}
"""The figure's decompositions "performed on" some of the points, as bases of ours."""


@dataclass(frozen=True)
class Result:
    """Test errors of one method on the splits of one data set, in percent."""

    data: str
    method: str
    size: str
    gamma: float
    C: float
    errors: list[float]


@dataclass(frozen=True)
class Point:
    """Error and training time at one rank, means over splits."""

    data: str
    basis: str
    rank: int
    error: float
    deviation: float
    seconds: float


def load(name: str) -> tuple[NDArray, NDArray]:
    """All rows of a data set: the papers draw their own splits."""
    split = name in ("dna", "satimage")
    none = datasets.Parameters(1.0, 1.0)
    source = datasets.Source(name, N_FEATURES[name], "raw", none, none, split=split)
    with np.load(datasets.cached(source)) as arrays:
        parts = datasets.PARTS if split else datasets.PARTS[:1]
        X = np.vstack([arrays[f"X_{part}"] for part in parts])
        return X.astype(np.float64), np.concatenate([arrays[f"y_{part}"] for part in parts])


def splits(name: str, size: int, count: int) -> Iterator[tuple[NDArray, NDArray, NDArray, NDArray]]:
    """Random stratified splits; attributes have mean 0 and deviation 1 on the training part."""
    X, y = load(name)
    for seed in range(count):
        X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=size, stratify=y, random_state=seed)
        scaler = StandardScaler().fit(X_train)
        yield scaler.transform(X_train), scaler.transform(X_test), y_train, y_test


def machine_of(method: str, threads: int) -> Any:
    """The machine of a column; the Cholesky basis of full rank has the same optimum as KPCA and costs less."""
    if method == "PWC_PSVM":
        return OneVsOneSVC(decision="coupling", n_jobs=threads)
    strategy = "joint" if method == "m-SVM" else "one-vs-rest"
    return SoftmaxSVC(aggregation=1.0, basis="cholesky", strategy=strategy, n_jobs=threads)


def chosen(machine: Any, X: NDArray, y: NDArray) -> dict[str, float]:
    """Sigma and C by three-fold cross-validation; of equals the first, with the smallest width and cost."""
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return GridSearchCV(machine, zien_grid(X, y), cv=folds).fit(X, y).best_params_


def measure(name: str, method: str, size: str, count: int, threads: int) -> Result:
    """Choose parameters on the first split, as the paper does for each data set and size, and test on all."""
    n = TRAINING[name][SIZES.index(size)]
    errors: list[float] = []
    params: dict[str, float] = {}
    for X_train, X_test, y_train, y_test in splits(name, n, count):
        machine = machine_of(method, threads)
        params = params or chosen(machine, X_train, y_train)
        errors.append(100 * (1 - machine.set_params(**params).fit(X_train, y_train).score(X_test, y_test)))
    return Result(name, method, size, params["gamma"], params["C"], errors)


def compared(result: Result, paper: tuple[float, float]) -> tuple[Cell, Cell]:
    """Our mean and deviation, and the difference, marked bad if it is above both deviations together."""
    mean, deviation = float(np.mean(result.errors)), float(np.std(result.errors, ddof=1))
    difference = mean - paper[0]
    error = deviation / np.sqrt(len(result.errors))
    return (
        Cell(f"{mean:.2f} ± {deviation:.2f} ({error:.2f})"),
        number(difference, "+.2f", difference <= float(np.hypot(deviation, paper[1]))),
    )


def error_table(results: list[Result], names: list[str], count: int) -> Table:
    """Table 1.1, a row for every cell of it."""
    columns = ["data set", "method", "size", "rows", "paper", "polymargin", "difference", "gamma", "C"]
    table = Table("Table 1.1: test error in percent", columns)
    table.note = (
        f"Ours: mean ± standard deviation over {count} splits (and the standard error of the mean). The paper calls "
        "its ± a standard error; its size is that of a deviation over splits, and so it is compared. The splits are "
        "not the paper's, whose page is gone. ✗: above the paper by more than both deviations together (root of the "
        "sum of their squares)."
    )
    found = {(result.data, result.method, result.size): result for result in results}
    for name in names:
        for paper, (method, size) in zip(PAPER[name], COLUMNS, strict=True):
            rows = Cell(str(TRAINING[name][SIZES.index(size)]))
            cells = [Cell(name), Cell(method), Cell(size), rows, Cell(f"{paper[0]:.2f} ± {paper[1]:.2f}")]
            result = found.get((name, method, size))
            if result is not None:
                cells += [*compared(result, paper), number(result.gamma), number(result.C)]
            else:
                cells += [Cell("not run"), *[Cell("-")] * 3]
            table.rows.append(cells)
    return table


def figure(name: str, size: str, params: dict[str, float], count: int, threads: int) -> Iterator[Point]:
    """Error and time of both bases at the ranks n, n/2, ..., as long as there are as many points as classes."""
    n = TRAINING[name][SIZES.index(size)]
    for label, basis in BASES.items():
        rank = n
        while rank >= 8:
            errors, seconds = [], []
            for X_train, X_test, y_train, y_test in splits(name, n, count):
                machine = SoftmaxSVC(basis=basis, rank=rank, n_jobs=threads, **params)
                started = time.perf_counter()
                machine.fit(X_train, y_train)
                seconds.append(time.perf_counter() - started)
                errors.append(100 * (1 - machine.score(X_test, y_test)))
            yield Point(name, label, rank, float(np.mean(errors)), float(np.std(errors)), float(np.median(seconds)))
            rank //= 2


def figure_table(points: list[Point], size: str, count: int) -> Table:
    """Figure 1.1 as numbers."""
    columns = ["data set", "decomposition", "rank", "error, %", "± over splits", "median s", "times faster"]
    table = Table(f"Figure 1.1: error against training time, {size} sets", columns)
    table.note = (
        f"{count} splits. KPCA is on so many random points, all other examples projected onto them, as in the paper. "
        "The paper prints no numbers for its curves."
    )
    full = {(p.data, p.basis): p.seconds for p in reversed(points)}
    for p in points:
        cells = [Cell(p.data), Cell(p.basis), Cell(str(p.rank)), number(p.error, ".2f"), number(p.deviation, ".2f")]
        table.rows.append([*cells, number(p.seconds), number(full[p.data, p.basis] / p.seconds, ".1f")])
    return table


def plot(points: list[Point], path: Path) -> None:
    """Draw the figure, if matplotlib is there."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        console.print("note: no matplotlib, no figure")
        return
    names = list(dict.fromkeys(p.data for p in points))
    _, axes = plt.subplots(1, len(names), figsize=(3.2 * len(names), 3), squeeze=False, layout="constrained")
    for axis, name in zip(axes[0], names, strict=True):
        for label, marker in zip(BASES, "os", strict=True):
            curve = [p for p in points if p.data == name and p.basis == label]
            axis.plot([p.seconds for p in curve], [p.error for p in curve], marker + "-", label=label)
        axis.set(title=name, xlabel="training time, s", ylabel="test error, %", xscale="log")
    axes[0][0].legend()
    plt.savefig(path)
    console.print(f"figure in {path.name}")


def best_of(results: list[Result], name: str, size: str) -> dict[str, float] | None:
    """The parameters that were chosen for the table."""
    for result in results:
        if (result.data, result.method, result.size) == (name, "m-SVM", size):
            return {"gamma": result.gamma, "C": result.C}
    return None


def measured(options: argparse.Namespace) -> Iterator[tuple[list[Result], list[Point]]]:
    """Everything for the table, and for the figure with the parameters that were chosen for it: so far, by data set."""
    store = ResultStore("zien-2007", options.anew)
    results: list[Result] = []
    points: list[Point] = []

    def stored_measure(name: str, method: str, size: str) -> Result:
        def find() -> dict[str, Any]:
            return asdict(measure(name, method, size, options.splits, options.threads))

        return Result(**store.get(f"{name}/{method}/{size}/{options.splits}", find))

    def stored_figure(name: str, params: dict[str, float]) -> list[Point]:
        def find() -> list[dict[str, Any]]:
            count = min(5, options.splits)
            return [asdict(p) for p in figure(name, options.figure_size, params, count, options.threads)]

        return [Point(**p) for p in store.get(f"{name}/figure/{options.figure_size}/{options.splits}", find)]

    for name in options.data:
        for method, size in COLUMNS:
            if size in options.sizes:
                results.append(stored_measure(name, method, size))
                console.print(f"{name}, {method}, {size}: {np.mean(results[-1].errors):.2f} %")
        params = best_of(results, name, options.figure_size)
        if params is not None:
            points += stored_figure(name, params)
        yield results, points


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(TRAINING), default=list(TRAINING))
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--figure-size", choices=SIZES, default="large", help="which sets the figure is drawn for")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="three splits of two small data sets")
    parser.add_argument("--anew", action="store_true", help="forget what earlier runs have done")
    parser.add_argument("--output", help="also write results/OUTPUT.md, .json and .png")
    options = parser.parse_args()
    if options.quick:
        options.data, options.sizes, options.figure_size, options.splits = ["abe", "waveform"], ["small"], "small", 3

    for results, points in measured(options):  # a long run: what is there is written
        tables = [error_table(results, options.data, options.splits)]
        if points:
            tables.append(figure_table(points, options.figure_size, min(5, options.splits)))
        data = [asdict(item) for item in [*results, *points]]
        publish("Table 1.1 and Figure 1.1 of Zien et al.", options.output, tables, data=data)
    if options.output:
        plot(points, RESULTS / f"{options.output}.png")


if __name__ == "__main__":
    main()
