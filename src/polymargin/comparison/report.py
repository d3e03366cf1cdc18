"""The comparison in words and tables: what all reports have in common, Markdown, and the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from polymargin.support.numeric import gap_style

if TYPE_CHECKING:
    from polymargin.comparison.result import Comparison, MachineResult

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_GREEK = {"gamma": "\N{GREEK SMALL LETTER GAMMA}"}
NOTHING = "\N{EN DASH}"


_NARROW = {
    "rate": "rate %",
    "against the best": "vs best",
    "unique SVs": "SVs",
    "coefficients": "coefs",
}  # in a terminal


# Numbers.


def shown_parameter(value: Any) -> str:
    """Return a value of the grid; powers of two, which grids are made of, as such."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        exponent = math.log2(value)
        if exponent.is_integer() and abs(exponent) > 1:
            return f"2{str(int(exponent)).translate(_RAISED)}"
        return f"{value:.4g}"
    return str(value)


def shown_rate(rate: float | None) -> str:
    """Return a rate in percent."""
    return NOTHING if rate is None else f"{100 * rate:.2f} %"


def shown_seconds(seconds: float | None) -> str:
    """Return a time with its unit, to two digits: more would be noise."""
    if seconds is None:
        return NOTHING
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (120.0, 1.0, "s")):
        if seconds < limit:
            number = seconds * factor
            return f"{number:.2g} {unit}" if number < 99.5 else f"{number:.0f} {unit}"
    return f"{seconds / 60:.1f} min"


def shown_count(count: int | None) -> str:
    """Return a number of things."""
    return NOTHING if count is None else f"{count:,}"


def shown_gap(gap: float | None) -> str:
    """Return a relative gap; rounding may leave 1e-16 or nothing, which is the same."""
    return NOTHING if gap is None else f"{gap:.0e}" if gap > 1e-15 else "<1e-15"


def shown_name(parameter: str) -> str:
    """Return the name of a parameter as formulas have it."""
    return _GREEK.get(parameter, parameter)


# The table.


def parameter_names(comparison: Comparison) -> list[str]:
    """Return the parameters of the grid."""
    return list(comparison.settings["grid"])


def header(comparison: Comparison) -> list[str]:
    """Return the names of the columns: those of Tables V.2 and V.3 of the paper and a few more."""
    names = ", ".join(shown_name(name) for name in parameter_names(comparison))
    columns = ["machine", f"best {names}", "rate", "against the best", "train", "test", "unique SVs"]
    return [*columns, "coefficients", "gap"]


def rows(comparison: Comparison) -> list[list[str]]:
    """Return the texts of the table, a row for each machine."""
    standing = {row["machine"]: row["against_best"] for row in comparison.table}
    return [_row(result, parameter_names(comparison), standing[result.name]) for result in comparison.results]


def _row(result: MachineResult, names: list[str], standing: str | None) -> list[str]:
    if not result.done:
        return [result.name, NOTHING, result.status, *[NOTHING] * 6]
    parameters = [shown_parameter(result.parameters[name]) for name in names if name in result.parameters]
    return [
        result.name,
        ", ".join(parameters) or NOTHING,
        shown_rate(result.rate),
        standing or NOTHING,
        shown_seconds(result.train_seconds),
        shown_seconds(result.test_seconds),
        shown_count(result.unique_svs),
        shown_count(result.coefficients),
        shown_gap(result.gap),
    ]


# Sentences.


def summary(comparison: Comparison) -> str:
    """Return in one line what was compared on what."""
    data, settings = comparison.data, comparison.settings
    sizes = f"{data['n_train']:,} examples"
    if data["n_test"] is not None:
        sizes += f" to train and {data['n_test']:,} to test"
    candidates = math.prod(len(values) for values in settings["grid"].values())
    scaling = {"range": ", features scaled to [-1, 1]", "standard": ", features standardised", None: ""}
    return (
        f"{sizes}, {data['n_features']:,} features, {len(data['classes'])} classes{scaling[settings['scaling']]}; "
        f"{settings['validation']}, {candidates} candidates for each machine"
    )


