"""The figures of the HTML report: marks placed by style sheets, so that they fit any width, and drawings as SVG.

Colours are variables of the style sheet, which has them for light and dark pages, but for those of the heat maps.
"""

from __future__ import annotations

import base64
import io
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polymargin.comparison.markup import Element, element
from polymargin.comparison.report import shown_name, shown_parameter, shown_rate

if TYPE_CHECKING:
    from polymargin.comparison.result import Comparison, MachineResult

# From dark blue to yellow with lightness rising evenly: told apart with every colour deficiency, and in print.
HEAT = ((0, 32, 77), (50, 71, 107), (101, 105, 112), (149, 143, 120), (203, 186, 105), (255, 234, 70))
_SIDE = 300  # of a drawing, in its own units
_CLASSES_WITH_NUMBERS = 12
_MOST_CLASSES = 60


# Marks on a line.


def bars(title: str, results: Sequence[MachineResult], value: Callable[[Any], Any], shown: Callable[[Any], str]) -> Any:
    """Return horizontal bars from zero, a value beside each; None if there are none."""
    known = [(result.name, value(result)) for result in results if result.done and value(result) is not None]
    largest = max((number for _, number in known), default=0)
    if not known or largest <= 0:
        return None
    lines = [
        element(
            "div",
            element("span", name, class_="label"),
            element("span", element("i", style=f"width:{100 * number / largest:.2f}%"), class_="bar"),
            element("span", shown(number), class_="value"),
            class_="line",
        )
        for name, number in known
    ]
    return element("figure", element("figcaption", title), lines, class_="bars")


def rate_marks(comparison: Comparison) -> Any:
    """Return the rate of each machine with its folds, or with the interval that the size of the test set leaves."""
    done = [result for result in comparison.results if result.done and result.rate is not None]
    n_test = comparison.data["n_test"]
    if not done:
        return None
    spans = [
        wilson(result.rate or 0.0, n_test) if n_test else (min(result.fold_rates), max(result.fold_rates))
        for result in done
    ]
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    low, high = _widened(low, high)

    def place(rate: float) -> str:
        return f"left:{100 * (rate - low) / (high - low):.2f}%"

    lines = []
    for result, span in zip(done, spans, strict=True):
        extent = f"{place(span[0])};width:{100 * (span[1] - span[0]) / (high - low):.2f}%"
        counts = Counter(round(rate, 9) for rate in result.fold_rates)  # equal folds make a larger dot
        sizes = {rate: f"{place(rate)};--folds:{math.sqrt(count):.2f}" for rate, count in counts.items()}
        dots = [element("i", class_="dot", style=style) for style in sizes.values()]
        mean = element("i", class_="mean", style=place(result.rate or 0.0))
        track = element("span", element("i", class_="span", style=extent), dots, mean, class_="track")
        lines.append(
            element(
                "div",
                element("span", result.name, class_="label"),
                track,
                element("span", shown_rate(result.rate), class_="value"),
                class_="line",
            )
        )
    ends = element("span", element("b", shown_rate(low)), element("b", shown_rate(high)), class_="ends")
    axis = element("div", element("span", class_="label"), ends, element("span", class_="value"), class_="line")
    caption = (
        "Rate on the test set, with the 95 % interval of Wilson"
        if n_test
        else "Rates of the folds (a larger dot is several of them) and their mean (bar)"
    )
    return element("figure", element("figcaption", caption), lines, axis, class_="marks")


