"""Same answers: pairwise decisions, labels, objectives and support vectors beside scikit-learn's.

Also the test rates beside those that Hsu & Lin published. Without polymargin only scikit-learn's own columns
are filled.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import bars
import datasets
import numpy as np
from contenders import (
    polymargin_available,
    polymargin_one_vs_one,
    polymargin_one_vs_rest,
    scikit_learn_svc,
)
from datasets import Dataset
from dual import recompute
from numpy.typing import NDArray
from report import Cell, Table, console, number, publish
from sklearn.multiclass import OneVsRestClassifier

COLUMNS = [
    "data set",
    "tol",
    "max decision difference",
    "equal labels",
    "dual, scikit-learn",
    "dual, polymargin",
    "dual short by",
    "reported / recomputed - 1",
    "SVs, scikit-learn",
    "SVs, polymargin",
]
NOTE = (
    "Differences over all pairs and test rows. Dual short by: relative, positive if polymargin's (reported) "
    "is lower. Both duals are maximised; scikit-learn's is recomputed from its coefficients."
)


@dataclass
class Answer:
    """What a fitted machine says, in comparable form."""

    decisions: NDArray
    labels: NDArray
    dual: float
    recomputed: float | None
    n_support: int


def reference_answer(data: Dataset, tol: float) -> Answer:
    """scikit-learn's; its pairwise decisions are positive for the first class of a pair, like ours."""
    p = data.source.one_vs_one
    model = scikit_learn_svc(p, tol=tol, decision_function_shape="ovo").fit(data.X_train, data.y_train)
    dual = recompute(model, data.X_train, data.y_train, p.gamma)
    decisions = model.decision_function(data.X_test)
    return Answer(decisions, model.predict(data.X_test), dual, dual, len(model.support_))


def own_answer(data: Dataset, tol: float, threads: int) -> Answer:
    """polymargin's; the dual that it reports, and the same recomputed if the layout allows it."""
    p = data.source.one_vs_one
    model = polymargin_one_vs_one(p, threads, tol=tol).fit(data.X_train, data.y_train)
    recomputed = recompute(model, data.X_train, data.y_train, p.gamma)
    decisions = model.pairwise_decision_function(data.X_test)
    return Answer(decisions, model.predict(data.X_test), model.dual_objective_, recomputed, len(model.support_))


def audit(ours: Answer) -> Cell:
    """How far the reported dual is from what the coefficients say."""
    if ours.recomputed is None:
        return number(None)
    off = ours.dual / ours.recomputed - 1
    return number(off, ".1e", abs(off) <= bars.DUAL_RELATIVE)


def agreement_cells(reference: Answer, ours: Answer, tol: float) -> list[Cell]:
    """One row of judged numbers."""
    difference = float(np.abs(reference.decisions - ours.decisions).max())
    equal = float((reference.labels == ours.labels).mean())
    short = (reference.dual - ours.dual) / abs(reference.dual)
    close = abs(ours.n_support - reference.n_support) <= bars.SUPPORT_RELATIVE * reference.n_support
    return [
        number(difference, ".1e", difference <= bars.TOLERANCES[tol]),
        number(100 * equal, ".3f", equal >= bars.EQUAL_LABELS),
        number(reference.dual, ".9g"),
        number(ours.dual, ".9g"),
        number(short, ".1e", short <= bars.DUAL_RELATIVE),
        audit(ours),
        number(reference.n_support, "d"),
        number(ours.n_support, "d", close),
    ]


def lonely_cells(reference: Answer) -> list[Cell]:
    """The row when polymargin cannot be imported."""
    none = number(None)
    dual, count = number(reference.dual, ".9g"), number(reference.n_support, "d")
    return [none, none, dual, none, none, none, count, none]


def agreement_table(data: list[Dataset], tols: list[float], threads: int) -> Table:
    """Fit both at each tolerance and compare."""
    table = Table("Same answers as scikit-learn's SVC", COLUMNS, note=NOTE)
    for one in data:
        for tol in tols:
            console.print(f"  {one.name}, tol {tol:g}", style="dim", highlight=False)
            reference = reference_answer(one, tol)
            cells = (
                agreement_cells(reference, own_answer(one, tol, threads), tol)
                if polymargin_available()
                else lonely_cells(reference)
            )
            table.rows.append([Cell(one.name), Cell(f"{tol:g}"), *cells])
    return table


def machines(data: Dataset, threads: int) -> dict[str, Any]:
    """The machines of Table V.2 that exist so far; scikit-learn's where ours cannot be imported."""
    pair, rest = data.source.one_vs_one, data.source.one_vs_rest
    if not polymargin_available():
        return {
            "votes": scikit_learn_svc(pair),
            "one_vs_rest": OneVsRestClassifier(scikit_learn_svc(rest)),
        }
    return {
        "votes": polymargin_one_vs_one(pair, threads, decision="votes"),
        "dag": polymargin_one_vs_one(pair, threads, decision="dag"),
        "one_vs_rest": polymargin_one_vs_rest(rest, threads),
    }


def rate_table(data: list[Dataset], threads: int) -> Table:
    """Test rates beside the published ones."""
    whose = "polymargin" if polymargin_available() else "scikit-learn"
    table = Table(f"Test rates of Hsu & Lin 2002, Table V.2, per cent ({whose})", ["data set", "machine"])
    table.columns += ["rate", "published"]
    for one in data:
        console.print(f"  {one.name}, rates", style="dim", highlight=False)
        published = bars.PUBLISHED[one.name]
        for name, machine in machines(one, threads).items():
            rate = 100 * machine.fit(one.X_train, one.y_train).score(one.X_test, one.y_test)
            paper = getattr(published, name)
            # a rate is a multiple of one test row; rounding in print must not decide
            judged = number(rate, ".3f", abs(rate - paper) <= bars.RATE_POINTS + 1e-9)
            table.rows.append([Cell(one.name), Cell(name), judged, number(paper, ".3f")])
    return table


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=datasets.SOURCES, default=list(datasets.SIX))
    parser.add_argument("--tight", action="store_true", help="also at tol 1e-6")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    data = [datasets.load(name) for name in options.data]
    tols = list(bars.TOLERANCES) if options.tight else [1e-3]
    tables = [
        agreement_table(data, tols, options.threads),
        rate_table([one for one in data if one.name in bars.PUBLISHED], options.threads),
    ]
    publish("Agreement", options.output, tables)


if __name__ == "__main__":
    main()
