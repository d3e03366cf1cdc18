"""A table that the papers do not have: every machine of the package on the ten data sets of Hsu & Lin 2002.

In the manner of their Table V.2. Each machine gets its own best parameters of one grid, the same for all, on the same
rows, by `polymargin.compare`: the mean rate of ten folds on the six small data sets; on the four large ones, of which
no machine sees more than some thousand training rows, 30 % of these choose, and the rate on the whole test part counts.
Of candidates with equal rates the first counts. What is done is kept under build/: a run that was stopped goes on
where it was. Times are those of fits to all training rows with the best parameters, which `--times` measures anew,
the machines in turns.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import _path  # noqa: F401
import datasets
import numpy as np
from numpy.typing import NDArray
from report import Cell, Table, console, number, publish
from result_store import ResultStore
from scipy.stats import friedmanchisquare, rankdata
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from polymargin import compare
from polymargin.comparison.contestants import known_machines
from polymargin.comparison.statistics import Significance, all_pairs, verdict

NAMES = (*datasets.SMALL, *datasets.LARGE)
GRID = {"C": [2.0**e for e in (-2, 1, 4, 7, 10)], "gamma": [2.0**e for e in (-9, -6, -3, 0, 2)]}
"""Every third exponent of the paper's grid, and 2 as the largest of gamma."""
MOST_ROWS = 3_000
"""Training rows of the large data sets: with all of them a table of so many machines takes days."""
BY_PARTS = ("joint", "output-codes")
"""Machines that are others, by their parameters."""
SQUARED = ("one-against-one", "one-against-all", "Weston-Watkins", "Crammer-Singer")
COLUMNS = ["machine", "C, gamma", "rate", "against the best", "s", "unique SVs", "coefficients", "gap"]


def machines() -> dict[str, Any]:
    """Every machine of the package by its name, those with squared hinges too."""
    found = {name: machine for name, machine in known_machines().items() if name not in BY_PARTS}
    squared = {f"{name}, squared": clone(found[name]).set_params(loss="squared_hinge") for name in SQUARED}
    return {name: clone(machine).set_params(random_state=0) for name, machine in (found | squared).items()}


@dataclass(frozen=True)
class Problem:
    """A data set as all machines see it; ``test`` is None where folds measure."""

    X: NDArray
    y: NDArray
    test: tuple[NDArray, NDArray] | None


def load(name: str) -> Problem:
    """Load a data set, scaled as the paper scales it; large ones keep their classes' shares when they are thinned."""
    data = datasets.load(name)
    if name not in datasets.LARGE:
        return Problem(data.X_train, data.y_train, None)
    X, y = data.X_train, data.y_train
    if len(y) > MOST_ROWS:
        kept = np.sort(thinned(y))
        X, y = X[kept], y[kept]
    return Problem(X, y, (data.X_test, data.y_test))


def thinned(y: NDArray) -> NDArray:
    """Choose rows, the classes in their shares; classes of a few rows keep them all, so that each can be divided."""
    classes, of_row, counts = np.unique(y, return_inverse=True, return_counts=True)
    rare = np.flatnonzero(counts[of_row] <= len(y) / MOST_ROWS * len(classes))
    others = np.setdiff1d(np.arange(len(y)), rare)
    kept, _ = train_test_split(others, train_size=MOST_ROWS - len(rare), stratify=y[others], random_state=0)
    return np.concatenate([rare, kept])


