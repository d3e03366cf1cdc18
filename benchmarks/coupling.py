"""Time one-against-one with probabilities against scikit-learn's calibrated SVC, interleaved in one run.

Both hold out five folds and fit sigmoids to the decision values of held-out examples: scikit-learn's
`CalibratedClassifierCV(SVC(), ensemble=False)` one for each class, ours one for each pair, which are then coupled.
"""

import statistics
from argparse import Namespace
from dataclasses import asdict

import bars
import contenders
import datasets
from report import Cell, Table, number, publish
from run import FIT, PREDICT, Results, make_lanes, race_options, race_parser, run_teams, settings, spread_table

OURS, PEER = contenders.COUPLING
NAMES = ("satimage", "usps", "letter")
QUICK = ("satimage",)


def run(options: Namespace) -> Results:
    """One team: both contenders at every number of threads."""
    results = Results()
    run_teams([make_lanes(contenders.COUPLING, options, results)], options.data)
    return results


def processor_seconds(results: Results, data: str, name: str) -> float | None:
    """Median processor time of a fit with one thread: on a busy machine it says more than the clock."""
    found = results.of(data, name, 1, FIT)
    return statistics.median(r.seconds * r.facts["cores"] for r in found) if found else None


def time_table(results: Results, task: str, options: Namespace) -> Table:
    """Median seconds and their ratio, judged for fit."""
    table = Table(f"{task}: seconds", ["data set", "threads", "polymargin", "scikit-learn", "ratio"])
    table.note = "Medians. Ratio above 1: polymargin is faster. scikit-learn has a process for each thread."
    for data, threads in settings(options):
        seconds = [number(results.median(data, name, threads, task)) for name in (OURS, PEER)]
        ratio = results.ratio(data, PEER, OURS, threads, task)
        reached = None if ratio is None or task != FIT else ratio >= bars.COUPLING_LEAST
        table.rows.append([Cell(data), Cell(str(threads)), *seconds, number(ratio, ".1f", reached)])
    return table


def processor_table(results: Results, options: Namespace) -> Table:
    """The fits with one thread by processor time."""
    table = Table("fit, 1 thread: processor seconds", ["data set", "polymargin", "scikit-learn", "ratio"])
    for data in options.data:
        ours, theirs = (processor_seconds(results, data, name) for name in (OURS, PEER))
        ratio = theirs / ours if ours and theirs else None
        table.rows.append([Cell(data), number(ours), number(theirs), number(ratio, ".1f")])
    return table


def quality_table(results: Results, options: Namespace) -> Table:
    """What the probabilities are worth on the test rows."""
    columns = ["data set", "log loss, polymargin", "log loss, scikit-learn", "rate, polymargin", "rate, scikit-learn"]
    table = Table("Test rows: log loss, and per cent that the largest probability gets right", columns)
    table.note = "✓: the log loss is no larger than scikit-learn's."
    threads = options.threads[0]
    for data in options.data:
        fits, decisions = (
            [found[-1].facts if (found := results.of(data, name, threads, task)) else {} for name in (OURS, PEER)]
            for task in (FIT, PREDICT)
        )
        ours, theirs = (facts.get("log_loss") for facts in fits)
        reached = None if ours is None or theirs is None else ours <= theirs
        rates = [number(facts.get("rate"), ".2f") for facts in decisions]
        table.rows.append([Cell(data), number(ours, ".4f", reached), number(theirs, ".4f"), *rates])
    return table


def main() -> None:
    """Run, print, write."""
    parser = race_parser(__doc__, datasets.SOURCES, QUICK)
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    parser.set_defaults(predict=True)
    options = race_options(parser, NAMES, QUICK)
    results = run(options)
    tables = [time_table(results, task, options) for task in (FIT, PREDICT)]
    publish(
        "Probabilities against scikit-learn's calibration",
        options.output,
        [*tables, processor_table(results, options), quality_table(results, options)],
        details=[spread_table(results)],
        notes=results.notes,
        data=[asdict(record) for record in results.records],
    )


if __name__ == "__main__":
    main()
