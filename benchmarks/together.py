"""Time the all-together machines against scikit-learn's one-against-one, interleaved in one run.

Hsu & Lin 2002 advise against machines that learn all classes in one problem because of their training time
(Table V.3). Here each is fitted at its own parameters of Table V.2, and so is scikit-learn's one-against-one SVC.
"""

from argparse import Namespace
from dataclasses import asdict

import bars
import contenders
import datasets
from report import Cell, Table, number, publish
from run import FIT, QUICK, Results, make_lanes, race_options, race_parser, run_teams, settings, spread_table

PEER = "scikit-learn"


def run(options: Namespace) -> Results:
    """One team: both machines at every number of threads, and scikit-learn, which has none."""
    results = Results()
    run_teams([make_lanes([*contenders.TOGETHER, PEER], options, results)], options.data)
    return results


def ratio_cell(results: Results, data: str, threads: int, name: str) -> Cell:
    """Their time over ours, judged where there is a bar."""
    ratio, bar = results.ratio(data, PEER, name, threads, FIT), bars.together_bar(data, threads)
    return number(ratio, ".2f", None if bar is None or ratio is None else ratio >= bar)


def time_table(results: Results, options: Namespace) -> Table:
    """Median seconds, and how many times longer scikit-learn's one-against-one takes."""
    names = list(contenders.TOGETHER)
    ratios = [f"{PEER} / {name}" for name in names]
    columns = ["data set", "threads", *names, f"{PEER} one-against-one", *ratios]
    table = Table("All-together fit: seconds", columns)
    table.note = (
        "Medians; every machine at its own parameters of Table V.2. Ratio above 1: the all-together machine is faster. "
        "✓ and ✗: the bar of the project is reached or not; it stands for two threads. scikit-learn has no threads."
    )
    for data, threads in settings(options):
        seconds = [number(results.median(data, name, threads, FIT)) for name in (*names, PEER)]
        judged = [ratio_cell(results, data, threads, name) for name in names]
        table.rows.append([Cell(data), Cell(str(threads)), *seconds, *judged])
    return table


def work_table(results: Results, options: Namespace) -> Table:
    """What the fits came to, so that nobody is fast by stopping early."""
    columns = ["data set", "machine", "threads", "steps", "unique SVs", "relative gap", "converged"]
    table = Table("What the fits did", columns)
    table.note = "Steps: exact steps, each on all coefficients of one example. Gap: primal less dual, relative."
    for data, threads in settings(options):
        for name in contenders.TOGETHER:
            if found := results.of(data, name, threads, FIT):
                facts = found[-1].facts
                counts = [number(facts["n_iter_"], "d"), number(facts["n_support"], "d")]
                outcome = [number(facts["duality_gap_"], ".1e"), Cell("yes" if facts["converged_"] else "no")]
                table.rows.append([Cell(data), Cell(name), Cell(str(threads)), *counts, *outcome])
    return table


def main() -> None:
    """Run, print, write."""
    parser = race_parser(__doc__, datasets.LARGE, QUICK)
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = race_options(parser, datasets.LARGE, QUICK)
    results = run(options)
    publish(
        "All-together machines against one-against-one",
        options.output,
        [time_table(results, options), work_table(results, options)],
        details=[spread_table(results)],
        notes=results.notes,
        data=[asdict(record) for record in results.records],
    )


if __name__ == "__main__":
    main()
