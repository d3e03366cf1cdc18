"""Every machine on every problem: how fast and how exact in the worst cell, and not on data sets of our choice.

A cell is a machine at one cost and width on one data set in one scaling. The machines and scikit-learn's SVC (LinearSVC
where there is no kernel) take turns on it, each in a process of its own that is killed after `--limit`. Every beginning
of the order of cells is a fair sample (`sweep_order`), so `--budget` may end a run anywhere. Cells are kept in
``build/sweep``: a run that was stopped goes on where it was, and `--anew` measures again.
"""

import argparse
import json
import time
from dataclasses import astuple, dataclass
from itertools import product
from typing import Any

import sweep_data
import sweep_order
import sweep_page
from report import RESULTS, console, publish
from result_store import ResultStore
from sweep_worker import MACHINES, PEERS, SweepWorker
from worker import WorkerError, WorkerTimeoutError

COSTS = (1.0, 100.0, 1e4)
WIDTHS = (0.01, "scale", 1.0)
QUICK = ("sklearn-iris", "sklearn-wine")
LOADING = 600.0
"""Seconds to wait for the data, which may have to be parsed first."""
GRACE = 5.0
"""Seconds after its own time limit at which a machine of ours is killed."""
EXACT = 1e-8
"""Tolerance of the fits that look for the best dual objective."""
BEST_SHARE = 0.15
"""Most that those fits may take of the run, unless seconds are asked for: what is timed comes first."""
SHORTEST_LOOK = 0.1
"""Seconds below which such a fit is not begun."""
REPEATED_SHARE = 0.02
"""Fits of a smaller share of the limit have all the rounds: noise is small in longer ones, and a round is dear."""


@dataclass(frozen=True)
class Problem:
    """What the contenders take turns on."""

    kernel: str
    data: str
    scaling: str
    C: float
    gamma: float | str | None

    def key(self, machine: str) -> str:
        """Name of a machine's optimum here."""
        return f"{self.kernel}/{machine} {self.data} {self.scaling} C={self.C:g} gamma={self.gamma}"


class Lane:
    """A contender and its process, which is started when needed and again after it was killed."""

    worker_type = SweepWorker

    def __init__(self, contender: str, threads: int) -> None:
        self.contender, self.threads = contender, threads
        self.worker: SweepWorker | None = None
        self.loaded: tuple[str, str] | None = None
        self.rows: int | None = None

    def fit(self, problem: Problem, seconds: float, **options: Any) -> dict[str, Any]:
        """One fit; whoever is killed says so, and has taken at least that long."""
        try:
            self.load(problem)
            return self.worker.ask_within(seconds, do="fit", C=problem.C, gamma=problem.gamma, **options)
        except WorkerTimeoutError:
            self.kill()
            return {"seconds": seconds, "killed": True}
        except WorkerError as error:
            self.kill()
            return {"seconds": None, "error": str(error)}

    def load(self, problem: Problem) -> None:
        """Have the process hold the data."""
        wanted = (problem.data, problem.scaling)
        self.worker = self.worker or self.worker_type(self.contender, self.threads, LOADING)
        if self.loaded != wanted:
            self.rows = self.worker.ask_within(LOADING, do="load", data=problem.data, scaling=problem.scaling)["rows"]
            self.loaded = wanted

    def kill(self) -> None:
        """End the process."""
        if self.worker is not None:
            self.worker.kill()
        self.worker = self.loaded = None


