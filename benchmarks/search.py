"""Time the search over Hsu & Lin's grid against scikit-learn's, interleaved in one run.

vehicle and segment: ten folds, so 2,250 fits and as many scores; satimage: 70 % of the training rows against the rest.
Both searches get the same folds, two jobs and their own one-against-one machine, and refit nothing.
"""

import argparse
import statistics
import time
from typing import Any

import bars
import datasets
import fresh
from report import Cell, Table, console, number, publish

NAMES = ("vehicle", "segment", "satimage")
HOLDOUT = ("satimage",)
CONTENDERS = ("polymargin", "scikit-learn")
COLUMNS = ["data set", "fits", "seconds, polymargin", "seconds, scikit-learn", "ratio", "best rate", "theirs", "agrees"]


def folds(name: str) -> Any:
    """The divisions that both get."""
    from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

    if name in HOLDOUT:
        return StratifiedShuffleSplit(1, test_size=0.3, random_state=0)
    return StratifiedKFold(10, shuffle=True, random_state=0)


def measure(contender: str, name: str, step: str, jobs: str) -> dict[str, Any]:
    """Child: one search, its time and its best candidate."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    from polymargin import OneVsOneSVC
    from polymargin.selection import KernelSearchCV, hsu_lin_grid

    data = datasets.load(name)
    grid = {key: values[:: int(step)] for key, values in hsu_lin_grid().items()}
    Search, machine = {"polymargin": (KernelSearchCV, OneVsOneSVC()), "scikit-learn": (GridSearchCV, SVC())}[contender]
    search = Search(machine, grid, cv=folds(name), n_jobs=int(jobs), refit=False)
    start = time.perf_counter()
    search.fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - start
    count = len(search.cv_results_["params"]) * search.n_splits_
    return {"seconds": seconds, "rate": 100 * search.best_score_, "fits": count, "best": search.best_params_}


def row(name: str, options: argparse.Namespace) -> tuple[list[Cell], list[dict[str, Any]]]:
    """All rounds on one data set, judged."""
    records = []
    for turn in range(options.rounds):
        for contender in CONTENDERS:
            console.print(f"  {name}, round {turn + 1}, {contender}", style="dim", highlight=False)
            found = fresh.call(__file__, "measure", contender, name, str(options.step), str(options.jobs))
            records.append({"data": name, "contender": contender, **found})
    failed = [record["error"] for record in records if "error" in record]
    if failed:
        return [Cell(name), Cell(failed[0], False), *[number(None)] * (len(COLUMNS) - 2)], records
    ours, theirs = ([r for r in records if r["contender"] == contender] for contender in CONTENDERS)
    medians = [statistics.median(r["seconds"] for r in found) for found in (ours, theirs)]
    ratio, difference = medians[1] / medians[0], abs(ours[0]["rate"] - theirs[0]["rate"])
    cells = [
        number(ours[0]["fits"], "d"),
        *(number(median, ".2f") for median in medians),
        number(ratio, ".1f", ratio >= bars.SEARCH_LEAST[name]),
        *(number(found[0]["rate"], ".2f") for found in (ours, theirs)),
        number(difference, ".2f", difference <= bars.SEARCH_POINTS),
    ]
    return [Cell(name), *cells], records


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--rounds", type=int, default=1, help="a round of scikit-learn takes minutes")
    parser.add_argument("--step", type=int, default=1, help="use every STEP-th value of the grid")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    table = Table("Search over the 15 x 15 grid", COLUMNS)
    table.note = (
        f"Medians of {options.rounds}, {options.jobs} jobs. ✓ and ✗: the bar of the project is reached or not "
        f"({', '.join(f'{name} {bar:g}' for name, bar in bars.SEARCH_LEAST.items())}; rates within "
        f"{bars.SEARCH_POINTS:g} points)."
    )
    data = []
    for name in options.data:
        datasets.cached(datasets.ALL[name])
        cells, records = row(name, options)
        table.rows.append(cells)
        data += records
    publish("Model selection against scikit-learn", options.output, [table], data=data)


if __name__ == "__main__":
    fresh.dispatch({"measure": measure}, main)
