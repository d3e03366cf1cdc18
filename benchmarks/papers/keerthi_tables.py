"""Draw Tables 4.2 and 4.3 of Keerthi et al. 2008 again: test rates of the three linear machines, each at its best C.

Training and test part are put together and divided anew into 60 % to train, 20 % to choose C and 20 % to test, class by
class. The best C on the validation part is trained again on training and validation part together. All C of the list
are fitted in ascending order, each from the solution of the one before.

What is found is kept after every machine of every partition, so a run that was stopped goes on where it was.
"""

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import _path  # noqa: F401
import bars
import keerthi
import linear_data
import linear_peers
import numpy as np
from datasets import ROOT
from joblib import Parallel, delayed
from linear_data import Matrix
from numpy.typing import NDArray
from report import Cell, Table, console, number, publish
from scipy.stats import wilcoxon
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from polymargin.selection import regularization_path

KEPT = ROOT / "build" / "keerthi-tables"
FIRST, *DIRECT = keerthi.METHODS
QUICK_ROWS = 2_000
SCALES = {name: linear_data.SOURCES[name].scale for name in keerthi.RATES} | {"covtype": linear_data.unit_columns}
"""The paper counts 12 non-zeros a row of covtype, as many as the raw file has: its columns were not centred."""


class Settings(NamedTuple):
    """What a trial depends on, besides the machine."""

    data: str
    rows: int | None
    partition: int
    tol: float
    loops: int


@dataclass(frozen=True)
class Trial:
    """One machine on one partition: the cost that was chosen, and what it led to."""

    machine: str
    settings: Settings
    C: float
    validation: list[float]
    rate: float
    seconds: float
    cut: int


class Partition(NamedTuple):
    """Unscaled rows to train, to choose by and to test, with their labels."""

    train: tuple[Matrix, NDArray]
    validation: tuple[Matrix, NDArray]
    test: tuple[Matrix, NDArray]


def partition(X: Matrix, y: NDArray, settings: Settings) -> Partition:
    """Divide the rows 60 : 20 : 20, class by class; if fewer are wanted, those are drawn first, always the same."""
    every = np.arange(len(y))
    if settings.rows is not None and settings.rows < len(y):
        every, _ = train_test_split(every, train_size=settings.rows, stratify=y, random_state=0)
    both, test = train_test_split(every, test_size=0.2, stratify=y[every], random_state=settings.partition)
    train, validation = train_test_split(both, test_size=0.25, stratify=y[both], random_state=settings.partition)
    return Partition(*((X[part], y[part]) for part in (train, validation, test)))


def fit_path(machine: str, X: Matrix, y: NDArray, costs: tuple[float, ...], settings: Settings) -> list[Any]:
    """All machines of a series of costs, cut off after so many loops over the rows."""
    model = linear_peers.polymargin(machine, settings.tol, 1, max_iter=settings.loops * len(y))
    return regularization_path(model, X, y, costs)


def together(X: Matrix, other: Matrix) -> Matrix:
    """Rows of both; the raw data are sparse."""
    from scipy.sparse import vstack

    return vstack([X, other], format="csr")


def attempt(machine: str, settings: Settings) -> Trial:
    """Choose C, train again, test."""
    scale = SCALES[settings.data]
    parts = partition(*linear_data.whole(settings.data), settings)
    (X, y), (X_validation, y_validation), (X_test, y_test) = parts
    warnings.simplefilter("ignore", ConvergenceWarning)  # how many fits were cut off is in the table
    start = time.perf_counter()
    rows, others = scale(X, X_validation)
    path = fit_path(machine, rows, y, keerthi.COSTS, settings)
    validation = [100 * model.score(others, y_validation) for model in path]
    best = int(np.argmax(validation))  # of equals the smallest C
    rows, others = scale(together(X, X_validation), X_test)
    again = fit_path(machine, rows, np.concatenate([y, y_validation]), keerthi.COSTS[: best + 1], settings)
    rate = 100 * again[-1].score(others, y_test)
    cut = sum(not model.converged_ for model in [*path, again[-1]])
    return Trial(machine, settings, keerthi.COSTS[best], validation, rate, time.perf_counter() - start, cut)


