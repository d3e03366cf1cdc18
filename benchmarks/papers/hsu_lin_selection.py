"""Draw Table V.2 of Hsu & Lin 2002 again: the best of 225 parameters for five machines, and its rate, beside theirs.

As in the paper: ten folds and their best mean rate on the six small data sets; on the four large ones 70 % of the
training rows against the rest choose, all candidates that tie for the best are fitted to all training rows, and the
highest rate on the test rows counts. What is done is kept under build/: a run that was stopped goes on where it was.
"""

import argparse
import time
from functools import partial
from typing import Any

import _path  # noqa: F401
import bars
import datasets
import hsu_lin
from report import Cell, Table, console, number, publish
from result_store import ResultStore
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, StratifiedKFold, StratifiedShuffleSplit

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC
from polymargin.selection import KernelSearchCV, hsu_lin_grid

MACHINES = dict(
    zip(
        hsu_lin.METHODS,
        (OneVsOneSVC(), OneVsOneSVC(decision="dag"), OneVsRestSVC(), WestonWatkinsSVC(), CrammerSingerSVC()),
        strict=True,
    )
)
FOLDS = "folds "  # other than the first
COLUMNS = ["data set", "method", "C, gamma, paper", "C, gamma, ours", "rate, paper", "rate, ours", "difference", "s"]


def search(store: ResultStore, key: str, jobs: int) -> dict[str, Any]:
    """Choose the parameters of a machine on a data set with some random folds: ``key`` names them."""
    name, method, *other = key.split("/")
    seed = int(other[0].removeprefix(FOLDS)) if other else 0
    data = datasets.load(name)
    large = name in datasets.LARGE
    grid = hsu_lin_grid()
    # A column of a large data set's grid is long work, kept by itself; small data sets share more in one go.
    parts = [{**grid, "gamma": [gamma]} for gamma in grid["gamma"]] if large else [grid]
    found = [
        store.get(f"{key}/part {i}", partial(rates, part, method, data, folds(large, seed), jobs))
        for i, part in enumerate(parts)
    ]
    candidates = [
        pair
        for part, of_part in zip(parts, found, strict=True)
        for pair in zip(of_part["rates"], ParameterGrid(part), strict=True)
    ]
    rate = max(rate for rate, _ in candidates)
    tied = [params for each, params in candidates if each == rate]
    best = tied[0]
    seconds = sum(part["seconds"] for part in found)
    if large:
        started = time.perf_counter()
        rate, best = max(((tested(method, params, data, jobs), params) for params in tied), key=lambda pair: pair[0])
        seconds += time.perf_counter() - started
    return {**best, "rate": 100 * rate, "seconds": seconds}


def folds(large: bool, seed: int) -> Any:
    """Rows held out: once from a large data set, ten times from a small one."""
    if large:
        return StratifiedShuffleSplit(1, test_size=0.3, random_state=seed)
    return StratifiedKFold(10, shuffle=True, random_state=seed)


def rates(grid: dict[str, list[float]], method: str, data: Any, cv: Any, jobs: int) -> dict[str, Any]:
    """Rates of all candidates of a grid, in its order, on rows held out."""
    started = time.perf_counter()
    found = KernelSearchCV(MACHINES[method], grid, cv=cv, n_jobs=jobs, refit=False, verbose=1)
    results = found.fit(data.X_train, data.y_train).cv_results_
    seconds = time.perf_counter() - started
    return {"rates": list(results["mean_test_score"]), "seconds": seconds}


def tested(method: str, params: dict[str, float], data: Any, jobs: int) -> float:
    """Rate on the test rows after a fit to all training rows."""
    machine = clone(MACHINES[method]).set_params(**params, n_jobs=jobs)
    return float(machine.fit(data.X_train, data.y_train).score(data.X_test, data.y_test))


def exponents(C: float, gamma: float) -> str:
    """The pair as the paper prints it."""
    import math

    return f"2^{round(math.log2(C))}, 2^{round(math.log2(gamma))}"