class Sweep:
    """The run: contenders, what they have found, and the best dual objective known of every cell."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.lanes: dict[tuple[str, int], Lane] = {}
        self.best = ResultStore("sweep/best")
        self.stores = {data: ResultStore(f"sweep/cells-{data}", options.anew) for data in options.data}
        self.cells: list[dict[str, Any]] = []
        self.problems = sweep_order.spread(problems(options), astuple)
        self.visited, self.start, self.looking = 0, 0.0, 0.0
        self.learn_from_page()

    def learn_from_page(self) -> None:
        """The page's JSON carries what was known when it was written, on whatever machine that was."""
        path = RESULTS / f"{self.options.output or 'sweep'}.json"
        published = json.loads(path.read_text())["data"]["best"] if path.exists() else {}
        for key, dual in published.items():
            self.remember(key, dual)

    def remember(self, key: str, dual: float) -> None:
        """Keep a dual objective if it is the largest."""
        if key not in self.best or dual > self.best.found[key]:
            self.best.put(key, dual)

    def lane(self, contender: str, threads: int) -> Lane:
        """The process of a contender at so many threads."""
        return self.lanes.setdefault((contender, threads), Lane(contender, threads))

    def run(self) -> None:
        """All problems, or those that the budget allows; whatever happens, no process is left behind."""
        self.start = time.monotonic()
        try:
            for problem in self.problems:
                if self.elapsed() > (self.options.budget or float("inf")):
                    break
                self.visit(problem, self.stores[problem.data])
                self.visited += 1
        finally:
            for lane in self.lanes.values():
                lane.kill()
        for cell in self.cells:
            cell["best"] = self.best.found.get(cell["optimum"])

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.start

    def coverage(self) -> str:
        """How much of the sweep this page is."""
        return (
            f"{self.visited} of {len(self.problems)} problems, {len(self.cells)} cells, in {self.elapsed():.0f} s; "
            "every beginning of their order is a fair sample of data sets, scalings, kernels, costs and widths"
        )

    def visit(self, problem: Problem, store: ResultStore) -> None:
        """Measure the machines that were not measured before, all together."""
        names = {
            machine: f"{problem.key(machine)} threads={self.threads(machine)}" for machine in self.options.machines
        }
        missing = [machine for machine, name in names.items() if self.is_open(store.found.get(name))]
        if missing:
            for machine, cell in self.race(problem, missing).items():
                store.put(names[machine], cell)
                console.print(f"  {names[machine]}: {sweep_page.brief(cell)}", style="dim", highlight=False)
        self.cells += [store.found[name] for name in names.values()]

    def is_open(self, cell: dict[str, Any] | None) -> bool:
        """Whether there is something to measure: also where someone ran into a shorter limit than today's."""
        return cell is None or (sweep_page.cut_off(cell) and cell["limit"] < self.options.limit)

    def threads(self, machine: str) -> int:
        """What was asked for, else what the bars are about: one, and two for machines that see all classes."""
        return self.options.threads or (1 if machine == "one-vs-one" else 2)

    def race(self, problem: Problem, machines: list[str]) -> dict[str, dict[str, Any]]:
        """Round-robin, each round starts with another lane; who is slow has one round."""
        limit, peer = self.options.limit, PEERS[problem.kernel]
        lanes = {name: self.lane(f"{problem.kernel}/{name}", self.threads(name)) for name in machines}
        lanes[peer] = self.lane(f"{problem.kernel}/{peer}", 1)
        fits: dict[str, list[dict[str, Any]]] = {name: [] for name in lanes}
        for turn in range(self.options.rounds):
            names = list(lanes)[turn % len(lanes) :] + list(lanes)[: turn % len(lanes)]
            for name in names:
                if turn == 0 or (fits[name][-1]["seconds"] or limit) < REPEATED_SHARE * limit:
                    own = name != peer
                    allowed = {"time_limit": limit} if own else {}
                    fits[name].append(lanes[name].fit(problem, limit + GRACE * own, **allowed))
        found = {name: {**self.cell(problem, name, fits, peer), "rows": lanes[name].rows} for name in machines}
        for machine, cell in found.items():
            self.look_for_best(problem, cell, lanes[machine])
        return found

    def cell(self, problem: Problem, machine: str, fits: dict[str, list[dict[str, Any]]], peer: str) -> dict[str, Any]:
        """What is kept: the least of the times, which noise can only lengthen, and the last fit's account of itself."""
        ours, theirs = fits[machine], fits[peer]
        key, last = problem.key(machine), ours[-1]
        # a dual above its primal is no bound, and would spoil the best for good
        if (dual := last.get("dual_objective")) is not None and dual <= last["primal_objective"] + 1e-9 * abs(dual):
            self.remember(key, dual)
        return {
            **vars(problem),
            **{name: value for name, value in last.items() if name != "cores"},
            "machine": machine,
            "threads": self.threads(machine),
            "limit": self.options.limit,
            "optimum": key,
            "seconds": least(ours),
            "peer_seconds": least(theirs),
            "peer_killed": any("killed" in fit for fit in theirs),
            "peer_warnings": theirs[-1].get("warnings", []),
            "rounds": [[fit["seconds"] for fit in each] for each in (ours, theirs)],
        }

    def look_for_best(self, problem: Problem, cell: dict[str, Any], lane: Lane) -> None:
        """One exact fit where the gap leaves open whether the dual is the best, as long as there is time for it."""
        seconds = self.options.best or BEST_SHARE * self.elapsed() - self.looking
        if cell.get("duality_gap", 1.0) <= sweep_page.bars.SWEEP_DUAL or seconds < SHORTEST_LOOK:
            return
        start = time.monotonic()
        found = lane.fit(problem, seconds + GRACE, time_limit=seconds, tol=EXACT)
        self.looking += time.monotonic() - start
        if "dual_objective" in found and found["dual_objective"] <= found["primal_objective"]:
            self.remember(problem.key(cell["machine"]), found["dual_objective"])


