"""Every machine against one-against-one, on sixty problems: nobody is to take more than twenty times as long.

A cell is a machine on a problem: a data set at a cost and a width. The machines are all that `polymargin` exports, so
that new ones are measured without being named here. They stop on the relative gap where they can; it is recomputed by
`certify`. As in the sweep, whose parts these are, machines take turns in processes of their own, problems come in a
fair order, and cells are kept in ``build/family``: a run that was stopped goes on where it was.
"""

import argparse
import time
from collections import defaultdict
from dataclasses import astuple
from itertools import product
from typing import Any

import numpy as np
import sweep_data
import sweep_order
from family_worker import REFERENCE, FamilyWorker, machines
from report import Cell, Table, console, number, publish
from result_store import ResultStore
from sweep import GRACE, REPEATED_SHARE, Lane, Problem, least, width

DATA = ("wine", "glass", "vehicle", "vowel", "segment", "satimage")
COSTS = tuple(2.0**power for power in (-2, 1, 4, 7, 10))
WIDTHS = (0.01, "scale", 1.0)
PROBLEMS = 60
TOLERANCE = 1e-3
MOST = 20.0
"""Times the seconds of one-against-one that a machine may take."""

Found = dict[str, Any]
"""A cell: what `FamilyService.fit` answers, with its place, its limit and the seconds of one-against-one."""


class FamilyLane(Lane):
    """A machine and its process."""

    worker_type = FamilyWorker


