"""Draw Table V.3 of Hsu & Lin 2002 again: training time and support vectors of the five methods, beside theirs.

Seconds of a Pentium III-500 say little today; what can be compared is how much longer than one-against-one a method
takes. On the six small data sets the paper reports means over the folds of a ten-fold cross-validation; here the whole
training set is fitted, so there are about a ninth more rows, and more support vectors.
"""

from argparse import Namespace
from dataclasses import asdict

import _path  # noqa: F401
import contenders
import datasets
import hsu_lin
from report import Cell, Table, number, publish
from run import FIT, REST, Results, make_lanes, race_options, race_parser, run_teams, spread_table

NAMES = (*datasets.SMALL, *datasets.LARGE)
QUICK = ("iris", "wine", "vowel")
CONTENDERS = dict(
    zip(
        hsu_lin.METHODS,
        ("polymargin", *contenders.DAG, "polymargin one-vs-rest", *contenders.TOGETHER),
        strict=True,
    )
)
FIRST = hsu_lin.METHODS[0]


def task_of(contender: str) -> str:
    """How the race files the time of a contender."""
    return REST if contender in contenders.ONE_VS_REST else FIT


def seconds(results: Results, data: str, method: str, threads: int) -> float | None:
    """Our median seconds."""
    contender = CONTENDERS[method]
    return results.median(data, contender, threads, task_of(contender))


def ratio(results: Results, data: str, method: str, threads: int) -> float | None:
    """Our time over our time of one-against-one."""
    time, first = (seconds(results, data, name, threads) for name in (method, FIRST))
    return time / first if time and first else None


def n_support(results: Results, data: str, method: str, threads: int) -> int | None:
    """Our unique support vectors."""
    contender = CONTENDERS[method]
    found = results.of(data, contender, threads, task_of(contender))
    return found[-1].facts["n_support"] if found else None


def training_table(results: Results, options: Namespace, threads: int) -> Table:
    """One row for every method on every data set."""
    columns = ["data set", "method", "seconds, paper", "seconds, polymargin"]
    columns += [
        "/ one-against-one, paper",
        "/ one-against-one, polymargin",
        "unique SVs, paper",
        "unique SVs, polymargin",
    ]
    table = Table(f"Table V.3: training, {threads} threads", columns)
    table.note = (
        "Medians, every method at its own parameters of Table V.2. Small data sets: the paper's means over ten folds, "
        "our fit of the whole training set. * the paper stops Crammer-Singer at 0.1 here, polymargin at 1e-3."
    )
    for data in options.data:
        paper = hsu_lin.TRAINING[data]
        for method in hsu_lin.METHODS:
            star = "*" if data in hsu_lin.RELAXED and method == hsu_lin.METHODS[-1] else ""
            table.rows.append(
                [
                    Cell(data),
                    Cell(method),
                    Cell(f"{paper[method].seconds:g}{star}"),
                    number(seconds(results, data, method, threads)),
                    number(paper[method].seconds / paper[FIRST].seconds, ".2f"),
                    number(ratio(results, data, method, threads), ".2f"),
                    number(paper[method].n_support, "g"),
                    number(n_support(results, data, method, threads), "d"),
                ]
            )
    return table


def main() -> None:
    """Run, print, write."""
    parser = race_parser(__doc__, NAMES, QUICK)
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    parser.set_defaults(threads=[2])
    options = race_options(parser, NAMES, QUICK)
    results = Results()
    run_teams([make_lanes(CONTENDERS.values(), options, results)], options.data)
    publish(
        "Training times of Hsu & Lin",
        options.output,
        [training_table(results, options, threads) for threads in options.threads],
        details=[spread_table(results)],
        notes=results.notes,
        data=[asdict(record) for record in results.records],
    )


if __name__ == "__main__":
    main()
