"""Time the search over Hsu & Lin's grid against scikit-learn's, interleaved in one run.

vehicle and segment: ten folds, so 2,250 fits and as many scores; satimage: 70 % of the training rows against the rest.
Both searches get the same folds, two jobs and their own one-against-one machine, and refit nothing.

With `--grid 5x5`: five costs, five widths and five folds on every data set of the sweep that is not sparse, with the
last fit, the worst ratios first.
"""

import argparse
import statistics
import time
from typing import Any

import bars
import datasets
import fresh
import sweep_data
from report import Cell, Table, console, number, publish
from scipy.sparse import issparse

NAMES = ("vehicle", "segment", "satimage")
HOLDOUT = ("satimage",)
CONTENDERS = ("polymargin", "scikit-learn")
COLUMNS = ["data set", "fits", "seconds, polymargin", "seconds, scikit-learn", "ratio", "best rate", "theirs", "agrees"]
SMALL = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0], "gamma": [0.001, 0.01, 0.1, 1.0, 10.0]}


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


def measure_small(contender: str, name: str, scaling: str, rounds: str, jobs: str) -> dict[str, Any]:
    """Child: the least time of some searches over the small grid; processes of theirs are there before the first."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    from polymargin import OneVsOneSVC
    from polymargin.selection import KernelSearchCV

    X, y = sweep_data.load(name, scaling)
    Search, machine = {"polymargin": (KernelSearchCV, OneVsOneSVC()), "scikit-learn": (GridSearchCV, SVC())}[contender]
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    Search(machine, {"C": [1.0], "gamma": [0.1, 1.0]}, cv=cv, n_jobs=int(jobs)).fit(X, y)
    seconds = []
    for _ in range(int(rounds)):
        search = Search(machine, SMALL, cv=cv, n_jobs=int(jobs))
        start = time.perf_counter()
        search.fit(X, y)
        seconds.append(time.perf_counter() - start)
    scores = search.cv_results_["mean_test_score"].tolist()
    return {"seconds": min(seconds), "rate": 100 * search.best_score_, "scores": scores, "shape": X.shape}


def small_row(name: str, options: argparse.Namespace) -> tuple[float, list[Cell], list[dict[str, Any]]]:
    """The ratio on one data set, the row that shows it, and the records."""
    records = []
    for contender in CONTENDERS:
        console.print(f"  {name}, {contender}", style="dim", highlight=False)
        found = fresh.call(
            __file__, "measure_small", contender, name, options.scaling, str(options.rounds), str(options.jobs)
        )
        records.append({"data": name, "scaling": options.scaling, "contender": contender, **found})
    failed = [record["error"] for record in records if "error" in record]
    if failed:
        return 0.0, [Cell(name), Cell(failed[0], False), *[number(None)] * (len(COLUMNS) - 2)], records
    ours, theirs = records
    ratio = theirs["seconds"] / ours["seconds"]
    furthest = 100 * max(abs(a - b) for a, b in zip(ours["scores"], theirs["scores"], strict=True))
    cells = [
        number(5 * len(ours["scores"]), "d"),
        *(number(each["seconds"], ".3f") for each in records),
        number(ratio, ".1f", ratio >= bars.SEARCH_SMALL_LEAST),
        *(number(each["rate"], ".2f") for each in records),
        number(furthest, ".2f"),
    ]
    return ratio, [Cell(name), *cells], records


def small_table(options: argparse.Namespace) -> tuple[Table, list[dict[str, Any]]]:
    """The small grid on many data sets, the worst first."""
    dense = [n for n, load in sweep_data.find().items() if options.data or not issparse(load()[0])]
    rows = [small_row(name, options) for name in options.data or dense]
    ratios = [ratio for ratio, _, _ in rows]
    table = Table("Search over a 5 x 5 grid with five folds", [*COLUMNS[:-1], "furthest score, points"])
    table.rows = [cells for _, cells, _ in sorted(rows, key=lambda each: each[0])]
    table.note = (
        f"Least of {options.rounds}, {options.jobs} jobs, {options.scaling} features, the last fit included. "
        f"✓ and ✗: {bars.SEARCH_SMALL_LEAST:g} times as fast or not. Worst {min(ratios):.1f}, "
        f"median {statistics.median(ratios):.1f} over {len(ratios)} data sets."
    )
    return table, [record for _, _, records in rows for record in records]


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
    parser.add_argument("--grid", choices=("15x15", "5x5"), default="15x15")
    parser.add_argument("--data", nargs="+", help=f"{', '.join(NAMES)}, or with --grid 5x5 any of the sweep")
    parser.add_argument("--scaling", choices=sweep_data.SCALINGS, default="standardised", help="with --grid 5x5")
    parser.add_argument("--rounds", type=int, default=1, help="a round of scikit-learn takes minutes")
    parser.add_argument("--step", type=int, default=1, help="use every STEP-th value of the grid")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    if options.grid == "5x5":
        table, data = small_table(options)
        return publish("Model selection on small grids against scikit-learn", options.output, [table], data=data)
    table = Table("Search over the 15 x 15 grid", COLUMNS)
    table.note = (
        f"Medians of {options.rounds}, {options.jobs} jobs. ✓ and ✗: the bar of the project is reached or not "
        f"({', '.join(f'{name} {bar:g}' for name, bar in bars.SEARCH_LEAST.items())}; rates within "
        f"{bars.SEARCH_POINTS:g} points)."
    )
    data = []
    for name in options.data or NAMES:
        datasets.cached(datasets.ALL[name])
        cells, records = row(name, options)
        table.rows.append(cells)
        data += records
    publish("Model selection against scikit-learn", options.output, [table], data=data)


if __name__ == "__main__":
    fresh.dispatch({"measure": measure, "measure_small": measure_small}, main)