def table(done: dict[str, dict[str, Any]]) -> Table:
    """What is known so far, beside the paper."""
    result = Table("Table V.2: the best parameters and their rates", COLUMNS)
    result.note = (
        "Rates in per cent; s: seconds of the search and of its fits to all training rows. ✓: within "
        f"{bars.SELECTION_POINTS['small']:g} point (small data sets) or {bars.SELECTION_POINTS['large']:g} (the last "
        "four) of the paper; better counts as within."
    )
    for key, found in done.items():
        name, method = key.split("/")
        paper = hsu_lin.CHOICES[name][method]
        difference = found["rate"] - paper.rate
        row = [Cell(name), Cell(method), Cell(exponents(2.0**paper.C, 2.0**paper.gamma))]
        row += [Cell(exponents(found["C"], found["gamma"])), number(paper.rate, ".2f"), number(found["rate"], ".2f")]
        result.rows.append(
            [*row, number(difference, "+.2f", difference >= -bar(name)), number(found["seconds"], ".1f")]
        )
    return result


def bar(name: str) -> float:
    """By how many points a rate may be below the paper's."""
    return bars.SELECTION_POINTS["large" if name in datasets.LARGE else "small"]


def short_of_the_paper(done: dict[str, dict[str, Any]]) -> list[str]:
    """The machines whose rate is farther below the paper's than the bar."""
    pairs = [(key, key.split("/")) for key in done]
    return [key for key, (name, of) in pairs if done[key]["rate"] < hsu_lin.CHOICES[name][of].rate - bar(name)]


def folds_table(others: dict[str, list[float]]) -> Table:
    """Rates with other random folds: how much of a difference is chance."""
    columns = ["data set", "method", "rate, paper", "rates, ours, each with its own folds", "mean", "difference"]
    result = Table(
        "The same with other random folds, where the first were farther from the paper than the bar", columns
    )
    result.note = "Rates in per cent, the first as above. The difference is that of the mean."
    for key, found in others.items():
        name, method = key.split("/")
        paper, mean = hsu_lin.CHOICES[name][method].rate, sum(found) / len(found)
        cells = [Cell(name), Cell(method), number(paper, ".2f"), Cell(", ".join(f"{rate:.2f}" for rate in found))]
        difference = number(mean - paper, "+.2f", mean - paper >= -bar(name))
        result.rows.append([*cells, number(mean, ".2f"), difference])
    return result


def main() -> None:
    """Run what is missing, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = (*datasets.SMALL, *datasets.LARGE)
    parser.add_argument("--data", nargs="+", choices=names, default=list(datasets.SMALL))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--anew", action="store_true", help="forget what earlier runs have done")
    parser.add_argument("--kept", action="store_true", help="run nothing: show the machines that earlier runs finished")
    parser.add_argument("--folds", type=int, default=1, help="random folds of machines that fall short of the paper")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    store = ResultStore("hsu-lin-selection", options.anew)

    def chosen(key: str) -> dict[str, Any]:
        if key not in store:
            console.print(f"  {key}", style="dim", highlight=False)
        return store.get(key, partial(search, store, key, options.jobs))

    keys = [f"{name}/{method}" for name in options.data for method in hsu_lin.METHODS]
    done = {key: chosen(key) for key in keys if key in store or not options.kept}
    minutes = sum(found["seconds"] for found in done.values()) / 60
    notes = [f"all searches together: {minutes:.1f} minutes on {options.jobs} threads"]
    tables = [table(done)]
    if options.folds > 1:
        others = {}
        for key in short_of_the_paper(done):
            divisions = [key, *(f"{key}/{FOLDS}{seed}" for seed in range(1, options.folds))]
            others[key] = [chosen(each)["rate"] for each in divisions if each in store or not options.kept]
        tables.append(folds_table(others))
    publish("Model selection of Hsu & Lin", options.output, tables, notes=notes, data=store.found)


if __name__ == "__main__":
    main()
