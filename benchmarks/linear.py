"""Race the linear machines against LIBLINEAR and others to the same primal sub-optimality, interleaved in one run.

Stopping rules differ, so every contender is run at ever finer settings of its own, and what is compared is the time to
come within 1e-2, 1e-3 and 1e-4 of the optimum: the smallest primal objective that anybody reached.
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import bars
import linear_data
import linear_peers
from linear_worker import LinearWorker
from machine import package_version
from report import Cell, Table, console, number, publish
from run import Lane
from worker import WorkerTimeoutError

LEVELS = (1e-2, 1e-3, 1e-4)
LEVEL_COLUMNS = [f"to {level:g}" for level in LEVELS]
OURS = "polymargin"
QUICK = ("news20",)
TEAMS = (("crammer-singer", "weston-watkins", linear_peers.YARDSTICK), ("one-vs-rest",))
"""Machines that are raced together: those whose times are compared. One team's data are in memory at a time."""
STALE = 1e-6
"""Two runs on end that improve by less than this, relative, and cost something: the contender cannot do better."""


@dataclass
class Run:
    """One timed fit."""

    data: str
    machine: str
    contender: str
    threads: int
    precision: float | str
    round: int
    seconds: float
    cores: float
    primal: float | None
    rate: float | None
    facts: dict[str, Any]


class Rung(NamedTuple):
    """All rounds of one contender at one precision; medians."""

    precision: float | str
    seconds: float
    primal: float | None
    runs: list[Run]

    @property
    def last(self) -> Run:
        """The run that stands for what does not vary."""
        return self.runs[-1]


class Reached(NamedTuple):
    """Time to a level; if it was not reached, the longest time tried."""

    seconds: float
    rung: Rung | None

    def cell(self) -> Cell:
        """As text."""
        return Cell(f"{'' if self.rung else '> '}{self.seconds:.3g}")


@dataclass
class Results:
    """All timed fits, and what went wrong."""

    runs: list[Run] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    waits: dict[tuple[str, str, str, int], float] = field(default_factory=dict)
    """How long a contender was waited for in vain."""

    @staticmethod
    def own_threads(machine: str, contender: str, threads: int) -> int:
        """The number of threads that a contender ran with."""
        return threads if linear_peers.ALL[machine][contender].threaded else 1

    def rungs(self, data: str, machine: str, contender: str, threads: int) -> list[Rung]:
        """The ladder of one contender, as far as it went; those without threads stand for every number of them."""
        threads = self.own_threads(machine, contender, threads)
        found: dict[float | str, list[Run]] = defaultdict(list)
        for run in self.runs:
            if (run.data, run.machine, run.contender, run.threads) == (data, machine, contender, threads):
                found[run.precision].append(run)
        return [
            Rung(precision, statistics.median(run.seconds for run in runs), median_primal(runs), runs)
            for precision, runs in found.items()
        ]

    def best(self, data: str, machine: str) -> Run | None:
        """The run with the smallest primal objective: what all are measured by."""
        runs = [run for run in self.runs if (run.data, run.machine) == (data, machine) and run.primal is not None]
        return min(runs, key=lambda run: run.primal, default=None)

    def excess(self, data: str, machine: str, primal: float) -> float:
        """Relative sub-optimality."""
        optimum = self.best(data, machine).primal
        return (primal - optimum) / optimum

    def reached(self, data: str, machine: str, contender: str, threads: int, level: float) -> Reached | None:
        """The quickest rung within the level; None if the contender did not run."""
        rungs = self.rungs(data, machine, contender, threads)
        within = [rung for rung in rungs if self.excess(data, machine, rung.primal) <= level]
        if within:
            rung = min(within, key=lambda rung: rung.seconds)
            return Reached(rung.seconds, rung)
        tried = [rung.seconds for rung in rungs]
        if wait := self.waits.get((data, machine, contender, self.own_threads(machine, contender, threads))):
            tried.append(wait)
        return Reached(max(tried), None) if tried else None


def median_primal(runs: list[Run]) -> float | None:
    """None of those who fit nothing."""
    return None if runs[0].primal is None else statistics.median(run.primal for run in runs)