def saved_trials(data: str) -> dict[tuple[str, Settings], Trial]:
    """What earlier runs found on a data set, whatever their settings."""
    path = KEPT / f"{data}.json"
    records = json.loads(path.read_text()) if path.exists() else []
    trials = [Trial(**record | {"settings": Settings(*record["settings"])}) for record in records]
    return {(trial.machine, trial.settings): trial for trial in trials}


def keep(data: str, trials: dict[tuple[str, Settings], Trial]) -> None:
    """Write what is known; renamed, so that a run that is killed here leaves the old file."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{data}.json"
    partial = path.with_suffix(f".{os.getpid()}.json")
    partial.write_text(json.dumps([asdict(trial) for trial in trials.values()], indent=1))
    partial.replace(path)


def wanted(data: str, options: argparse.Namespace) -> Iterator[Settings]:
    """The partitions that are asked for."""
    for index in range(options.partitions):
        yield Settings(data, options.rows.get(data), index, options.tol, options.loops)


def run(data: str, options: argparse.Namespace) -> list[Trial]:
    """All trials of a data set; only those that nobody has done yet take time."""
    known = {} if options.again else saved_trials(data)
    asked = [(machine, settings) for settings in wanted(data, options) for machine in keerthi.METHODS]
    if options.kept:
        done = {settings for _, settings in asked if all((machine, settings) in known for machine in keerthi.METHODS)}
        asked = [key for key in asked if key[1] in done]
    missing = [key for key in asked if key not in known]
    for trial in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
        delayed(attempt)(machine, settings) for machine, settings in missing
    ):
        known[trial.machine, trial.settings] = trial
        keep(data, known)
        label = f"  {data}, partition {trial.settings.partition + 1}, {trial.machine}: C = {trial.C:g}"
        console.print(f"{label}, test rate {trial.rate:.2f}, {trial.seconds:.0f} s", style="dim", highlight=False)
    return [known[key] for key in asked]


def of(trials: list[Trial], data: str, machine: str) -> list[Trial]:
    """The trials of one machine on one data set, by partition."""
    return [trial for trial in trials if (trial.settings.data, trial.machine) == (data, machine)]


def rates(trials: list[Trial], data: str, machine: str) -> list[float]:
    """Test rates, by partition."""
    return [trial.rate for trial in of(trials, data, machine)]


def mean_and_deviation(values: list[float]) -> str:
    """As the paper prints them."""
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"


def rate_table(trials: list[Trial], options: argparse.Namespace) -> Table:
    """Table 4.2, one row for every method on every data set."""
    columns = ["data set", "rows", "partitions", "method", "paper", "polymargin", "difference", "C chosen", "cut off"]
    table = Table("Table 4.2: test rate, %", columns)
    table.note = (
        "Mean ± standard deviation over the partitions. ✓ and ✗: the mean is within "
        f"{bars.KEERTHI_POINTS:g} of the paper's or not, where all rows were used. C chosen: the median. Cut off: fits "
        f"of C and of the final machine, {len(keerthi.COSTS) + 1} for each partition, that were stopped after "
        f"{options.loops} loops with a gap above {options.tol:g}."
    )
    for data in options.data:
        for method in keerthi.METHODS:
            found, paper = of(trials, data, method), keerthi.RATES[data][method]
            ours = rates(trials, data, method)
            apart = statistics.mean(ours) - paper.mean
            judged = abs(apart) <= bars.KEERTHI_POINTS if options.rows.get(data) is None else None
            rows = options.rows.get(data)
            table.rows.append(
                [
                    Cell(data),
                    Cell("all" if rows is None else str(rows)),
                    number(len(found), "d"),
                    Cell(method),
                    Cell(f"{paper.mean:.2f} ± {paper.deviation:.2f}"),
                    Cell(mean_and_deviation(ours)),
                    number(apart, "+.2f", judged),
                    number(statistics.median(trial.C for trial in found), "g"),
                    Cell(f"{sum(trial.cut for trial in found)} of {(len(keerthi.COSTS) + 1) * len(found)}"),
                ]
            )
    return table


def p_value(first: list[float], second: list[float]) -> float:
    """Wilcoxon's signed-rank test; rates that are all equal say nothing."""
    return 1.0 if first == second else float(wilcoxon(first, second).pvalue)


