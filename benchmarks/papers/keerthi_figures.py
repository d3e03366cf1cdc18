"""Draw the figures of Keerthi et al. 2008 again: how fast the solvers come to the optimum, and to their test rate.

Figures 1 and 4: the sequential dual method with and without its heuristics, for Crammer-Singer and Weston-Watkins.
Figures 2 and 3: the method and its rivals, at several C. Figure 5: the three machines. A curve is a series of fits of
the same solver, each cut off after twice the work of the one before; fits are deterministic, so a later one repeats the
earlier. Time is that of the processor, on one thread, so that a busy machine does not bend the curves.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import _path  # noqa: F401
import linear_data
import linear_objective
from linear_data import LinearData
from report import RESULTS, Cell, Table, console, number, publish
from sklearn.exceptions import ConvergenceWarning

from polymargin import CrammerSingerSVC, OneVsRestSVC, WestonWatkinsSVC
from polymargin.formulations import Heuristics

warnings.simplefilter("ignore", ConvergenceWarning)  # cutting fits off is the point

MACHINES = {"crammer-singer": CrammerSingerSVC, "weston-watkins": WestonWatkinsSVC, "one-vs-rest": OneVsRestSVC}
SOLVERS = ("sequential-dual", "exponentiated-gradient", "cutting-plane")
HEURISTICS = Heuristics(newton=False)
PLAIN = replace(HEURISTICS, shrinking=False, cooling=False)
LEVELS = (1e-1, 1e-2, 1e-3)
"""Relative differences from the best dual objective, to which times are given."""
FLOOR = 1e-6
"""Smallest difference that is drawn."""
LONGER = 4
"""How many times the budget the method itself gets, so that the optimum is known where its rivals are measured."""
LONGER_NOTE = f"the sequential dual method with its heuristics with the first of more than {LONGER} times that"
DATA = ("news20", "mnist", "covtype-sparse")
NEAR = 0.2
"""Points of the test rate within which a curve has arrived."""
FIRST_LOOP = 0.25


def with_heuristics(Machine: Any, heuristics: Heuristics) -> Any:
    """The machine, solved with some heuristics of the sequential dual method switched off."""

    class Paper(Machine):
        @property
        def formulation(self) -> Any:
            return replace(super().formulation, heuristics=heuristics)

    Paper.__name__ = Machine.__name__
    return Paper


class Panel(NamedTuple):
    """One pair of axes of a figure."""

    figure: str
    data: str
    C: float


@dataclass(frozen=True)
class Curve:
    """A solver on a problem; the same one may be in several panels."""

    data: str
    machine: str
    solver: str = "sequential-dual"
    C: float = 1.0
    heuristics: bool = True

    def name(self, figure: str) -> str:
        """What tells it from the others of its figure."""
        if figure in "14":
            return "with heuristics" if self.heuristics else "without"
        return self.machine if figure == "5" else self.solver

    def model(self, work: float, rows: int) -> Any:
        """The machine, cut off after so many loops over the rows, or so many planes."""
        Machine = with_heuristics(MACHINES[self.machine], HEURISTICS if self.heuristics else PLAIN)
        options = {"margin": 1.0} if self.machine == "weston-watkins" else {}
        most = max(1, round(work if self.solver == "cutting-plane" else work * rows))
        return Machine(self.C, kernel="linear", bias=None, solver=self.solver, tol=1e-6, max_iter=most, **options)


@dataclass(frozen=True)
class Point:
    """Where a solver is after some time of the processor."""

    curve: Curve
    seconds: float
    primal: float
    dual: float
    rate: float


Traces = dict[Curve, list[Point]]


def panels(options: argparse.Namespace) -> dict[Panel, list[Curve]]:
    """The curves of every panel, on the data sets that the paper shows there."""
    found: dict[Panel, list[Curve]] = {}
    for name in options.data:
        for figure, machine in (("1", "crammer-singer"), ("4", "weston-watkins")):
            if name != "news20":
                found[Panel(figure, name, 1.0)] = [Curve(name, machine, heuristics=on) for on in (True, False)]
        for C in (10.0, 0.1) if name == "mnist" else ():
            found[Panel("2", name, C)] = [Curve(name, "crammer-singer", solver, C) for solver in SOLVERS]
        found[Panel("3", name, 1.0)] = [Curve(name, "crammer-singer", solver) for solver in SOLVERS]
        if name != "news20":
            found[Panel("5", name, 1.0)] = [Curve(name, machine) for machine in MACHINES]
    return {panel: curves for panel, curves in sorted(found.items()) if panel.figure in options.figures}


def trace(curve: Curve, data: LinearData, budget: float) -> Iterator[Point]:
    """Fits that are cut off later and later, until one is good enough or has taken the budget."""
    if curve.heuristics and curve.solver == "sequential-dual":
        budget *= LONGER
    work = 1.0 if curve.solver == "cutting-plane" else FIRST_LOOP
    curve.model(work, len(data.y_train)).fit(data.X_train, data.y_train)  # start-up is nobody's time
    while True:
        model = curve.model(work, len(data.y_train))
        start = time.process_time()
        model.fit(data.X_train, data.y_train)
        seconds = time.process_time() - start
        primal = linear_objective.primal(curve.machine, data, model.coef_, curve.C)
        yield Point(curve, seconds, primal, model.dual_objective_, linear_objective.rate(data, model.coef_))
        if model.converged_ or seconds > budget:
            return
        work *= 2


def load(name: str, rows: int | None) -> LinearData:
    """A data set, or the first rows to train of it."""
    data = linear_data.load(name)
    return replace(data, X_train=data.X_train[:rows], y_train=data.y_train[:rows])


def trace_all(wanted: dict[Panel, list[Curve]], options: argparse.Namespace) -> Traces:
    """Every curve once, one data set in memory at a time."""
    traces: Traces = {}
    for name in dict.fromkeys(panel.data for panel in wanted):
        data = load(name, options.rows)
        for curve in dict.fromkeys(curve for panel, curves in wanted.items() for curve in curves if panel.data == name):
            label = f"  {name}, C = {curve.C:g}: {curve.machine}, {curve.solver}"
            console.print(label + ("" if curve.heuristics else ", no heuristics"), style="dim", highlight=False)
            traces[curve] = list(trace(curve, data, options.budget))
    return traces


class Best(NamedTuple):
    """What is known of the optimum of a problem: a bound from below, one from above, and the test rate there."""

    dual: float
    primal: float
    rate: float

    @classmethod
    def of(cls, curve: Curve, traces: Traces) -> "Best":
        """From all that was run on the same problem."""
        problem = (curve.data, curve.machine, curve.C)
        points = [p for c, line in traces.items() if (c.data, c.machine, c.C) == problem for p in line]
        finest = max(points, key=lambda p: p.dual)
        return cls(finest.dual, min(p.primal for p in points), finest.rate)

    @property
    def known(self) -> float:
        """How well, relative; smaller differences from the dual objective mean nothing."""
        return max((self.primal - self.dual) / self.primal, 0.0)

    def difference(self, point: Point) -> float:
        """Relative difference of the dual objective."""
        return (self.dual - point.dual) / self.dual


def to_level(points: list[Point], best: Best, level: float) -> Cell:
    """Time to a level, if the optimum is known well enough to tell."""
    return number(None) if best.known > level else first(points, [best.difference(p) <= level for p in points])


def first(points: list[Point], reached: list[bool]) -> Cell:
    """Time of the first point that is good enough; if there is none, the longest time tried."""
    for point, good in zip(points, reached, strict=True):
        if good:
            return number(point.seconds)
    return Cell(f"> {points[-1].seconds:.3g}")


def summary(figure: str, wanted: dict[Panel, list[Curve]], traces: Traces) -> Table:
    """Who comes first, as numbers."""
    levels = [f"to {level:g}" for level in LEVELS]
    columns = ["data set", "C", "curve", *levels, "to the test rate", "test rate, %", "optimum known to"]
    table = Table(f"Figure {figure}: seconds of the processor to a relative difference of the dual objective", columns)
    table.note = (
        "From the largest dual objective that any solver reached on the same problem. How well that is known says the "
        "last column, the relative difference to the smallest primal objective; a dash: not well enough for the level. "
        f"> : not reached in the longest fit. To the test rate: until the curve stays within {NEAR:g} of the rate that "
        "belongs to the largest dual objective."
    )
    for panel, curves in wanted.items():
        for curve in curves if panel.figure == figure else ():
            points, best = traces[curve], Best.of(curve, traces)
            times = [to_level(points, best, level) for level in LEVELS]
            near = [abs(p.rate - best.rate) <= NEAR for p in points]
            steady = first(points, [all(near[at:]) for at in range(len(near))])
            ends = [number(points[-1].rate, ".2f"), number(best.known, ".0e")]
            labels = [Cell(panel.data), number(panel.C, "g"), Cell(curve.name(figure))]
            table.rows.append([*labels, *times, steady, *ends])
    return table


def all_points(traces: Traces) -> Table:
    """The curves as numbers."""
    columns = ["data set", "C", "machine", "solver", "heuristics", "seconds", "dual: difference", "primal: difference"]
    table = Table("All points", [*columns, "test rate, %"])
    for curve, points in traces.items():
        best = Best.of(curve, traces)
        labels = [Cell(curve.data), number(curve.C, "g"), Cell(curve.machine), Cell(curve.solver)]
        for p in points:
            above = (p.primal - best.dual) / best.dual
            numbers = [number(p.seconds), number(best.difference(p), ".1e"), number(above, ".1e")]
            table.rows.append([*labels, Cell("yes" if curve.heuristics else "no"), *numbers, number(p.rate, ".2f")])
    return table


LINES = (("#c1272d", "-."), ("#0000a7", "--"), ("#008176", "-"))
"""Colours and dashes in the order of the curves of a panel, near those of the paper."""


def draw(figure: str, wanted: dict[Panel, list[Curve]], traces: Traces, name: str) -> None:
    """One picture for a figure, a row for each panel; Figure 5 has, as in the paper, test rates alone."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = {panel: curves for panel, curves in wanted.items() if panel.figure == figure}
    kinds = (draw_rate,) if figure == "5" else (draw_difference, draw_rate)
    size = (4.2 * len(kinds), 2.7 * len(rows) + 0.3)
    picture, grid = plt.subplots(len(rows), len(kinds), figsize=size, layout="constrained", squeeze=False)
    for (panel, curves), axes in zip(rows.items(), grid, strict=True):
        for kind, ax in zip(kinds, axes, strict=True):
            for curve, (colour, dashes) in zip(curves, LINES, strict=False):
                style = {"color": colour, "linestyle": dashes, "marker": ".", "label": curve.name(figure)}
                kind(ax, traces[curve], Best.of(curve, traces), style)
            ax.set_xscale("log")
            ax.set_title(f"{panel.data}, C = {panel.C:g}", fontsize="medium")
            ax.grid(alpha=0.3)
    for ax in grid[-1]:
        ax.set_xlabel("seconds of the processor")
    grid[0][0].legend(fontsize="small")
    path = RESULTS / f"{name}-{figure}.png"
    picture.savefig(path, dpi=75)
    plt.close(picture)
    console.print(f"drawn: results/{path.name}")