class Climber(Lane):
    """One contender at one number of threads on its ladder of precisions: it stops where the budget ends."""

    def __init__(self, machine: str, name: str, threads: int, options: argparse.Namespace, results: Results) -> None:
        super().__init__(f"{machine}/{name}", threads, options, results)
        self.machine, self.name = machine, name
        contender = linear_peers.ALL[machine][name]
        self.ladder = contender.quick if options.quick else contender.ladder

    def load(self, data: str) -> None:
        """Start the process if there is none, and give it the data."""
        self.data, self.rounds = data, self.options.rounds
        self.height, self.repeats = len(self.ladder), [self.rounds] * len(self.ladder)
        self.least, self.stale = float("inf"), 0
        self.worker = self.worker or LinearWorker(self.contender, self.threads, self.options.timeout)
        self.ask(do="load", data=data)

    def due(self, rung: int, round_: int) -> bool:
        """Whether there is a run to do; a contender that failed has no rounds left."""
        return self.rounds > 0 and rung < self.height and round_ < self.repeats[rung]

    def visit(self, rung: int, round_: int) -> None:
        """Fit once and keep what came of it."""
        answer = self.ask(do="fit", precision=self.ladder[rung])
        if answer is None:
            if isinstance(self.failure, WorkerTimeoutError):
                self.results.waits[self.data, self.machine, self.name, self.threads] = self.options.timeout
            return
        taken = {name: answer.pop(name) for name in ("seconds", "cores", "primal", "rate")}
        run = Run(self.data, self.machine, self.name, self.threads, self.ladder[rung], round_, **taken, facts=answer)
        self.results.runs.append(run)
        label = f"  {self.data} round {round_ + 1}: {self.contender}, threads={self.threads}, {run.precision}"
        primal = "" if run.primal is None else f", primal {run.primal:.7g}"
        console.print(f"{label}: {run.seconds:.4g} s{primal}", style="dim", markup=False, highlight=False)
        self.spend(rung, run)

    def spend(self, rung: int, run: Run) -> None:
        """Slow runs are repeated less often, and after one over the budget or two in vain nothing finer is tried."""
        budget = self.options.budget
        self.repeats[rung] = min(self.repeats[rung], max(1, int(budget // run.seconds)))
        if run.round == 0 and run.primal is not None:
            vain = run.seconds > budget / 20 and run.primal > self.least * (1 - STALE)
            self.stale = self.stale + 1 if vain else 0
            self.least = min(self.least, run.primal)
        if run.seconds > budget or self.stale == 2:
            self.height = min(self.height, rung + 1)


def race(lanes: list[Climber], data: str) -> None:
    """All lanes on one data set, rung by rung; each time another lane begins."""
    for lane in lanes:
        lane.load(data)
    for round_ in range(max(lane.options.rounds for lane in lanes)):
        for rung in range(max(len(lane.ladder) for lane in lanes)):
            shift = (round_ + rung) % len(lanes)
            for lane in lanes[shift:] + lanes[:shift]:
                if lane.due(rung, round_):
                    lane.visit(rung, round_)
    for lane in lanes:
        lane.release()


def make_lanes(machines: Iterable[str], options: argparse.Namespace, results: Results) -> list[Climber]:
    """Every contender of these machines at every number of threads; those without threads once."""
    return [
        Climber(machine, name, threads, options, results)
        for machine in machines
        for name, contender in linear_peers.ALL[machine].items()
        for threads in (options.threads if contender.threaded else [1])
    ]


def run(options: argparse.Namespace) -> Results:
    """The whole run; whatever happens, no process is left behind."""
    results = Results()
    wanted = {*options.machines, linear_peers.YARDSTICK}
    teams = [make_lanes([machine for machine in team if machine in wanted], options, results) for team in TEAMS]
    try:
        for data in options.data:
            console.print(data, style="bold")
            linear_data.load(data)  # the first one parses: better one process than all
            for lanes in filter(None, teams):
                race(lanes, data)
    finally:
        for lane in [lane for lanes in teams for lane in lanes]:
            lane.close()
    return results


def entries(machine: str, options: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    """Row keys of a machine's table: data set, contender, threads."""
    for data in options.data:
        for name, contender in linear_peers.MACHINES[machine].items():
            for threads in options.threads if contender.threaded else [1]:
                yield data, name, threads


def seconds_table(results: Results, machine: str, options: argparse.Namespace) -> Table:
    """Time to the levels, and how far the finest run went."""
    columns = ["data set", "contender", "threads", *LEVEL_COLUMNS, "smallest sub-optimality", "test rate, %"]
    table = Table(f"Linear {machine}: seconds to a relative primal sub-optimality", columns)
    table.note = (
        "C = 1, no bias. Of all runs within the level the quickest; medians of the rounds. "
        "> : not within the level in the longest run tried. Test rate: that of the run with the smallest objective."
    )
    for data, name, threads in entries(machine, options):
        reached = [results.reached(data, machine, name, threads, level) for level in LEVELS]
        rungs = results.rungs(data, machine, name, threads)
        finest = min(rungs, key=lambda rung: rung.primal, default=None)
        excess = number(results.excess(data, machine, finest.primal) if finest else None, ".1e")
        quality = [excess, number(finest.last.rate if finest else None, ".2f")]
        times = [one.cell() if one else number(None) for one in reached]
        table.rows.append([Cell(data), Cell(name), Cell(str(threads)), *times, *quality])
    return table


def ratio_cell(theirs: Reached | None, ours: Reached | None, bar: float | None) -> Cell:
    """Their time over ours; where they did not arrive it is a lower bound, which can reach a bar but not miss it."""
    if theirs is None or ours is None or ours.rung is None:
        return number(None)
    ratio = theirs.seconds / ours.seconds
    known = theirs.rung is not None or (bar is not None and ratio >= bar)
    ok = ratio >= bar if bar is not None and known else None
    return Cell(f"{'' if theirs.rung else '> '}{ratio:.2f}", ok)


def judged(level: float, options: argparse.Namespace) -> bool:
    """Whether the bars stand at this level; two rungs are too few to tell when anybody arrived."""
    return level == bars.LINEAR_LEVEL and not options.quick


def ratio_table(results: Results, options: argparse.Namespace) -> Table:
    """How many times longer each peer takes."""
    columns = ["data set", "machine", "peer", "threads", *LEVEL_COLUMNS]
    table = Table("Time of the peer / time of polymargin", columns)
    table.note = (
        "Above 1: polymargin is faster. A peer without threads is the same in all rows. "
        f"✓ and ✗: the bar of the project, at {bars.LINEAR_LEVEL:g}, is reached or not; a quick run is not judged."
    )
    for machine, data, threads in settings(options):
        for peer in [name for name in linear_peers.MACHINES[machine] if name != OURS]:
            cells = []
            for level in LEVELS:
                theirs, ours = (results.reached(data, machine, name, threads, level) for name in (peer, OURS))
                bar = bars.linear_bar(machine, data, peer, threads) if judged(level, options) else None
                cells.append(ratio_cell(theirs, ours, bar))
            table.rows.append([Cell(data), Cell(machine), Cell(peer), Cell(str(threads)), *cells])
    return table


def settings(options: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    """Row keys of the tables about all machines."""
    for machine in options.machines:
        yield from ((machine, data, threads) for data in options.data for threads in options.threads)


def sum_table(results: Results, options: argparse.Namespace) -> Table:
    """What the sum of the hinges costs over their maximum."""
    table = Table("Time of our Weston-Watkins / time of our Crammer-Singer", ["data set", "threads", *LEVEL_COLUMNS])
    table.note = f"The bar is {bars.WESTON_WATKINS_MOST:g} at {bars.LINEAR_LEVEL:g}."
    for data in options.data:
        for threads in options.threads:
            cells = [sum_cell(results, data, threads, level, judged(level, options)) for level in LEVELS]
            table.rows.append([Cell(data), Cell(str(threads)), *cells])
    return table


def sum_cell(results: Results, data: str, threads: int, level: float, judge: bool) -> Cell:
    """One ratio."""
    both = [results.reached(data, machine, OURS, threads, level) for machine in ("weston-watkins", "crammer-singer")]
    if not all(one is not None and one.rung is not None for one in both):
        return number(None)
    ratio = both[0].seconds / both[1].seconds
    return number(ratio, ".2f", ratio <= bars.WESTON_WATKINS_MOST if judge else None)


def product_seconds(results: Results, data: str, threads: int) -> dict[str, float]:
    """Time of one X @ W, for both precisions."""
    rungs = results.rungs(data, linear_peers.YARDSTICK, "product", threads)
    return {rung.precision: rung.seconds / rung.last.facts["products"] for rung in rungs}


def epoch_table(results: Results, options: argparse.Namespace) -> Table:
    """What a pass of our solver costs, in products of the data with the weights."""
    columns = ["data set", "machine", "threads", "tol", "epochs", "ms per epoch"]
    columns += ["ms of X @ W", "ms of X @ W, float32", "epoch / X @ W", "epoch / X @ W, float32"]
    table = Table("Time of an epoch", columns)
    table.note = (
        f"Of the run that was first within {bars.LINEAR_LEVEL:g}: the whole fit over its visits in units of the rows. "
        "X @ W: rows times features x classes by SciPy, which has no threads where X is sparse."
    )
    for machine, data, threads in settings(options):
        reached = results.reached(data, machine, OURS, threads, bars.LINEAR_LEVEL)
        cells = epoch_cells(reached.rung if reached else None, product_seconds(results, data, threads))
        table.rows.append([Cell(data), Cell(machine), Cell(str(threads)), *cells])
    return table


def epoch_cells(rung: Rung | None, products: dict[str, float]) -> list[Cell]:
    """One row of the epochs; the yardstick stands there even if nobody is measured by it."""
    tol = epochs = epoch = None
    if rung is not None:
        tol, epochs = rung.precision, rung.last.facts["visits"] / rung.last.facts["rows"]
        epoch = rung.seconds / epochs
    times = [products.get(kind) for kind in linear_peers.Product.ladder]
    own = [number(tol, "g"), number(epochs, ".1f"), number(1e3 * epoch if epoch else None)]
    yard = [number(1e3 * seconds if seconds else None) for seconds in times]
    return [*own, *yard, *(number(epoch / seconds if epoch and seconds else None, ".2f") for seconds in times)]


def optimum_table(results: Results, options: argparse.Namespace) -> Table:
    """How well the optimum is known that all were measured by."""
    columns = ["data set", "machine", "smallest primal", "of", "largest dual", "relative difference"]
    table = Table("The optimum", columns)
    table.note = "The dual objective is what polymargin says of itself: a bound that nobody can be below."
    for machine in options.machines:
        for data in options.data:
            best = results.best(data, machine)
            facts = [run.facts for run in results.runs if (run.data, run.machine) == (data, machine)]
            dual = max((said["dual_objective_"] for said in facts if "dual_objective_" in said), default=None)
            apart = (best.primal - dual) / best.primal if best and dual is not None else None
            who = Cell(f"{best.contender} at {best.precision:g}") if best else number(None)
            numbers = [number(best.primal if best else None, ".8g"), who, number(dual, ".8g"), number(apart, ".1e")]
            table.rows.append([Cell(data), Cell(machine), *numbers])
    return table


def ladder_table(results: Results, machine: str, options: argparse.Namespace) -> Table:
    """Every rung, so that nobody has to believe the choice among them."""
    columns = ["data set", "contender", "threads", "setting", "rounds", "least", "median", "most", "cores used"]
    table = Table(f"All runs of linear {machine}: seconds", [*columns, "primal", "sub-optimality", "test rate, %"])
    table.note = "Setting: -e of LIBLINEAR, tol of the others. Cores used: processor time over elapsed time."
    for data, name, threads in entries(machine, options):
        for rung in results.rungs(data, machine, name, threads):
            times = [run.seconds for run in rung.runs]
            spread = [number(value) for value in (min(times), rung.seconds, max(times))]
            cores = number(statistics.median(run.cores for run in rung.runs), ".2f")
            excess = number(results.excess(data, machine, rung.primal), ".1e")
            quality = [number(rung.primal, ".8g"), excess, number(rung.last.rate, ".2f")]
            labels = [Cell(data), Cell(name), Cell(str(threads)), number(rung.precision, "g"), Cell(str(len(times)))]
            table.rows.append([*labels, *spread, cores, *quality])
    return table


def tables(results: Results, options: argparse.Namespace) -> list[Table]:
    """Everything that is printed and written."""
    times = [seconds_table(results, machine, options) for machine in options.machines]
    both = {"weston-watkins", "crammer-singer"} <= set(options.machines)
    sums = [sum_table(results, options)] if both else []
    about = [epoch_table(results, options), optimum_table(results, options)]
    return [*times, ratio_table(results, options), *sums, *about]


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=linear_data.LARGE, help="data sets (default: all)")
    parser.add_argument("--machines", nargs="+", choices=linear_peers.MACHINES, default=list(linear_peers.MACHINES))
    parser.add_argument("--rounds", type=int, help="rounds of every run (default: 3; quick: 1)")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--budget", type=float, default=120.0, help="after a run this long nothing finer is tried")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait for one run")
    parser.add_argument("--quick", action="store_true", help="news20 alone, two precisions, one round")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    options.data = options.data or list(QUICK if options.quick else linear_data.LARGE)
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def main() -> None:
    """Run, print, write."""
    options = parse_arguments()
    results = run(options)
    versions = ", ".join(f"{name} {package_version(name)}" for name in linear_peers.PACKAGES)
    publish(
        "Linear machines at scale",
        options.output,
        tables(results, options),
        details=[ladder_table(results, machine, options) for machine in options.machines],
        notes=[versions, *options.note, *results.notes],
        data=[asdict(one) for one in results.runs],
    )


if __name__ == "__main__":
    main()
