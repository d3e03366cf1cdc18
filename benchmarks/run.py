"""Time fit and predict against the peers, interleaved in one run; `make bench` runs this.

Every contender sits in a worker process of its own, one works at a time, and the order rotates from round
to round, so that a slow minute of the machine hits all of them alike. What is reported are medians.
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import bars
import contenders
import datasets
from report import Cell, Table, console, number, publish
from worker import Worker, WorkerError

FIT, PREDICT, REST = "fit", "predict", "one-vs-rest fit"
PEERS = ("scikit-learn", "intelex", "intelex float32", "libsvm")
QUICK = ("dna", "satimage")


@dataclass
class Record:
    """One timed call."""

    data: str
    contender: str
    threads: int
    task: str
    round: int
    seconds: float
    facts: dict[str, Any]


@dataclass
class Results:
    """All timed calls of a run, and what went wrong."""

    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def of(self, data: str, contender: str, threads: int, task: str) -> list[Record]:
        """The calls of one cell of a table."""
        threads = 1 if contender in contenders.UNTHREADED else threads
        key = (data, contender, threads, task)
        return [r for r in self.records if (r.data, r.contender, r.threads, r.task) == key]

    def median(self, data: str, contender: str, threads: int, task: str) -> float | None:
        """Median seconds, None if it did not run."""
        found = self.of(data, contender, threads, task)
        return statistics.median(r.seconds for r in found) if found else None

    def ratio(self, data: str, peer: str, ours: str, threads: int, task: str) -> float | None:
        """How many times longer the peer takes."""
        theirs, mine = (self.median(data, name, threads, task) for name in (peer, ours))
        return theirs / mine if theirs and mine else None


class Lane:
    """One contender at one number of threads: its process, and how many rounds it still has to run."""

    def __init__(self, contender: str, threads: int, options: argparse.Namespace, results: Results) -> None:
        self.contender, self.threads = contender, threads
        self.options, self.results = options, results
        self.worker: Worker | None = None
        self.failure: WorkerError | None = None
        self.rounds = 0

    def load(self, data: str) -> None:
        """Start the process if there is none, and give it the data."""
        self.data = data
        if (data, self.contender) in contenders.SLOW and not self.options.full:
            self.rounds = 0
            self.results.notes.append(f"{self.contender} on {data}: not run, it takes minutes; use --full")
            return
        self.rounds = self.options.rounds
        self.worker = self.worker or Worker(self.contender, self.threads, self.options.timeout)
        loaded = self.ask(do="load", data=data) or {}
        self.predicts = self.options.predict and loaded.get("predicts", False)

    def ask(self, **request: Any) -> dict[str, Any] | None:
        """Ask the worker; if it fails, note it and leave the race on this data set."""
        try:
            return self.worker.ask(**request)
        except WorkerError as failure:
            note = f"{self.contender} (threads={self.threads}) on {self.data}: {failure}"
            self.results.notes.append(note)
            console.print(f"  {note}", style="red", markup=False)
            self.close()
            self.rounds = 0
            self.failure = failure
            return None

    def visit(self, round_: int) -> None:
        """Fit and predict once; slow contenders get fewer rounds, as many as the budget has room for."""
        spent = self.call("fit", round_)
        if self.rounds and self.predicts:
            spent += self.call("predict", round_)
        affordable = max(1, int(self.options.budget // max(spent, 1e-9)))
        self.rounds = min(self.rounds, affordable)

    def call(self, what: str, round_: int) -> float:
        """Time one call and keep it."""
        answer = self.ask(do=what)
        if answer is None:
            return 0.0
        seconds = answer.pop("seconds")
        task = REST if self.contender in contenders.ONE_VS_REST else what
        self.results.records.append(Record(self.data, self.contender, self.threads, task, round_, seconds, answer))
        label = f"  {self.data} round {round_ + 1}: {self.contender}, threads={self.threads}, {task}"
        console.print(f"{label} {seconds:.4g} s", style="dim", markup=False, highlight=False)
        return seconds

    def release(self) -> None:
        """Let the worker free its memory."""
        if self.worker is not None:
            self.ask(do="release")

    def close(self) -> None:
        """End the process."""
        if self.worker is not None:
            self.worker.close()
        self.worker = None


def race(lanes: list[Lane], data: str) -> None:
    """All lanes on one data set, round-robin; each round starts with another lane."""
    for lane in lanes:
        lane.load(data)
    round_ = 0
    while any(lane.rounds > round_ for lane in lanes):
        shift = round_ % len(lanes)
        for lane in lanes[shift:] + lanes[:shift]:
            if lane.rounds > round_:
                lane.visit(round_)
        round_ += 1
    for lane in lanes:
        lane.release()


def make_lanes(names: Iterable[str], options: argparse.Namespace, results: Results) -> list[Lane]:
    """Every contender at every number of threads; those without threads once."""
    return [
        Lane(name, threads, options, results)
        for name in names
        for threads in ([1] if name in contenders.UNTHREADED else options.threads)
    ]


def rest_lanes(options: argparse.Namespace, results: Results) -> list[Lane]:
    """One against all is compared with the most threads alone."""
    most = argparse.Namespace(**{**vars(options), "threads": [max(options.threads)]})
    return make_lanes(contenders.ONE_VS_REST, most, results)


def run_teams(teams: list[list[Lane]], names: Iterable[str]) -> None:
    """Race the teams one after the other on every data set; whatever happens, no process is left behind."""
    try:
        for data in names:
            console.print(f"{data}", style="bold")
            datasets.cached(datasets.ALL[data])
            for lanes in teams:
                race(lanes, data)
    finally:
        for lane in [lane for lanes in teams for lane in lanes]:
            lane.close()


def run(options: argparse.Namespace) -> Results:
    """The whole run: per data set first one-against-one, then one-against-all."""
    results = Results()
    run_teams([make_lanes(contenders.ONE_VS_ONE, options, results), rest_lanes(options, results)], options.data)
    return results


def settings(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """Row keys of the tables."""
    return ((data, threads) for data in options.data for threads in options.threads)


def seconds_table(results: Results, task: str, options: argparse.Namespace) -> Table:
    """Median seconds; for fit also the yardstick."""
    columns = ["polymargin", *PEERS] + (["Gram matrix"] if task == FIT else [])
    table = Table(f"One-against-one {task}: seconds", ["data set", "threads", *columns])
    table.note = "Medians. scikit-learn has no threads: its number is the same in both rows."
    if task == FIT:
        table.columns.append("polymargin / Gram matrix")
        table.note += " Gram matrix: one float32 X X' by SciPy's BLAS, the whole matrix and nothing else."
    for data, threads in settings(options):
        names = ["gram" if name == "Gram matrix" else name for name in columns]
        cells = [number(results.median(data, name, threads, task)) for name in names]
        if task == FIT:
            cells.append(number(results.ratio(data, "polymargin", "gram", threads, task), ".2f"))
        table.rows.append([Cell(data), Cell(str(threads)), *cells])
    return table


def ratio_cell(results: Results, data: str, threads: int, task: str, peer: str, ours: str) -> Cell:
    """A ratio, judged where there is a bar."""
    ratio = results.ratio(data, peer, ours, threads, task)
    bar = bars.speed_bar(task, data, peer, threads)
    return number(ratio, ".1f", None if bar is None or ratio is None else ratio >= bar)


def ratio_table(results: Results, task: str, options: argparse.Namespace) -> Table:
    """How many times longer each peer takes with the same number of threads."""
    title = f"One-against-one {task}: time of the peer / time of polymargin"
    table = Table(title, ["data set", "threads", *PEERS])
    table.note = "Above 1: polymargin is faster. ✓ and ✗: the bar of the project is reached or not."
    for data, threads in settings(options):
        cells = [ratio_cell(results, data, threads, task, peer, "polymargin") for peer in PEERS]
        table.rows.append([Cell(data), Cell(str(threads)), *cells])
    return table


def rest_table(results: Results, options: argparse.Namespace) -> Table:
    """One against all: seconds and ratio in one table."""
    ours, peer = contenders.ONE_VS_REST
    threads = max(options.threads)
    columns = ["data set", "polymargin", "OneVsRestClassifier(SVC)", "ratio"]
    table = Table(f"One-against-all fit, {threads} threads or processes: seconds", columns)
    for data in options.data:
        cells = [number(results.median(data, name, threads, REST)) for name in (ours, peer)]
        table.rows.append([Cell(data), *cells, ratio_cell(results, data, threads, REST, peer, ours)])
    return table


def rate_table(results: Results, options: argparse.Namespace) -> Table:
    """Test rates: the proof that everybody solved the same problem."""
    names = ["polymargin", *PEERS]
    table = Table("Test rate, per cent", ["data set", *names])
    for data in options.data:
        found = [results.of(data, name, max(options.threads), PREDICT) for name in names]
        cells = [number(records[-1].facts["rate"] if records else None, ".3f") for records in found]
        table.rows.append([Cell(data), *cells])
    return table


def spread_table(results: Results) -> Table:
    """Rounds and spread: a median of few or scattered rounds should be read as such."""
    columns = ["data set", "contender", "threads", "task", "rounds", "least", "median", "most", "cores used"]
    table = Table("Spread of the rounds: seconds", columns)
    cells: dict[tuple[str, str, int, str], list[Record]] = defaultdict(list)
    for record in results.records:
        cells[record.data, record.contender, record.threads, record.task].append(record)
    for (data, contender, threads, task), found in cells.items():
        times = [record.seconds for record in found]
        cores = statistics.median(record.facts["cores"] for record in found)
        spread = [number(value) for value in (min(times), statistics.median(times), max(times))]
        labels = [Cell(data), Cell(contender), Cell(str(threads)), Cell(task), Cell(str(len(found)))]
        table.rows.append([*labels, *spread, number(cores, ".2f")])
    table.note = "Cores used: the worker's own processor time over elapsed time; child processes do not count."
    return table


def tables(results: Results, options: argparse.Namespace) -> list[Table]:
    """Everything that is printed and written."""
    timed = [make(results, task, options) for task in (FIT, PREDICT) for make in (seconds_table, ratio_table)]
    return [*timed, rest_table(results, options), rate_table(results, options)]


def race_parser(description: str, names: Iterable[str], quick: Iterable[str]) -> argparse.ArgumentParser:
    """The options that every race has; `predict` and `full` are for those that offer them."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=list(names), help="data sets (default: all)")
    parser.add_argument("--rounds", type=int, help="rounds for every contender (default: 5; quick: 2)")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--budget", type=float, default=60.0, help="seconds after which a slow lane stops")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait for one call")
    parser.add_argument("--quick", action="store_true", help=f"two rounds of {' and '.join(quick)}")
    parser.set_defaults(predict=False, full=False)
    return parser


def race_options(parser: argparse.ArgumentParser, names: Iterable[str], quick: Iterable[str]) -> argparse.Namespace:
    """Read the command line and fill in what was left open."""
    options = parser.parse_args()
    options.data = options.data or list(quick if options.quick else names)
    options.rounds = options.rounds or (2 if options.quick else 5)
    return options


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = race_parser(__doc__, datasets.SOURCES, QUICK)
    parser.add_argument("--full", action="store_true", help="also the peers that take minutes on mnist-60000")
    parser.add_argument("--output", help="name of the files in results/ (default: run, or quick)")
    parser.set_defaults(predict=True)
    options = race_options(parser, datasets.SOURCES, QUICK)
    options.output = options.output or ("quick" if options.quick else "run")
    return options


def main() -> None:
    """Run, print, write."""
    options = parse_arguments()
    results = run(options)
    records = [asdict(record) for record in results.records]
    publish(
        "Benchmark against the peers",
        options.output,
        tables(results, options),
        details=[spread_table(results)],
        notes=results.notes,
        data=records,
    )


if __name__ == "__main__":
    main()
