"""How much chance there is in the rates of Hsu & Lin's large data sets: the same choice on many random divisions.

70 % of the training rows against the rest choose among 225 parameters, as in the paper, whose division is not known.
Here they do so ten times. Beside it stands the highest rate on the test rows that any of the parameters has: no choice
can do better. What is done is kept under build/: a run that was stopped goes on where it was.
"""

import argparse
from functools import partial
from typing import Any

import _path  # noqa: F401
import bars
import datasets
import hsu_lin
from hsu_lin_selection import MACHINES, tested
from report import Cell, Table, console, number, publish
from result_store import ResultStore
from sklearn.model_selection import ParameterGrid, StratifiedShuffleSplit

from polymargin.selection import KernelSearchCV, hsu_lin_grid

COLUMNS = ["data set", "method", "rate, paper", "lowest", "mean", "highest", "within", "best of all parameters"]


def rates_on_test(name: str, method: str, jobs: int) -> list[float]:
    """Rates on the test rows of every candidate, fitted to all training rows."""
    data = datasets.load(name)
    return [100 * tested(method, params, data, jobs) for params in ParameterGrid(hsu_lin_grid())]


def rates_on_held_out(name: str, method: str, divisions: int, jobs: int) -> list[list[float]]:
    """Rates of every candidate on the rows that each division holds out."""
    data = datasets.load(name)
    cv = StratifiedShuffleSplit(divisions, test_size=0.3, random_state=0)
    search = KernelSearchCV(MACHINES[method], hsu_lin_grid(), cv=cv, n_jobs=jobs, refit=False, verbose=1)
    results = search.fit(data.X_train, data.y_train).cv_results_
    return [list(results[f"split{division}_test_score"]) for division in range(divisions)]


def chosen(held_out: list[float], on_test: list[float]) -> float:
    """The rate on the test rows that the paper would report: of candidates that tie, the highest."""
    best = max(held_out)
    return max(rate for score, rate in zip(held_out, on_test, strict=True) if score == best)


def row(name: str, method: str, held_out: list[list[float]], on_test: list[float]) -> list[Cell]:
    """One machine on one data set."""
    paper, bar = hsu_lin.CHOICES[name][method].rate, bars.SELECTION_POINTS["large"]
    rates = [chosen(scores, on_test) for scores in held_out]
    within = sum(rate >= paper - bar for rate in rates)
    mean = sum(rates) / len(rates)
    return [
        Cell(name),
        Cell(method),
        number(paper, ".2f"),
        number(min(rates), ".2f"),
        number(mean, ".2f", mean >= paper - bar),
        number(max(rates), ".2f", max(rates) >= paper - bar),
        Cell(f"{within} of {len(rates)}"),
        number(max(on_test), ".2f"),
    ]


def main() -> None:
    """Run what is missing, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=datasets.LARGE, default=["dna", "satimage"])
    parser.add_argument("--methods", nargs="+", choices=hsu_lin.METHODS, default=list(hsu_lin.METHODS))
    parser.add_argument("--divisions", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--anew", action="store_true", help="forget what earlier runs have done")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    store = ResultStore("hsu-lin-divisions", options.anew)
    table = Table("Rates of the parameters that random divisions choose", COLUMNS)
    table.note = (
        f"Rates on the test rows in per cent, {options.divisions} divisions. Within: divisions whose rate is at most "
        f"{bars.SELECTION_POINTS['large']:g} points below the paper's, or above it; ✓ and ✗: the same for the mean and "
        "for the highest rate."
    )
    data: dict[str, Any] = {}
    for name in options.data:
        for method in options.methods:
            key = f"{name}/{method}"
            console.print(f"  {key}", style="dim", highlight=False)
            on_test = store.get(f"{key}/test", partial(rates_on_test, name, method, options.jobs))
            held_out = store.get(
                f"{key}/{options.divisions} divisions",
                partial(rates_on_held_out, name, method, options.divisions, options.jobs),
            )
            table.rows.append(row(name, method, held_out, on_test))
            data[key] = {"test": on_test, "held out": held_out}
    publish("Random divisions in the model selection of Hsu & Lin", options.output, [table], data=data)


if __name__ == "__main__":
    main()