def draw_difference(ax: Any, points: list[Point], best: Best, style: dict[str, Any]) -> None:
    """How far the dual objective is from the best; a curve ends where it is as near as the best one is known."""
    floor = max(best.known, FLOOR)
    differences = [max(best.difference(p), floor) for p in points]
    end = differences.index(floor) + 1 if floor in differences else len(points)
    ax.semilogy([p.seconds for p in points[:end]], differences[:end], **style)
    ax.set_ylabel("relative difference")


def draw_rate(ax: Any, points: list[Point], best: Best, style: dict[str, Any]) -> None:
    """The test rate; only the upper part of the axis tells the curves apart."""
    ax.plot([p.seconds for p in points], [p.rate for p in points], **style)
    top = max(max(line.get_ydata()) for line in ax.get_lines())
    ax.set_ylim(top - 12, top + 1)
    ax.set_ylabel("test rate, %")


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--rows", type=int, help="only so many rows to train")
    parser.add_argument("--figures", nargs="+", default=list("12345"), choices=list("12345"))
    parser.add_argument("--budget", type=float, default=30.0, help="seconds after which a curve gets no longer fit")
    parser.add_argument("--quick", action="store_true", help="Figure 3 on news20, about a second for each curve")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md, .json and pictures, which need matplotlib")
    options = parser.parse_args()
    if options.quick:
        options.data, options.figures, options.budget = ["news20"], ["3"], 1.0
    return options


def main() -> None:
    """Run, print, write, draw."""
    options = parse_arguments()
    wanted = panels(options)
    traces = trace_all(wanted, options)
    figures = list(dict.fromkeys(panel.figure for panel in wanted))
    publish(
        "The figures of Keerthi et al. 2008",
        options.output,
        [summary(figure, wanted, traces) for figure in figures],
        details=[all_points(traces)],
        notes=[*options.note, f"a curve ends with the first fit of more than {options.budget:g} seconds", LONGER_NOTE],
        data=[asdict(point) for points in traces.values() for point in points],
    )
    for figure in figures if options.output else ():
        draw(figure, wanted, traces, options.output)


if __name__ == "__main__":
    main()
