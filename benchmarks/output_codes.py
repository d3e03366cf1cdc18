"""Time output codes against scikit-learn's `OutputCodeClassifier(SVC())`, interleaved in one run.

Both solve as many random problems, one and a half times the number of classes, at the same C and gamma. The codes are
not the same, which is chance; scikit-learn's columns may be equal, and one that has a single sign is no problem at all.
"""

import argparse
import statistics
import time
from typing import Any, NamedTuple

import datasets
from datasets import Dataset
from report import Cell, Table, console, number, publish
from sklearn.multiclass import OutputCodeClassifier
from sklearn.svm import SVC

from polymargin import OutputCodeSVC

NAMES = ("vowel", "segment", "satimage", "usps", "letter")
QUICK = ("vowel", "segment")
CODE_SIZE = 1.5
LEAST = 8.0
COLUMNS = [
    "data set",
    "threads",
    "problems",
    "polymargin",
    "scikit-learn",
    "ratio",
    "rate, polymargin",
    "rate, scikit-learn",
]


class Fit(NamedTuple):
    """One fit of one contender."""

    data: str
    contender: str
    threads: int
    seconds: float
    rate: float
    problems: int


def contenders(data: Dataset, threads: int) -> dict[str, Any]:
    """Return both, at the parameters of one-against-one."""
    C, gamma = data.source.one_vs_one.C, data.source.one_vs_one.gamma
    ours = OutputCodeSVC(C=C, gamma=gamma, code="dense", code_size=CODE_SIZE, decoding="loss", n_jobs=threads)
    machine = SVC(C=C, gamma=gamma, cache_size=4000)
    theirs = OutputCodeClassifier(machine, code_size=CODE_SIZE, n_jobs=threads, random_state=0)
    return {"polymargin": ours, "scikit-learn": theirs}


def race(data: Dataset, options: argparse.Namespace) -> list[Fit]:
    """Fit both in turns; who takes long does so once."""
    found = []
    for threads in options.threads:
        for turn in range(options.rounds):
            for name, estimator in contenders(data, threads).items():
                if any(f.contender == name and f.threads == threads and f.seconds > options.long for f in found):
                    continue
                start = time.perf_counter()
                estimator.fit(data.X_train, data.y_train)
                seconds = time.perf_counter() - start
                problems = estimator.code_book_.shape[1]
                found.append(
                    Fit(data.name, name, threads, seconds, estimator.score(data.X_test, data.y_test), problems)
                )
                console.print(f"  {data.name}, {name}, {threads} threads, {turn}: {seconds:.3g} s", style="dim")
    return found


def row(found: list[Fit], data: str, threads: int) -> list[Cell]:
    """Compare the medians of a data set."""
    own = [f for f in found if (f.data, f.threads) == (data, threads)]
    seconds, rates, problems = {}, {}, 0
    for name in ("polymargin", "scikit-learn"):
        of = [f for f in own if f.contender == name]
        seconds[name], rates[name] = statistics.median(f.seconds for f in of), of[-1].rate
        problems = of[-1].problems
    ratio = seconds["scikit-learn"] / seconds["polymargin"]
    times = [number(s) for s in seconds.values()]
    return [
        Cell(data),
        Cell(str(threads)),
        number(problems, "d"),
        *times,
        number(ratio, ".1f", ratio >= LEAST),
        *(number(100 * r, ".2f") for r in rates.values()),
    ]


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=datasets.ALL, default=list(NAMES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", type=float, default=10.0, help="seconds of a fit that is not repeated")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)} alone")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    found: list[Fit] = []
    for name in QUICK if options.quick else options.data:
        found += race(datasets.load(name), options)
    table = Table("Fits of random codes without zeros: seconds", COLUMNS)
    table.note = f"Medians. Bar: {LEAST:g}. The rates are those of the last fit on the test rows, with a code of each."
    table.rows = [row(found, d, t) for d in dict.fromkeys(f.data for f in found) for t in options.threads]
    publish("Output codes", options.output, [table], notes=options.note, data=[f._asdict() for f in found])


if __name__ == "__main__":
    main()
