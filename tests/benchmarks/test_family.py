"""The family's page: every exported machine is in it; cells beyond the bar, cut off or without a gap are counted."""

from argparse import Namespace
from pathlib import Path

import pytest

import polymargin

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def family(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import family

    return family


def made_cell(**changes):
    """A cell in which nothing is wrong: twice as long as one-against-one, and at a small gap."""
    place = {"machine": "WestonWatkinsSVC", "data": "glass", "C": 1.0, "gamma": "scale", "limit": 10.0}
    found = {"seconds": 0.02, "reference": 0.01, "duality_gap": 1e-5, "certified_gap": 1e-5}
    return {**place, **found, "stop_reason": "converged", **changes}


def test_every_exported_machine_takes_part(family):
    found = family.machines()
    assert {"LeeLinWahbaSVC", "TotalMaximumSVC", "OutputCodeSVC"} < set(found)
    assert {*found, family.REFERENCE} == {name for name in polymargin.__all__ if name.endswith("SVC")}


def test_sixty_problems_with_every_data_set_cost_and_width(family):
    options = Namespace(data=list(family.DATA), costs=list(family.COSTS), widths=list(family.WIDTHS))
    found = family.problems(options)
    assert len(set(found)) == family.PROBLEMS
    assert {each.data for each in found} == set(family.DATA)
    assert {(each.C, each.gamma) for each in found} == {(C, gamma) for C in family.COSTS for gamma in family.WIDTHS}


def test_bad_cells_are_counted_and_come_first(family):
    cells = [
        made_cell(),
        made_cell(seconds=0.5, C=2.0),
        made_cell(seconds=10.0, stop_reason="time_limit", certified_gap=0.1, C=3.0),
        made_cell(seconds=None, error="ValueError: no", C=4.0),
    ]
    (row,) = family.distribution(cells).rows
    assert [cell.text for cell in row] == ["WestonWatkinsSVC", "4", "50", "905", "1e+03", "2", "1", "1", "1"]
    assert [cell.ok for cell in row[5:]] == [False] * 4
    shown = family.worst(cells, 3).rows
    assert [row[2].text for row in shown] == ["3", "2", "1"]
    assert shown[0][6].text == "≥ 1e+03"
    assert shown[0][8].text == "time_limit"
    assert shown[2][6].ok
    assert not shown[1][6].ok
