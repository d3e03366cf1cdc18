"""The comparison as one HTML page that needs no other file and no network."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING

from polymargin.comparison.figures import bars, confusion_maps, heat_maps, rate_marks, regions
from polymargin.comparison.markup import Child, Element, element, rendered
from polymargin.comparison.report import (
    header,
    meaning_of_rate,
    python_call,
    remarks,
    rows,
    shown_count,
    shown_rate,
    shown_seconds,
    summary,
)
from polymargin.support.numeric import OPEN_GAP

if TYPE_CHECKING:
    from polymargin.comparison.result import Comparison

_LEFT = ("machine", "against the best")


def page(comparison: Comparison) -> str:
    """Return the page."""
    title = f"{comparison.data['name']}: multi-class support vector machines compared"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", files("polymargin.comparison").joinpath("report.css").read_text(encoding="utf-8")),
    )
    sections = [
        _top(comparison),
        _short(comparison),
        _section("The machines", _table(comparison), _list(remarks(comparison), "notes")),
        _rates(comparison),
        _costs(comparison),
        _grids(comparison),
        _confusions(comparison),
        _plane(comparison),
        _tests(comparison),
        _reading(comparison),
        _repeating(comparison),
    ]
    body = element("body", element("main", sections), element("footer", _made_by(comparison)))
    return "<!DOCTYPE html>\n" + rendered(element("html", head, body, lang="en")) + "\n"


# The sections, from the top.


def _top(comparison: Comparison) -> Element:
    return element(
        "header",
        element("p", "Multi-class support vector machines, side by side", class_="kicker"),
        element("h1", comparison.data["name"]),
        element("p", f"{summary(comparison)}."),
    )


def _short(comparison: Comparison) -> Element:
    """The answer first: which differences count, and who leads in what."""
    done = [result for result in comparison.results if result.done]
    cards = []
    for title, key, shown, largest in (
        ("highest rate", "rate", shown_rate, True),
        ("shortest training", "train_seconds", shown_seconds, False),
        ("fewest support vectors", "unique_svs", shown_count, False),
    ):
        known = [(getattr(result, key), result.name) for result in done if getattr(result, key) is not None]
        if not known:
            continue
        value = (max if largest else min)(number for number, _ in known)
        leaders = [name for number, name in known if abs(number - value) < 1e-12]
        who = ", ".join(leaders) if len(leaders) <= 3 else f"{len(leaders)} of {len(known)} machines"
        cards.append(
            element(
                "div",
                element("p", title, class_="kicker"),
                element("p", shown(value), class_="big"),
                element("p", who),
                class_="card",
            )
        )
    said = [element("p", sentence) for sentence in comparison.verdict]
    verdict = element("div", element("p", "what the rates say", class_="kicker"), said, class_="card verdict")
    return element("section", verdict, element("div", cards, class_="cards"))


def _table(comparison: Comparison) -> Element:
    names = header(comparison)
    standing = {row["machine"]: row["against_best"] or "" for row in comparison.table}
    head = element("tr", [element("th", name, scope="col", class_=_side(name)) for name in names])
    lines = []
    for result, row in zip(comparison.results, rows(comparison), strict=True):
        kind = "missing" if not result.done else standing[result.name].split(",")[0].replace(" ", "-")
        first = element("th", row[0], scope="row", title=result.estimator)
        cells = [
            element("td", text, class_=_side(name), data_label=name)
            for name, text in zip(names[1:], row[1:], strict=True)
        ]
        if result.gap is not None and result.gap > OPEN_GAP:
            cells[-1].set("class", f"{_side(names[-1])} open")
        lines.append(element("tr", first, cells, class_=kind))
    table = element("table", element("thead", head), element("tbody", lines))
    return element("div", table, class_="wide")


def _rates(comparison: Comparison) -> Element | None:
    marks = rate_marks(comparison)
    return None if marks is None else _section("Rates", element("p", meaning_of_rate(comparison)), marks)


def _costs(comparison: Comparison) -> Element | None:
    results = comparison.results
    figures = [
        bars("Training, at the best parameters", results, lambda r: r.train_seconds, shown_seconds),
        bars(
            "Testing" if comparison.data["n_test"] is not None else "Predicting every fold",
            results,
            lambda r: r.test_seconds,
            shown_seconds,
        ),
        bars("Unique support vectors", results, lambda r: r.unique_svs, shown_count),
        bars("Non-zero coefficients", results, lambda r: r.coefficients, shown_count),
    ]
    shown = [figure for figure in figures if figure is not None]
    return _section("What they cost", element("div", shown, class_="pairs")) if shown else None


def _grids(comparison: Comparison) -> Element | None:
    maps = heat_maps(comparison)
    if not maps:
        return None
    text = "The rate of every candidate, all machines on one scale. The ring is the one that was chosen."
    return _section("The grid", element("p", text), element("div", maps[:-1], class_="many"), maps[-1])


def _confusions(comparison: Comparison) -> Element | None:
    maps = confusion_maps(comparison)
    if not maps:
        return None
    text = "Rows are the true classes, columns what they were called. Blue is right, orange wrong."
    return _section("Who is taken for whom", element("p", text), element("div", maps, class_="many"))


def _plane(comparison: Comparison) -> Element | None:
    pictures = regions(comparison)
    if pictures:
        text = "What each machine decides in the plane. Support vectors are ringed, errors crossed."
        return _section("Regions", element("p", text), element("div", pictures, class_="many"))
    if comparison.data["n_features"] != 2 or not comparison.models:
        return None
    return _section("Regions", element("p", "matplotlib draws them here: pip install 'polymargin[plots]'."))


def _tests(comparison: Comparison) -> Element | None:
    significance = comparison.significance
    if not significance.pairs:
        return None
    heads = ("machines", "difference", "p", "p corrected")
    head = element("tr", [element("th", text, scope="col", class_=_side(text)) for text in heads])
    lines = [
        element(
            "tr",
            element("th", f"{pair.better} over {pair.worse}", scope="row"),
            element("td", f"{100 * abs(pair.difference):.2f} %", class_="number", data_label=heads[1]),
            element("td", f"{pair.p_value:.3g}", class_="number", data_label=heads[2]),
            element("td", f"{pair.corrected:.3g}", class_="number", data_label=heads[3]),
            class_="significant" if pair.corrected <= significance.level else None,
        )
        for pair in sorted(significance.pairs, key=lambda pair: (pair.corrected, -abs(pair.difference)))
    ]
    table = element("div", element("table", element("thead", head), element("tbody", lines)), class_="wide")
    found = len(significance.significant())
    title = f"All {len(lines)} pairs, {found or 'none'} of them significant at level {significance.level:g}"
    return _section("The tests", element("details", element("summary", title), table))


def _reading(comparison: Comparison) -> Element:
    folds = comparison.data["n_test"] is None
    test = (
        "Wilcoxon's signed-rank test compares the rates of two machines fold by fold. Folds share most of their "
        "training examples, so its p-values are somewhat too small: what it calls chance is chance, what it calls "
        "significant deserves a test set."
        if folds
        else "McNemar's test counts the test examples that one machine has right and the other wrong, and asks how "
        "often a fair coin would divide them so unevenly."
    )
    entries = {
        "rate": meaning_of_rate(comparison),
        "against the best": f"{test} Holm's correction accounts for the number of pairs. “No difference” means that "
        "the data do not show one, not that there is none.",
        "train, test": "The shortest of up to three runs on the computer named below, at the parameters chosen. "
        + ("Testing is predicting every fold once. " if folds else "")
        + "They depend on the parameters: machines with different ones did different work. Differences of some ten "
        "percent are noise.",
        "unique SVs": "Training examples with a non-zero coefficient anywhere. Each costs one kernel value for every "
        "prediction, so few of them predict fast.",
        "coefficients": "Non-zero dual coefficients: the size of the model beside its support vectors.",
        "gap": "Relative difference of the primal and the dual objective: how far, at most, the answer is from the "
        "optimum. It is summed over the binary problems where there are several.",
        "best parameters": "The candidate with the highest validation rate; of equals the one with the smallest C, "
        "then the smallest gamma. At the edge of the grid a better one may lie beyond.",
    }
    terms: list[Child] = []
    for term, text in entries.items():
        terms += [element("dt", term), element("dd", text)]
    paper = (
        "The experiment follows C.-W. Hsu and C.-J. Lin, “A comparison of methods for multiclass support vector "
        "machines”, IEEE Transactions on Neural Networks 13(2), 2002, doi:10.1109/72.991427."
    )
    return _section("How to read it", element("dl", terms), element("p", paper))


def _repeating(comparison: Comparison) -> Element:
    command = comparison.settings["command"]
    parts = [element("p", "On the command line:"), element("pre", element("code", command))] if command else []
    grid = "; ".join(f"{name}: {', '.join(map(str, values))}" for name, values in comparison.settings["grid"].items())
    facts = {"grid": grid, **comparison.environment}
    lines = [element("tr", element("th", key, scope="row"), element("td", value)) for key, value in facts.items()]
    return _section(
        "To repeat it",
        *parts,
        element("p", "In Python:"),
        element("pre", element("code", python_call(comparison))),
        element("table", element("tbody", lines), class_="facts"),
    )


def _made_by(comparison: Comparison) -> str:
    environment = comparison.environment
    return f"Made by polymargin {environment['polymargin']} on {environment['date']}."


# Parts.


def _section(title: str, *children: Child | Iterable[Child]) -> Element:
    return element("section", element("h2", title), *children)


def _list(sentences: list[str], class_: str) -> Element | None:
    return element("ul", [element("li", text) for text in sentences], class_=class_) if sentences else None


def _side(name: str) -> str | None:
    return None if name in (*_LEFT, "machines") else "number"