def verdict(p: float, ahead: float, method: str) -> str:
    """Who is better at the paper's level; `ahead` is how much the method is before one-against-all."""
    if p > keerthi.LEVEL:
        return "neither"
    return method if ahead > 0 else FIRST


def test_table(trials: list[Trial], options: argparse.Namespace) -> Table:
    """Table 4.3: whether a direct method differs from one-against-all."""
    columns = ["data set", "method", "p, paper", "better, paper", "p, polymargin", "better, polymargin"]
    table = Table("Table 4.3: Wilcoxon signed-rank test against one-against-all", columns)
    table.note = (
        f"Better: at a level of {keerthi.LEVEL:g}, which fewer than eight partitions cannot reach. ✓ and ✗: the same "
        "verdict as the paper's or not, where the partitions are as many as there."
    )
    for data in options.data:
        for method in DIRECT:
            paper, printed = keerthi.RATES[data], keerthi.P_VALUES[data][method]
            theirs = verdict(printed, paper[method].mean - paper[FIRST].mean, method)
            pair = rates(trials, data, FIRST), rates(trials, data, method)
            p = p_value(*pair)
            ours = verdict(p, statistics.mean(pair[1]) - statistics.mean(pair[0]), method)
            judged = ours == theirs if len(pair[0]) >= keerthi.PARTITIONS else None
            cells = [number(printed, ".2g"), Cell(theirs), number(p, ".2g"), Cell(ours, judged)]
            table.rows.append([Cell(data), Cell(method), *cells])
    return table


def validation_table(trials: list[Trial], options: argparse.Namespace) -> Table:
    """How much the choice of C matters."""
    columns = ["data set", "method", *(f"C = {cost:g}" for cost in keerthi.COSTS)]
    table = Table("Rates on the validation part, %", columns, note="Means over the partitions.")
    for data in options.data:
        for method in keerthi.METHODS:
            means = np.mean([trial.validation for trial in of(trials, data, method)], axis=0)
            table.rows.append([Cell(data), Cell(method), *(number(float(mean), ".2f") for mean in means)])
    return table


def row_limits(pairs: list[str]) -> dict[str, int]:
    """Limits from arguments such as ``covtype=50000``."""
    limits = dict(pair.split("=") for pair in pairs)
    if unknown := limits.keys() - keerthi.RATES.keys():
        raise SystemExit(f"--rows: {', '.join(unknown)}: not among {', '.join(keerthi.RATES)}")
    return {name: int(rows) for name, rows in limits.items()}


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=keerthi.RATES, default=list(keerthi.RATES))
    parser.add_argument("--partitions", type=int, default=keerthi.PARTITIONS, help="how many, from the first on")
    parser.add_argument("--rows", nargs="+", default=[], metavar="DATA=ROWS", help="use so many rows of a data set")
    parser.add_argument("--tol", type=float, default=1e-3, help="relative duality gap of a fit")
    parser.add_argument(
        "--loops", type=int, default=500, help="visits in units of the rows after which a fit is cut off"
    )
    parser.add_argument("--jobs", type=int, default=2, help="machines and partitions at the same time")
    parser.add_argument(
        "--kept", action="store_true", help="run nothing: show the partitions that earlier runs finished"
    )
    parser.add_argument("--again", action="store_true", help="do not use what earlier runs found")
    parser.add_argument("--quick", action="store_true", help=f"two partitions of {QUICK_ROWS} rows of news20")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    options.rows = row_limits(options.rows)
    if options.quick:
        options.data, options.partitions, options.rows = ["news20"], 2, {"news20": QUICK_ROWS}
    return options


def main() -> None:
    """Run, print, write."""
    options = parse_arguments()
    trials = [trial for data in options.data for trial in run(data, options)]
    options.data = list(dict.fromkeys(trial.settings.data for trial in trials))
    publish(
        "Test rates of Keerthi et al. 2008",
        options.output,
        [rate_table(trials, options), test_table(trials, options)],
        details=[validation_table(trials, options)],
        notes=options.note,
        data=[asdict(trial) for trial in trials],
    )


if __name__ == "__main__":
    main()