class Race:
    """Machines that take turns, and what is known of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.store = ResultStore("family/cells", options.anew)
        self.lanes: dict[str, FamilyLane] = {}
        self.cells: list[Found] = []
        self.visited = 0

    def run(self, problems: list[Problem]) -> None:
        """All problems, or those that the budget allows; whatever happens, no process is left behind."""
        start = time.monotonic()
        try:
            for problem in problems:
                if time.monotonic() - start > self.options.budget:
                    break
                self.visit(problem)
                self.visited += 1
        finally:
            for lane in self.lanes.values():
                lane.kill()

    def visit(self, problem: Problem) -> None:
        """Measure who was not measured before, or was cut off by a shorter limit, beside one-against-one."""
        keys = {name: problem.key(name) for name in self.options.machines}
        missing = [name for name, key in keys.items() if self.is_open(self.store.found.get(key))]
        if missing:
            fits = self.fits(problem, [REFERENCE, *missing])
            for name in missing:
                found = {**vars(problem), **fits[name][-1], "machine": name, "limit": self.options.limit}
                found |= {"seconds": least(fits[name]), "reference": least(fits[REFERENCE])}
                self.store.put(keys[name], found)
                console.print(f"  {keys[name]}: {brief(found)}", style="dim", highlight=False)
        self.cells += [self.store.found[key] for key in keys.values()]

    def is_open(self, cell: Found | None) -> bool:
        """Whether there is something to measure."""
        return cell is None or (is_cut_off(cell) and cell["limit"] < self.options.limit)

    def fits(self, problem: Problem, names: list[str]) -> dict[str, list[Found]]:
        """Round-robin, each round starts with another machine; who is slow has one round."""
        fits: dict[str, list[Found]] = {name: [] for name in names}
        limit = self.options.limit
        for turn in range(self.options.rounds):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                if turn == 0 or (fits[name][-1]["seconds"] or limit) < REPEATED_SHARE * limit:
                    asked = {"time_limit": limit, "tol": TOLERANCE, "stop": "gap"}
                    fits[name].append(self.lane(name).fit(problem, limit + GRACE, **asked))
        return fits

    def lane(self, name: str) -> FamilyLane:
        """The process of a machine: one-against-one has one thread, as in the bars of the sweep."""
        return self.lanes.setdefault(name, FamilyLane(name, 1 if name == REFERENCE else 2))


def is_cut_off(cell: Found) -> bool:
    """Whether the fit ended by the limit."""
    return "killed" in cell or cell.get("stop_reason") == "time_limit"


def ratio(cell: Found) -> float | None:
    """Its seconds in those of one-against-one; at least that if it was cut off."""
    return None if not cell["seconds"] or not cell["reference"] else cell["seconds"] / cell["reference"]


def gap(cell: Found) -> float | None:
    """The gap that `certify` found, else that of the fit."""
    return cell.get("certified_gap", cell.get("duality_gap"))


def brief(cell: Found) -> str:
    """A cell in a line, for who watches."""
    return " ".join(each.text for each in measured(cell))


def measured(cell: Found) -> list[Cell]:
    """What was found in a cell."""
    times, found = ratio(cell), gap(cell)
    sign = "≥ " if is_cut_off(cell) else ""
    shown = Cell("-") if times is None else Cell(f"{sign}{times:.3g}", times <= MOST)
    ended = cell.get("error") or ("killed" if "killed" in cell else str(cell.get("stop_reason", "-")))
    small = number(found, ".1e", None if found is None else found <= TOLERANCE)
    return [number(cell["seconds"]), number(cell["reference"]), shown, small, Cell(ended)]


def distribution(cells: list[Found]) -> Table:
    """A line for each machine."""
    columns = ["machine", "cells", "median", "95 %", "largest", "beyond", "cut off", "failed", "gap too large"]
    table = Table("Time of a machine / time of one-against-one", columns)
    table.note = f"Beyond: cells above {MOST:g} times. Gap too large: above tol = {TOLERANCE:g}, where there is a dual."
    groups = defaultdict(list)
    for cell in cells:
        groups[cell["machine"]].append(cell)
    for name, group in groups.items():
        times = [each for each in map(ratio, group) if each is not None]
        shown = np.quantile(times, [0.5, 0.95, 1.0]) if times else [None] * 3
        counts = [
            sum(each > MOST for each in times),
            sum(map(is_cut_off, group)),
            sum("error" in cell for cell in group),
            sum((gap(cell) or 0.0) > TOLERANCE for cell in group),
        ]
        row = [Cell(name), number(len(group), "d"), *(number(value) for value in shown)]
        table.rows.append([*row, *(Cell(str(each), each == 0) for each in counts)])
    return table


def worst(cells: list[Found], most: int) -> Table:
    """The cells that take longest in comparison."""
    columns = ["machine", "data set", "C", "gamma", "seconds", "one-against-one", "times", "gap", "ended"]
    table = Table("Worst cells", columns)
    table.note = "≥: the fit ran into the limit."
    for cell in sorted(cells, key=lambda cell: -(ratio(cell) or 0.0))[:most]:
        place = [cell["machine"], cell["data"], f"{cell['C']:g}", str(cell["gamma"])]
        table.rows.append([*map(Cell, place), *measured(cell)])
    return table


def problems(options: argparse.Namespace) -> list[Problem]:
    """A fair sample of all costs and widths."""
    every = product(["kernel"], options.data, ["standardised"], options.costs, options.widths)
    return sweep_order.spread([Problem(*each) for each in every], astuple)[:PROBLEMS]


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=list(sweep_data.find()), default=list(DATA), metavar="NAME")
    parser.add_argument("--machines", nargs="+", choices=machines(), default=machines())
    parser.add_argument("--costs", nargs="+", type=float, default=list(COSTS))
    parser.add_argument("--widths", nargs="+", type=width, default=list(WIDTHS))
    parser.add_argument("--rounds", type=int, default=3, help="of fits that are short")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds after which a fit is given up")
    parser.add_argument("--budget", type=float, default=np.inf, help="end after so many seconds, wherever the run is")
    parser.add_argument("--worst", type=int, default=30, help="cells that are shown")
    parser.add_argument("--anew", action="store_true", help="forget the cells in build/")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    race, wanted = Race(options), problems(options)
    race.run(wanted)
    coverage = f"{race.visited} of {len(wanted)} problems, limit of a fit {options.limit:g} s; times are the least"
    tables = [distribution(race.cells), worst(race.cells, options.worst)]
    publish("Family: every machine", options.output, tables, notes=[coverage, *options.note], data=race.cells)


if __name__ == "__main__":
    main()
