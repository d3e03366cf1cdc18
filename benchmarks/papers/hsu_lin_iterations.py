"""Draw Table VI.5 of Hsu & Lin 2002 again: iterations of their decompositions, and our solver's steps.

Their rules are in `decomposition.py`. The table counts the rule (20) for Crammer-Singer, without a bias (17) and with a
regularised one (24); the rule of section III for Weston-Watkins (10) is counted too, for which the paper prints
nothing. What both solvers come to is compared: the dual objectives must agree.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import _path  # noqa: F401
import bars
import datasets
import decomposition
import hsu_lin
import numpy as np
from contenders import polymargin_crammer_singer, polymargin_weston_watkins
from datasets import Dataset, Parameters
from report import Cell, Table, console, number, publish

TOL = 1e-3
SIZES = {"full": datasets.LARGE, "plain": ("dna", "satimage"), "quick": ("wine", "vowel")}
WITHOUT, REGULARIZED, WW = "C-S (17)", "C-S (24)", "W-W (10)"


@dataclass(frozen=True)
class Case:
    """One dual problem of the paper: who solves it, there and here."""

    label: str
    baseline: Callable[..., decomposition.Outcome]
    machine: Callable[..., Any]
    bias: str | None
    parameters: Parameters
    tol: float


@dataclass
class Count:
    """One problem on one data set, solved by both."""

    data: str
    problem: str
    tol: float
    published: int | None
    iterations: int
    steps: int
    dual: float
    own_dual: float
    n_support: int
    own_n_support: int

    @property
    def difference(self) -> float:
        """How much lower the dual of the baseline is, relative."""
        return (self.own_dual - self.dual) / abs(self.own_dual)


def cases(data: Dataset) -> Iterator[Case]:
    """The three problems at the parameters of Table V.2; Crammer-Singer stops as early as in the paper."""
    source, relaxed = data.source, hsu_lin.RELAXED.get(data.name, TOL)
    singer = (decomposition.crammer_singer, polymargin_crammer_singer)
    yield Case(WITHOUT, *singer, None, source.crammer_singer, relaxed)
    yield Case(REGULARIZED, *singer, "regularized", source.crammer_singer, relaxed)
    watkins = (decomposition.weston_watkins, polymargin_weston_watkins)
    yield Case(WW, *watkins, "regularized", source.weston_watkins, TOL)


def published(data: str, problem: str) -> int | None:
    """The number in Table VI.5, if there is one."""
    found = hsu_lin.ITERATIONS.get(data)
    return None if found is None or problem == WW else found[problem == REGULARIZED]


def watch(label: str) -> decomposition.Watch:
    """Say now and then how far a long run is."""

    def say(iteration: int, violation: float) -> None:
        if iteration % 10_000 == 0 and iteration:
            console.print(f"  {label}: {iteration} iterations, violation {violation:.2g}", style="dim", highlight=False)

    return say


def count(data: Dataset, case: Case, threads: int) -> Count:
    """Solve one problem twice: by the paper's rule and by our solver."""
    label = f"{data.name}, {case.label}"
    console.print(f"  {label}", style="dim", highlight=False)
    classes, y = np.unique(data.y_train, return_inverse=True)
    rows = decomposition.Rows(data.X_train, case.parameters.gamma, 1.0 if case.bias else 0.0)
    found = case.baseline(rows, y, len(classes), case.parameters.C, tol=case.tol, watch=watch(label))
    model = case.machine(case.parameters, threads, bias=case.bias, tol=case.tol).fit(data.X_train, data.y_train)
    return Count(
        data=data.name,
        problem=case.label,
        tol=case.tol,
        published=published(data.name, case.label),
        iterations=found.iterations,
        steps=int(model.n_iter_),
        dual=found.dual,
        own_dual=float(model.dual_objective_),
        n_support=found.n_support,
        own_n_support=len(model.support_),
    )


def iteration_table(counts: list[Count]) -> Table:
    """Table VI.5: published, counted again, and what adding the bias costs."""
    columns = ["data set", "(17), published", "(17), again", "(24), published", "(24), again"]
    table = Table("Table VI.5: iterations of Crammer-Singer by the rule (20)", columns)
    table.columns += ["(24) / (17), published", "(24) / (17), again"]
    for name in dict.fromkeys(one.data for one in counts):
        of = {one.problem: one for one in counts if one.data == name}
        pair = of[WITHOUT], of[REGULARIZED]
        cells = [number(value, "d") for one in pair for value in (one.published, one.iterations)]
        ratios = (
            pair[1].published / pair[0].published if pair[0].published else None,
            pair[1].iterations / pair[0].iterations,
        )
        table.rows.append([Cell(name), *cells, *(number(ratio, ".2f") for ratio in ratios)])
    return table


def agreement_table(counts: list[Count]) -> Table:
    """Both solvers beside each other."""
    columns = ["data set", "problem", "tol", "iterations, their rule", "steps, polymargin"]
    columns += ["SVs, theirs", "SVs, polymargin", "dual, theirs", "dual, polymargin", "theirs short by"]
    table = Table("Iterations of the papers' rules and steps of our solver", columns)
    table.note = (
        "An iteration of theirs looks at all variables to choose the worst example (C-S) or ten variables (W-W), and "
        "updates the whole gradient. A step of ours is an exact step on one example inside a block; the whole gradient "
        "is updated once a block. So the counts compare exact steps, not costs. Duals are maximised; "
        f"they must agree to {bars.BASELINE_RELATIVE:g} where tol is {TOL:g}."
    )
    for one in counts:
        ok = abs(one.difference) <= bars.BASELINE_RELATIVE if one.tol <= TOL else None
        numbers = (one.iterations, one.steps, one.n_support, one.own_n_support)
        duals = [number(one.dual, ".9g"), number(one.own_dual, ".9g"), number(one.difference, ".1e", ok)]
        labels = [Cell(one.data), Cell(one.problem), Cell(f"{one.tol:g}")]
        table.rows.append([*labels, *(number(value, "d") for value in numbers), *duals])
    return table


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=datasets.LARGE + tuple(datasets.SMALL))
    parser.add_argument("--threads", type=int, default=2, help="of polymargin")
    parser.add_argument("--full", action="store_true", help="also letter and shuttle: allow an hour")
    parser.add_argument("--quick", action="store_true", help="two small data sets that are not in the table")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    size = "quick" if options.quick else "full" if options.full else "plain"
    data = [datasets.load(name) for name in options.data or SIZES[size]]
    counts = [count(one, case, options.threads) for one in data for case in cases(one)]
    publish(
        "Iterations of Hsu & Lin's decompositions",
        options.output,
        [iteration_table(counts), agreement_table(counts)],
        data=[asdict(one) for one in counts],
    )


if __name__ == "__main__":
    main()