def wilson(rate: float, count: int, z: float = 1.959964) -> tuple[float, float]:
    """Return Wilson's interval of a rate among ``count`` trials."""
    middle = (rate + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def _widened(low: float, high: float) -> tuple[float, float]:
    padding = 0.06 * (high - low) or 0.01
    return max(0.0, low - padding), min(1.0, high + padding)


# Heat maps of the grid.


def heat_maps(comparison: Comparison) -> list[Element]:
    """Return a map of the grid for each machine whose candidates have two parameters, all on one scale."""
    mapped = [r for r in comparison.results if r.done and r.candidates and len(r.candidates[0]["parameters"]) == 2]
    rates = [c["rate"] for r in mapped for c in r.candidates if c["rate"] is not None]
    if not rates:
        return []
    high = max(rates)
    low = float(np.quantile(rates, 0.25))  # the rest of the scale is for those that matter
    low = low if low < high else min(rates)
    return [_heat_map(result, low, high) for result in mapped] + [_heat_scale(low, high)]


def _heat_map(result: MachineResult, low: float, high: float) -> Element:
    down, across = list(result.candidates[0]["parameters"])
    values = {name: _in_order(c["parameters"][name] for c in result.candidates) for name in (across, down)}
    left, top, right, bottom = 46.0, 8.0, 8.0, 42.0
    width = (_SIDE - left - right) / len(values[across])
    height = (_SIDE - top - bottom) / len(values[down])
    cells = []
    for candidate in result.candidates:
        x = left + width * values[across].index(candidate["parameters"][across])
        y = _SIDE - bottom - height * (1 + values[down].index(candidate["parameters"][down]))
        said = ", ".join(f"{shown_name(n)} = {shown_parameter(v)}" for n, v in candidate["parameters"].items())
        rate = candidate["rate"]
        chosen = candidate["parameters"] == result.parameters
        color = heat((rate - low) / (high - low) if high > low else 1.0) if rate is not None else "none"
        title = element("title", f"{said}: {shown_rate(rate)}")
        cells.append(_rect(x, y, width - 1, height - 1, title, fill=color, class_=None if rate is not None else "none"))
        if chosen:
            radius = min(width, height) / 3.2
            mark = {"cx": f"{x + width / 2 - 0.5:.1f}", "cy": f"{y + height / 2 - 0.5:.1f}", "r": f"{radius:.1f}"}
            cells.append(element("circle", class_="chosen", **mark))
    ticks = [
        _word(left + width * (at + 0.5), _SIDE - bottom + 14, shown_parameter(value), "middle")
        for at, value in _some(values[across], 8)
    ]
    ticks += [
        _word(left - 6, _SIDE - bottom - height * (at + 0.5) + 4, shown_parameter(value), "end")
        for at, value in _some(values[down], 8)
    ]
    names = [_word((left + _SIDE - right) / 2, _SIDE - 8, shown_name(across), "middle", "name")]
    names.append(_word(10, (top + _SIDE - bottom) / 2 + 4, shown_name(down), "middle", "name"))
    said = f"{result.name}: {shown_rate(result.validation_rate)} at the ring"
    return _drawing(result.name, f"Rates of all candidates of {said}", [*cells, *ticks, *names])


def _heat_scale(low: float, high: float) -> Element:
    stops = ", ".join(f"rgb{color}" for color in HEAT)
    return element(
        "div",
        element("span", f"{shown_rate(low)} or less"),
        element("span", class_="scale", style=f"background:linear-gradient(to right, {stops})"),
        element("span", shown_rate(high)),
        class_="legend",
    )


def heat(share: float) -> str:
    """Return the colour of a number from 0 to 1."""
    at = min(max(share, 0.0), 1.0) * (len(HEAT) - 1)
    below = min(int(at), len(HEAT) - 2)
    mixed = (round(a + (at - below) * (b - a)) for a, b in zip(HEAT[below], HEAT[below + 1], strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _in_order(values: Any) -> list[Any]:
    distinct = list(dict.fromkeys(values))
    numbers = all(isinstance(value, int | float) for value in distinct)
    return sorted(distinct) if numbers else distinct


def _some(values: list[Any], most: int) -> list[tuple[int, Any]]:
    """Return some of the values with their numbers, evenly spread, so that labels have room."""
    step = -(-len(values) // most)
    return list(enumerate(values))[::step]


# Confusion matrices.


def confusion_maps(comparison: Comparison) -> list[Element]:
    """Return for each machine how many of each class were called each, errors in a colour of their own."""
    classes = comparison.data["classes"]
    if len(classes) > _MOST_CLASSES:
        return []
    return [_confusion_map(result, classes) for result in comparison.results if result.done and result.confusion]


def _confusion_map(result: MachineResult, classes: list[str]) -> Element:
    names = [name if len(name) <= 9 else name[:8] + "…" for name in classes]
    numbered = len(classes) <= _CLASSES_WITH_NUMBERS
    left = 16.0 + 6.4 * max(len(name) for name in names)
    bottom, top, right = 40.0, 8.0, 8.0
    width, height = (_SIDE - left - right) / len(classes), (_SIDE - top - bottom) / len(classes)
    drawn: list[Element] = []
    for i, counts in enumerate(result.confusion):
        total = max(1, sum(counts))
        for j, count in enumerate(counts):
            x, y = left + width * j, top + height * i
            said = f"{count} of {total} of class {classes[i]} called {classes[j]}"
            kind = "right" if i == j else "wrong"
            # An error is seen even when it is one of thousands.
            strength = count / total if i == j else (0.25 + 0.75 * math.sqrt(count / total) if count else 0.0)
            style = {"class_": kind, "fill_opacity": f"{strength:.2f}"}
            drawn.append(_rect(x, y, width - 1, height - 1, element("title", said), **style))
            if numbered and count:
                strong = " strong" if strength > 0.55 else ""
                drawn.append(_word(x + width / 2, y + height / 2 + 4, f"{count}", "middle", f"count{strong}"))
    for at, name in _some(names, 12):
        drawn.append(_word(left - 6, top + height * (at + 0.5) + 4, name, "end"))
        short = name if 6.4 * len(name) < width * -(-len(names) // 12) else name[:3]
        drawn.append(_word(left + width * (at + 0.5), _SIDE - bottom + 14, short, "middle"))
    drawn.append(_word((left + _SIDE - right) / 2, _SIDE - 8, "called", "middle", "name"))
    errors = sum(sum(row) for row in result.confusion) - sum(row[i] for i, row in enumerate(result.confusion))
    return _drawing(f"{result.name}: {errors} errors", f"Confusion matrix of {result.name}", drawn)


# Regions in the plane.


def regions(comparison: Comparison) -> list[Element]:
    """Return pictures of what the machines decide, if the examples have two features and matplotlib is there."""
    if comparison.plane is None or not comparison.models:
        return []
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    from polymargin.plots import decision_regions

    X, y = comparison.plane
    pictures = []
    for name, model in comparison.models.items():
        figure = Figure(figsize=(4, 3.4), dpi=110, layout="constrained")
        decision_regions(model, X, y, ax=figure.subplots(), resolution=200, legend=False)
        file = io.BytesIO()
        figure.savefig(file, format="png")
        source = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
        image = element("img", src=source, alt=f"Regions of {name} in the plane")
        pictures.append(element("figure", element("figcaption", name), image, class_="picture"))
    return pictures


# Parts of drawings.


def _drawing(caption: str, label: str, parts: list[Element]) -> Element:
    svg = element("svg", parts, viewBox=f"0 0 {_SIDE} {_SIDE}", role="img", aria_label=label)
    return element("figure", element("figcaption", caption), svg, class_="drawing")


def _rect(x: float, y: float, width: float, height: float, *children: Element, **attributes: Any) -> Element:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{max(width, 0.5):.1f}", "height": f"{max(height, 0.5):.1f}"}
    return element("rect", children, **place, **attributes)


def _word(x: float, y: float, text: str, anchor: str, class_: str | None = None) -> Element:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=class_)
