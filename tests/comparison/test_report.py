"""Reports: everything measured is in them, they stand alone, and JSON gives back what it was given."""

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from reference.data import random_classes
from rich.console import Console

from polymargin import Comparison, compare
from polymargin.comparison.figures import HEAT, heat, wilson
from polymargin.comparison.markup import element, rendered
from polymargin.comparison.report import (
    shown_count,
    shown_gap,
    shown_parameter,
    shown_rate,
    shown_seconds,
    terminal,
)

GRID = {"C": [1.0, 8.0, 64.0], "gamma": [0.05, 0.5]}
MACHINES = ["one-against-one", "DAG", "Weston-Watkins", "Crammer-Singer"]
VOID = {"meta", "img", "br", "link", "input"}


class Outline(HTMLParser):
    """Collects tags, attributes and text, and checks that tags close in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.text.append(text)


@pytest.fixture(scope="module")
def on_folds():
    X, y = random_classes(3, n=90, n_features=4, seed=1)
    return compare(X, y, machines=MACHINES, grid=GRID, cv=4, name="some <data>")


@pytest.fixture(scope="module")
def on_test():
    X, y = random_classes(4, n=160, n_features=2, seed=3)
    return compare(X[:80], y[:80], X[80:], y[80:], machines=MACHINES, grid=GRID, name="plane")


# JSON


def test_json_there_and_back(on_folds, on_test, tmp_path):
    for comparison in (on_folds, on_test):
        path = tmp_path / "comparison.json"
        text = comparison.to_json(path)
        assert path.read_text() == text
        for again in (Comparison.from_json(path), Comparison.from_json(str(path)), Comparison.from_json(text)):
            assert again == comparison
            assert again.table == comparison.table
            assert again.to_json() == text
            assert again.to_markdown() == comparison.to_markdown()
        document = json.loads(text, parse_constant=pytest.fail)
        assert [row["machine"] for row in document["table"]] == MACHINES
        assert document["environment"]["polymargin"]
        assert document["settings"]["grid"] == GRID


def test_other_documents_are_refused(on_folds, tmp_path):
    with pytest.raises(ValueError, match="this is no comparison"):
        Comparison.from_json('{"format": "something"}')
    newer = json.loads(on_folds.to_json()) | {"format_version": 2}
    with pytest.raises(ValueError, match="format version 2"):
        Comparison.from_json(json.dumps(newer))
    with pytest.raises(FileNotFoundError):
        Comparison.from_json(tmp_path / "none.json")


# HTML


def test_the_page_stands_alone(on_folds, on_test):
    for comparison in (on_folds, on_test):
        page = comparison.to_html()
        outline = Outline(page)
        assert "http" not in page
        assert not {"script", "link", "iframe"} & set(outline.tags)
        sources = [value for name, value in outline.attributes if name in ("src", "href")]
        assert all(source.startswith("data:image/png;base64,") for source in sources)
        assert not re.search(r"url\(|@import", page)


def test_the_page_has_every_machine_in_every_part(on_folds):
    outline = Outline(on_folds.to_html())
    for name in MACHINES:
        labels = [value for key, value in outline.attributes if key == "aria-label" and name in value]
        assert len(labels) == 2  # the grid, the confusion matrix
        assert outline.text.count(name) >= 6  # table, rates, four costs
    text = "".join(outline.text)
    for sentence in on_folds.verdict:
        assert sentence in text
    for row in on_folds.table:
        assert shown_rate(row["rate"]) in text
        assert shown_seconds(row["train_seconds"]) in text
    assert outline.tags.count("circle") == len(MACHINES)


def test_heat_maps_have_every_candidate_and_ring_the_chosen_one(on_folds):
    page = on_folds.to_html()
    result = on_folds.results[0]
    for candidate in result.candidates:
        cost, gamma = (shown_parameter(value) for value in candidate["parameters"].values())
        assert f"C = {cost}, γ = {gamma}: {shown_rate(candidate['rate'])}" in page  # noqa: RUF001
    assert result.parameters in [candidate["parameters"] for candidate in result.candidates]


def test_names_are_escaped(on_folds):
    page = on_folds.to_html()
    assert "some &lt;data&gt;" in page
    assert "<data>" not in page


def test_the_page_says_how_to_repeat_it(on_folds, on_test):
    page = "".join(Outline(on_folds.to_html()).text)
    call = page[page.index("comparison = compare(") : page.index("\n)") + 2]
    X, y = random_classes(3, n=90, n_features=4, seed=1)
    again = {"compare": compare, "X": X, "y": y}
    exec(call, again)
    assert [row["rate"] for row in again["comparison"].table] == [row["rate"] for row in on_folds.table]
    assert "X_test, y_test" in on_test.to_html()
    assert "holdout=0.3" in on_test.to_html()


def test_pictures_of_the_plane(on_test):
    pytest.importorskip("matplotlib")
    outline = Outline(on_test.to_html())
    assert outline.tags.count("img") == len(MACHINES)
    without = Comparison.from_json(on_test.to_json())  # the machines are not in the document
    assert Outline(without.to_html()).tags.count("img") == 0


def test_the_page_is_written_where_it_says(on_folds, tmp_path):
    path = tmp_path / "report.html"
    assert on_folds.to_html(path) == path.read_text(encoding="utf-8")


def test_many_classes_and_one_parameter():
    X, y = random_classes(14, n=140, n_features=3, seed=0)
    page = compare(X, y, machines=["DAG"], grid={"C": [1.0, 4.0]}, cv=3).to_html()
    assert "The grid" not in page
    assert "Confusion matrix of DAG" in page


# Text


def test_markdown_is_a_table_with_a_row_for_each_machine(on_folds, tmp_path):
    text = on_folds.to_markdown(tmp_path / "table.md")
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == text == str(on_folds)
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(MACHINES)
    assert len({line.count("|") for line in table}) == 1
    for line, row in zip(table[2:], on_folds.table, strict=True):
        assert line.startswith(f"| {row['machine']} |")
        assert shown_rate(row["rate"]) in line


def test_the_terminal_shows_the_table_in_eighty_columns(on_folds):
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    terminal(on_folds, console)
    printed = console.export_text()
    assert "…" not in printed
    for row in on_folds.table:
        assert any(
            line.startswith(row["machine"]) and f"{100 * row['rate']:.2f}" in line for line in printed.splitlines()
        )
    assert " ".join(on_folds.verdict[0].split()) in " ".join(printed.split())


@pytest.mark.parametrize(("gap", "colour"), [(1e-6, "green"), (5e-3, "yellow"), (0.3, "red")])
def test_a_gap_has_a_colour_that_fits(on_folds, gap, colour):
    shown = replace(on_folds, results=[replace(result, gap=gap) for result in on_folds.results])
    console = Console(width=100, record=True, file=io.StringIO(), force_terminal=True, color_system="standard")
    terminal(shown, console)
    styled = re.escape(shown_gap(gap))
    code = {"green": "32", "yellow": "33", "red": "31"}[colour]
    assert len(re.findall(rf"\x1b\[[0-9;]*{code}m *{styled}", console.export_text(styles=True))) == len(MACHINES)
    assert shown.to_html().count('class="number open"') == (len(MACHINES) if colour == "red" else 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [(16.0, "2⁴"), (2.0**-10, "2⁻¹⁰"), (1, "1"), (0.5, "0.5"), (0.1, "0.1"), (True, "True"), ("scale", "scale")],
)
def test_parameters(value, text):
    assert shown_parameter(value) == text


def test_numbers():
    times = (1.234e-5, 0.0123, 0.123, 0.9999, 5.678, 100.4, 600.0)
    assert [shown_seconds(t) for t in times] == ["12 µs", "12 ms", "123 ms", "1000 ms", "5.7 s", "100 s", "10.0 min"]
    assert [shown_gap(gap) for gap in (0.0, 1e-17, 2.9e-4)] == ["<1e-15", "<1e-15", "3e-04"]
    assert [f(None) for f in (shown_seconds, shown_gap, shown_rate, shown_count)] == ["\N{EN DASH}"] * 4
    assert shown_count(12345) == "12,345"


# Parts


def test_markup_escapes_and_closes():
    made = element("p", "a < b & ", element("b", "c"), " d", None, [element("i"), "e"], class_="x", data_label='"')
    assert rendered(made) == '<p class="x" data-label="&quot;">a &lt; b &amp; <b>c</b> d<i></i>e</p>'


def test_heat_goes_from_dark_to_light():
    assert heat(-1) == heat(0) == "#00204d"
    assert heat(1) == heat(2) == "#ffea46"
    lightness = [np.dot(color, (0.2126, 0.7152, 0.0722)) for color in HEAT]
    assert np.all(np.diff(lightness) > 20)


def test_wilson_holds_its_equation():
    for rate, count in ((0.9, 50), (1.0, 20), (0.0, 20), (0.37, 1000)):
        for bound in wilson(rate, count):
            if 0 < bound < 1:
                assert (bound - rate) ** 2 * count == pytest.approx(1.959964**2 * bound * (1 - bound))


# The figure


def test_plot_draws_every_machine(on_folds):
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = on_folds.plot()
    rates, train, _, vectors = figure.axes
    assert [label.get_text() for label in rates.get_yticklabels()] == MACHINES
    assert [bar.get_width() for bar in train.patches] == [row["train_seconds"] for row in on_folds.table]
    assert [bar.get_width() for bar in vectors.patches] == [row["unique_svs"] for row in on_folds.table]
    plt.close(figure)
