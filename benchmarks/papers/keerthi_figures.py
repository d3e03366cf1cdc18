"""Draw the figures of Keerthi et al. 2008 again: how fast the solvers come to the optimum, and to their test rate.

Figures 1 and 4: the sequential dual method with and without its heuristics, for Crammer-Singer and Weston-Watkins.
Figures 2 and 3: the method and its rivals, at several C. Figure 5: the three machines. A curve is a series of fits of
the same solver, each cut off later than the one before; fits are deterministic, so a later one repeats the earlier.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import _path  # noqa: F401
import linear_data
import linear_objective
from linear_data import LinearData
from report import RESULTS, Table, console, number, publish
from sklearn.exceptions import ConvergenceWarning

from polymargin import CrammerSingerSVC, OneVsRestSVC, WestonWatkinsSVC

warnings.simplefilter("ignore", ConvergenceWarning)  # cutting fits off is the point

MACHINES = {"crammer-singer": CrammerSingerSVC, "weston-watkins": WestonWatkinsSVC, "one-vs-rest": OneVsRestSVC}
PLAIN = {"shuffling": True, "shrinking": False, "cooling": False}
SECONDS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


@dataclass(frozen=True)
class Curve:
    """One line of a figure."""

    figure: str
    data: str
    machine: str
    solver: str = "sequential-dual"
    C: float = 1.0
    heuristics: bool = True

    @property
    def name(self) -> str:
        """For the legend."""
        return f"{self.machine}, {self.solver}" + ("" if self.heuristics else " without heuristics")

    def model(self, seconds: float) -> Any:
        """The machine, cut off after so long."""
        Machine: Any = MACHINES[self.machine]
        if not self.heuristics:
            Machine = type(Machine.__name__, (Machine,), {"_heuristics": PLAIN})
        options = {"margin": 1.0} if self.machine == "weston-watkins" else {}
        return Machine(self.C, kernel="linear", bias=None, solver=self.solver, tol=1e-6, time_limit=seconds, **options)


@dataclass(frozen=True)
class Point:
    """Where a solver is after some time."""

    figure: str
    data: str
    curve: str
    C: float
    seconds: float
    primal: float
    dual: float
    rate: float


def curves(names: list[str], figures: list[str]) -> Iterator[Curve]:
    """All lines of the figures asked for; the rivals run where the paper has them."""
    for name in names:
        for figure, machine in (("1", "crammer-singer"), ("4", "weston-watkins")):
            if figure in figures:
                yield Curve(figure, name, machine)
                yield Curve(figure, name, machine, heuristics=False)
        for figure, costs in (("2", (10.0, 0.1)), ("3", (1.0,))):
            for C in costs if figure in figures else ():
                for solver in ("sequential-dual", "exponentiated-gradient", "cutting-plane"):
                    yield Curve(figure, name, "crammer-singer", solver, C)
        if "5" in figures:
            for machine in MACHINES:
                yield Curve("5", name, machine)


def trace(curve: Curve, data: LinearData, budget: float) -> Iterator[Point]:
    """Fits that are cut off later and later."""
    for limit in SECONDS:
        if limit > budget:
            return
        start = time.perf_counter()
        model = curve.model(limit).fit(data.X_train, data.y_train)
        seconds = time.perf_counter() - start
        primal = linear_objective.primal(curve.machine, data, model.coef_, curve.C)
        rate = linear_objective.rate(data, model.coef_)
        yield Point(curve.figure, data.name, curve.name, curve.C, seconds, primal, model.dual_objective_, rate)
        if model.converged_:
            return


def table(points: list[Point], figure: str, data: str, C: float) -> Table:
    """The curves of one panel as numbers."""
    panel = [p for p in points if (p.figure, p.data, p.C) == (figure, data, C)]
    best = max(p.dual for p in panel)
    out = Table(
        f"Figure {figure}, {data}, C = {C:g}",
        ["curve", "seconds", "relative difference of the dual", "of the primal", "test rate, %"],
        note="Differences are from the best dual objective of the panel, as in the paper.",
    )
    for p in panel:
        cells = [number(None)] * 5
        cells[0] = number(None)._replace(text=p.curve)
        cells[1:] = [
            number(p.seconds, ".2f"),
            number((best - p.dual) / best, ".1e"),
            number((p.primal - best) / best, ".1e"),
            number(p.rate, ".2f"),
        ]
        out.rows.append(cells)
    return out


def draw(points: list[Point], name: str) -> None:
    """A picture for each panel, if matplotlib is there."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        console.print("matplotlib is not installed: no pictures")
        return
    for figure, data, C in dict.fromkeys((p.figure, p.data, p.C) for p in points):
        panel = [p for p in points if (p.figure, p.data, p.C) == (figure, data, C)]
        best = max(p.dual for p in panel)
        picture, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
        for curve in dict.fromkeys(p.curve for p in panel):
            line = [p for p in panel if p.curve == curve]
            seconds = [p.seconds for p in line]
            left.loglog(seconds, [max((best - p.dual) / best, 1e-9) for p in line], marker="o", label=curve)
            right.semilogx(seconds, [p.rate for p in line], marker="o", label=curve)
        left.set(xlabel="seconds", ylabel="relative function value difference")
        right.set(xlabel="seconds", ylabel="test rate, %")
        left.legend()
        picture.suptitle(f"{data}, C = {C:g}")
        path = RESULTS / f"{name}-{figure}-{data}-{C:g}.png"
        picture.savefig(path, dpi=100)
        plt.close(picture)
        console.print(f"drawn: results/{path.name}")


def main() -> None:
    """Run, print, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["news20", "mnist", "covtype"])
    parser.add_argument("--figures", nargs="+", default=list("12345"), choices=list("12345"))
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of the longest fit of a curve")
    parser.add_argument("--quick", action="store_true", help="news20, at most a second for each fit")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md, .json and pictures")
    options = parser.parse_args()
    if options.quick:
        options.data, options.budget = ["news20"], 1.0
    points: list[Point] = []
    for name in options.data:
        data = linear_data.load(name)
        for curve in curves([name], options.figures):
            console.print(
                f"  figure {curve.figure}, {name}, C = {curve.C:g}: {curve.name}", style="dim", highlight=False
            )
            points += trace(curve, data, options.budget)
    panels = dict.fromkeys((p.figure, p.data, p.C) for p in points)
    tables = [table(points, *panel) for panel in panels]
    publish(
        "The figures of Keerthi et al. 2008", options.output, tables, notes=options.note, data=list(map(asdict, points))
    )
    if options.output:
        draw(points, options.output)


if __name__ == "__main__":
    main()