def searched(problem: Problem, name: str, machine: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Choose the parameters of one machine and measure it."""
    limited = clone(machine).set_params(time_limit=options.fit_limit)
    found = compare(
        problem.X,
        problem.y,
        *(problem.test or ()),
        machines={name: limited},
        grid=GRID,
        time_limit=options.search_limit,
    )
    result = asdict(found.results[0])
    del result["candidates"], result["confusion"]
    if found.results[0].done and problem.test:
        X, y = problem.test
        result["right"] = (found.models[name].predict(X) == y).astype(int).tolist()
    return result


def measured(problem: Problem, taking_part: dict[str, Any], done: dict[str, Any], rounds: int) -> dict[str, float]:
    """Return the median seconds of fits to all training rows with the best parameters, the machines in turns."""
    spent: dict[str, list[float]] = {name: [] for name in done}
    for _ in range(rounds):
        for name, result in done.items():
            if len(spent[name]) and spent[name][0] > 5:
                continue  # long enough to be far from the others' whatever the noise
            machine = clone(taking_part[name]).set_params(**result["parameters"])
            started = time.perf_counter()
            machine.fit(problem.X, problem.y)
            spent[name].append(time.perf_counter() - started)
    return {name: median(each) for name, each in spent.items()}


def done_of(store: ResultStore, data: str, names: list[str]) -> dict[str, dict[str, Any]]:
    """Return what was found of the machines that ran to their end on a data set."""
    found = {name: store.found.get(f"{data}/{name}") for name in names}
    return {name: result for name, result in found.items() if result is not None and result["status"] == "done"}


def significance(done: dict[str, dict[str, Any]]) -> Significance:
    """Test all pairs of machines, as `compare` does."""
    rates = {name: result["rate"] for name, result in done.items()}
    folds = {name: result["fold_rates"] for name, result in done.items()}
    tested = all("right" in result for result in done.values())
    right = {name: np.array(result["right"], dtype=bool) for name, result in done.items()} if tested else None
    return all_pairs(rates, folds, right, 0.05)


def against_best(tests: Significance, name: str, best: str) -> str:
    """Say whether a machine's rate differs from the best one's."""
    if name == best:
        return "best"
    pair = tests.of(name, best)
    return "worse" if pair is not None and pair.corrected <= tests.level else "not decided"


def exponents(parameters: dict[str, Any]) -> str:
    """Print parameters as powers of two, as the paper does."""
    return ", ".join(f"2^{round(np.log2(parameters[name]))}" for name in GRID if name in parameters)


def data_table(data: str, store: ResultStore, names: list[str], seconds: dict[str, float]) -> Table:
    """Show all machines on one data set, the best rate first, those that did not end last."""
    done = done_of(store, data, names)
    table = Table(data, COLUMNS)
    if not done:
        return table
    tests = significance(done)
    best = max(done, key=lambda name: done[name]["rate"])
    table.note = " ".join(verdict(tests))
    for name, result in sorted(done.items(), key=lambda item: -item[1]["rate"]):
        row = [Cell(name), Cell(exponents(result["parameters"])), number(100 * result["rate"], ".2f")]
        row += [Cell(against_best(tests, name, best)), number(seconds.get(name))]
        row += [number(result["unique_svs"], "d"), number(result["coefficients"], "d"), number(result["gap"], ".0e")]
        table.rows.append(row)
    missing = (store.found.get(f"{data}/{name}") for name in names if name not in done)
    for result in filter(None, missing):
        table.rows.append([Cell(result["name"]), Cell(f"{result['status']}: {result['reason']}"), *[Cell("-")] * 6])
    return table


def ranks(store: ResultStore, data_sets: list[str], names: list[str]) -> Table:
    """Show all rates together, with mean ranks over the data sets that every machine ended on."""
    whole = [data for data in data_sets if len(done_of(store, data, names)) == len(names)]
    rates = {data: {name: found["rate"] for name, found in done_of(store, data, names).items()} for data in data_sets}
    table = Table("All machines: rates in per cent", ["machine", *data_sets, "mean rank"])
    by_rank = np.zeros(len(names))
    if whole:
        values = np.array([[rates[data][name] for name in names] for data in whole])
        by_rank = np.mean([rankdata(-row) for row in values], axis=0)
        p_value = friedmanchisquare(*values.T).pvalue if len(names) > 2 and len(whole) > 1 else np.nan
        table.note = (
            f"Mean ranks over the {len(whole)} data sets on which every machine ended; 1 is the best. Friedman's test "
            f"that all machines are alike: p = {p_value:.2g}."
        )
    for name, rank in sorted(zip(names, by_rank, strict=True), key=lambda pair: pair[1]):
        values = [rates[data].get(name) for data in data_sets]
        cells = [number(None if value is None else 100 * value, ".2f") for value in values]
        table.rows.append([Cell(name), *cells, number(rank, ".2f")])
    return table


def missing(store: ResultStore, data_sets: list[str], names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what is to be found yet, all machines on one data set after the other."""
    for data in data_sets:
        for name in names:
            if f"{data}/{name}" not in store:
                yield data, name


def main() -> None:
    """Run what is missing, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--machines", nargs="+", choices=list(machines()), metavar="NAME", help="all otherwise")
    parser.add_argument("--fit-limit", type=float, default=20.0, help="seconds for a fit")
    parser.add_argument("--search-limit", type=float, default=600.0, help="seconds for the search of a machine")
    parser.add_argument("--times", type=int, default=0, metavar="ROUNDS", help="measure the fits again")
    parser.add_argument("--kept", action="store_true", help="search nothing: show what earlier runs found")
    parser.add_argument("--anew", action="store_true", help="forget what earlier runs have done")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    store = ResultStore("every-machine", options.anew)
    taking_part = machines()
    names = options.machines or list(taking_part)
    for data, name in () if options.kept else missing(store, options.data, names):
        console.print(f"  {data} {name}", style="dim", highlight=False)
        store.put(f"{data}/{name}", searched(load(data), name, taking_part[name], options))
    seconds = {}
    for data in options.data:
        key, done = f"seconds/{data}", done_of(store, data, names)
        if options.times:
            store.put(key, measured(load(data), taking_part, done, options.times))
        seconds[data] = store.found.get(key, {})
    notes = [
        f"grid of {len(GRID['C'])} x {len(GRID['gamma'])} for every machine, the defaults for all other parameters",
        f"large data sets thinned to {MOST_ROWS} training rows, their test parts are whole",
        f"a fit has {options.fit_limit:g} s, the search of a machine {options.search_limit:g} s",
        "s: median seconds of a fit to all training rows with one thread",
        "not decided: the difference may be chance, or no data could have decided it; see the sentence of each table",
    ]
    tables = [ranks(store, options.data, names)]
    tables += [data_table(data, store, names, seconds[data]) for data in options.data]
    publish("Every machine on the data sets of Hsu & Lin", options.output, tables, notes=notes, data=store.found)


if __name__ == "__main__":
    main()