def least(fits: list[dict[str, Any]]) -> float | None:
    """The shortest time, None if nothing ran."""
    return min((fit["seconds"] for fit in fits if fit["seconds"] is not None), default=None)


def problems(options: argparse.Namespace) -> list[Problem]:
    """All of them; where rows are sparse and have many columns, those without a kernel alone."""
    found = []
    for data in options.data:
        dense = sweep_data.raw(data)[0].shape[1] <= sweep_data.SPARSE_FEATURES
        for kernel, scaling, C in product(options.kernels, options.scalings, options.costs):
            widths = [None] if kernel == "linear" else options.widths if dense else []
            found += [Problem(kernel, data, scaling, C, gamma) for gamma in widths]
    return found


def width(text: str) -> float | str:
    """A width as `SVC` takes it."""
    return text if text == "scale" else float(text)


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = list(sweep_data.find())
    parser.add_argument("--data", nargs="+", choices=known, metavar="NAME", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=list(MACHINES))
    parser.add_argument("--kernels", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--scalings", nargs="+", choices=sweep_data.SCALINGS)
    parser.add_argument("--costs", nargs="+", type=float)
    parser.add_argument("--widths", nargs="+", type=width)
    parser.add_argument("--threads", type=int, help="default: one-against-one one, the others two")
    parser.add_argument("--rounds", type=int, help="of fits that are short (default: 3; quick: 1)")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds after which a fit is given up")
    parser.add_argument("--budget", type=float, help="end after so many seconds, wherever the run is")
    parser.add_argument("--best", type=float, help="seconds of a fit that looks for the best dual objective")
    parser.add_argument("--worst", type=int, default=10, help="cells of each machine that are shown")
    parser.add_argument("--anew", action="store_true", help="forget the cells, but not the best objectives, in build/")
    parser.add_argument("--quick", action="store_true", help=f"{' and '.join(QUICK)}, one cost and width, standardised")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    options.data = options.data or (list(QUICK) if options.quick else known)
    options.scalings = options.scalings or (["standardised"] if options.quick else list(sweep_data.SCALINGS))
    options.costs = options.costs or (list(COSTS[:1]) if options.quick else list(COSTS))
    options.widths = options.widths or (["scale"] if options.quick else list(WIDTHS))
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def main() -> None:
    """Run, print, write."""
    options = parse_arguments()
    sweep = Sweep(options)
    sweep.run()
    publish(
        "Sweep: every machine on every problem",
        options.output,
        sweep_page.tables(sweep.cells, options.worst),
        details=[sweep_page.data_table(sweep.cells)],
        notes=[sweep.coverage(), *sweep_page.notes(sweep.cells)],
        data={"cells": sweep.cells, "best": sweep.best.found},
    )


if __name__ == "__main__":
    main()