def remarks(comparison: Comparison) -> list[str]:
    """Return what else is to be known: what did not run and why, what was warned of, what to try."""
    said = []
    if comparison.interrupted:
        said.append("Interrupted: only the machines with figures were done.")
    said += [f"{r.name}: {r.reason}" for r in comparison.results if not r.done and r.status != "interrupted"]
    by_note: dict[str, list[str]] = {}
    for result in comparison.results:
        for note in result.notes:
            by_note.setdefault(note, []).append(result.name)
    said += [f"{', '.join(names)}: {note}" for note, names in by_note.items()]
    return said + list(comparison.data["notes"])


def meaning_of_rate(comparison: Comparison) -> str:
    """Say what the rates are, and what they are not."""
    meaning = _meaning_of_costs(comparison)
    if comparison.data["n_test"] is not None:
        return meaning + "Rates are those on the test set, which had no part in choosing parameters."
    return (
        f"{meaning}Rates are means over the folds that also chose the parameters, as in the paper: they flatter all "
        "machines alike, and are no estimate for new data."
    )


def _meaning_of_costs(comparison: Comparison) -> str:
    scoring = comparison.settings.get("scoring")
    if scoring is None:
        return ""
    largest = max(map(max, scoring["costs"]))
    return f"The rate is 1 - mean cost / {largest:g}: the share of the largest cost that is saved. "


def python_call(comparison: Comparison) -> str:
    """Return the Python code that repeats the comparison."""
    settings = comparison.settings
    test = "" if comparison.data["n_test"] is None else ", X_test, y_test"
    arguments = {"machines": settings["machines"]}
    arguments["grid"] = settings["grid_name"] or settings["grid"]
    if settings["holdout"] is None:
        arguments["cv"] = settings["cv"]
    for name in ("holdout", "kernel", "scaling", "time_limit", "n_jobs", "random_state"):
        arguments[name] = settings[name]
    if not test:
        del arguments["holdout"]
    load = f"{settings['load']}\n" if settings["load"] else ""
    listed = "".join(f"    {name}={value!r},\n" for name, value in arguments.items())
    imports = "from polymargin import compare\n"
    if settings.get("scoring") is not None:
        imports += "from polymargin.costs import make_cost_scorer\n"
        listed += f"    scoring=make_cost_scorer({settings['scoring']['costs']!r}),\n"
    return f"{imports}\n{load}comparison = compare(\n    X, y{test},\n{listed})\n"


# The reports.


def markdown(comparison: Comparison) -> str:
    """Return the table, the verdict and the remarks."""
    heads = header(comparison)
    lines = [f"# {_escaped(comparison.data['name'])}", "", f"{summary(comparison)}.", ""]
    lines.append(f"| {' | '.join(heads)} |")
    lines.append("|---|---|" + "---:|" + "---|" + "---:|" * (len(heads) - 4))
    lines += [f"| {' | '.join(_escaped(text) for text in row)} |" for row in rows(comparison)]
    lines += ["", *[f"{sentence}" for sentence in comparison.verdict], meaning_of_rate(comparison)]
    said = remarks(comparison)
    if said:
        lines += ["", *[f"- {_escaped(sentence)}" for sentence in said]]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def terminal(comparison: Comparison, console: Any) -> None:
    """Print the table, the verdict and the remarks with rich."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    console.print(Text(comparison.data["name"], style="bold"), Text(f": {summary(comparison)}"), sep="")
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for name in header(comparison):
        side: Any = "left" if name in ("machine", "against the best") else "right"
        table.add_column(_NARROW.get(name, name.removeprefix("best ")), justify=side, no_wrap=True)
    for result, row in zip(comparison.results, rows(comparison), strict=True):
        style = "dim" if not result.done else "bold" if row[3] == "best" else ""
        row[2] = row[2].removesuffix(" %")
        row[3] = row[3].split(",")[0].replace("difference", "diff")  # the p-value is in the verdict
        cells = [Text(cell) for cell in row]
        cells[-1].stylize(gap_style(result.gap))
        table.add_row(*cells, style=style)
    console.print(table)
    console.print()
    for sentence in [*comparison.verdict, meaning_of_rate(comparison)]:
        console.print(Text(sentence))
    for sentence in remarks(comparison):
        console.print(Text(f"note: {sentence}"), style="dim")
