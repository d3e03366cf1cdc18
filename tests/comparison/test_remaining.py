"""The time that is left of a comparison, on recorded runs and on made ones."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import ParameterGrid
from sklearn.neighbors import KNeighborsClassifier

from polymargin import CrammerSingerSVC, compare
from polymargin.comparison.progress import clock_time
from polymargin.comparison.remaining import CostModel, Remaining, SearchWork
from polymargin.comparison.settings import chosen_grid

CANDIDATES = list(ParameterGrid(chosen_grid("coarse")))


class Clock:
    """A time that is set."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def play(events, total, work, threads, instants):
    """Return the estimates of the time left at some instants of a run."""
    clock = Clock()
    remaining = Remaining(work, threads, clock)
    found = []
    for kind, at, number, *fit in [*events, ("over", total, 0)]:
        for instant in instants[len(found) :]:
            if instant > at:
                break
            clock.now = instant
            found.append(remaining.seconds())
        clock.now = at
        if kind != "over":
            getattr(remaining, kind)(number, *(fit if kind not in ("begin", "end") else ()))
    return np.array(found, dtype=float)


def replay(name, first, last):
    """Return the estimates from one share of a recorded run to another one, in units of the time that was left."""
    with gzip.open(Path(__file__).parent / "traces" / f"{name}.json.gz") as file:
        run = json.load(file)
    n_searches = 1 + max(event[2] for event in run["events"])
    work = [SearchWork(CANDIDATES, run["folds"], (3 if n == 0 else 1) * (1 + run["folds"])) for n in range(n_searches)]
    instants = np.linspace(first * run["total"], last * run["total"], 200, endpoint=False)
    return play(run["events"], run["total"], work, run["threads"], instants) / (run["total"] - instants)


@pytest.mark.parametrize("name", ["glass", "wine", "blobs"])  # nothing was chosen on the last one
def test_from_a_third_of_a_recorded_run_on_the_estimate_is_within_a_factor_of_two(name):
    ratio = replay(name, 1 / 3, 1.0)
    assert np.mean((ratio > 0.5) & (ratio < 2)) > 0.9
    assert np.exp(np.abs(np.log(ratio)).mean()) < 1.5


def test_so_it_is_where_most_fits_are_others_again():
    """Raw clusters: half the kernels are one, linear programs without loss too, and fits after them are long."""
    ratio = replay("clusters", 1 / 3, 0.85)
    assert np.mean((ratio > 0.5) & (ratio < 2)) > 0.9
    assert np.exp(np.abs(np.log(ratio)).mean()) < 1.5


def made_run(seconds, folds=5):
    """Events of searches, width by width, whose fits take what ``seconds(number, candidate)`` says."""
    events, now = [], 0.0
    for number in range(3):
        for candidate in (10, 32, 53):
            spent = 2 * seconds(number, candidate)  # cold
            now += spent
            events.append(("probed", now, number, candidate, spent))
    for number in range(3):
        events.append(("begin", now, number))
        for width in (0, 7, 3, 1, 5, 2, 4, 6):
            for _ in range(folds):
                for cost in range(8):
                    spent = seconds(number, 8 * cost + width)
                    now += spent
                    events.append(("fitted", now, number, 8 * cost + width, spent))
        events.append(("end", now, number))
    return events, now


def test_costs_that_take_no_time_are_expected_to_take_none():
    events, now = [], 0.0
    for candidate in (10, 32, 53):
        now += 1.0 + candidate // 8  # alone, each has to be fitted
        events.append(("probed", now, 0, candidate, 1.0 + candidate // 8))
    began = now
    events.append(("begin", now, 0))
    for width in (0, 7, 3, 1, 5, 2, 4, 6):
        for _ in range(5):
            for cost in range(8):
                spent = 1.0 + cost if cost < 3 else 0.0  # the larger costs have the same machines
                now += spent
                events.append(("fitted", now, 0, 8 * cost + width, spent))
    events.append(("end", now, 0))
    instants = np.linspace(began + 0.15 * (now - began), now, 100, endpoint=False)
    ratio = play(events, now, [SearchWork(CANDIDATES, 5, 0)], 1, instants) / (now - instants)
    assert np.mean((ratio > 0.5) & (ratio < 2)) > 0.9


@pytest.mark.parametrize("hardest", [0, 3, 7])
def test_fits_of_large_costs_and_of_some_width_may_take_much_longer(hardest):
    events, total = made_run(lambda number, c: 10.0**number * 2.0 ** (c // 8) * 1.7 ** -abs(c % 8 - hardest))
    instants = np.linspace(total / 3, total, 100, endpoint=False)
    work = [SearchWork(CANDIDATES, 5, 0) for _ in range(3)]
    ratio = play(events, total, work, 1, instants) / (total - instants)
    assert np.mean((ratio > 0.5) & (ratio < 2)) > 0.85


def test_nothing_is_said_before_every_machine_is_known():
    remaining = Remaining([SearchWork(CANDIDATES, 5, 1), SearchWork(CANDIDATES, 5, 1)], 1, Clock())
    remaining.probed(0, 3, 1.0)
    assert remaining.seconds() is None
    remaining.probed(1, 3, 1.0)
    assert remaining.seconds() == pytest.approx(2 * (5 * 64 + 1))


def test_a_fit_that_takes_longer_than_expected_makes_the_time_left_grow():
    clock = Clock()
    remaining = Remaining([SearchWork(CANDIDATES[:3], 1, 0)], 1, clock)
    remaining.begin(0)
    for candidate in range(2):
        clock.now += 1.0
        remaining.fitted(0, candidate, 1.0)
    estimates = []
    for clock.now in (2.0, 2.5, 10.0, 100.0):
        estimates.append(remaining.seconds())
    assert estimates[0] == pytest.approx(1.0)
    assert estimates[1] < 1.0
    assert estimates[3] > estimates[2] > 5.0


def test_fits_after_a_search_share_nothing_and_are_counted_one_by_one():
    clock = Clock()
    remaining = Remaining([SearchWork(CANDIDATES[:2], 2, 3)], 2, clock)
    for candidate in (0, 1):
        remaining.probed(0, candidate, 10.0 + 2.0 * candidate)
    remaining.begin(0)
    for candidate in (0, 1, 0, 1):
        clock.now += 0.5  # two at a time, from the solutions of others
        remaining.fitted(0, candidate, 1.0)
    assert remaining.seconds() == pytest.approx(3 * 11.0)
    remaining.choose(0, 1)
    clock.now += 100.0  # what was shown before counts no longer
    remaining.fitted_again(0, 8.0)
    assert remaining.seconds() == pytest.approx(2 * (12.0 + 8.0) / 2)


def test_kernels_that_are_the_same_are_so_for_machines_to_come():
    works = [SearchWork(CANDIDATES[:4], 2, 0), SearchWork(CANDIDATES[:4], 2, 0), SearchWork(CANDIDATES[:3], 2, 0)]
    remaining = Remaining(works, 1, Clock())
    remaining.begin(0)
    remaining.foresee(0, 3, 2)
    remaining.foresee(0, 2, 2)
    assert [work.free.tolist() for work in works] == [[0, 0, 2, 2], [0, 0, 2, 2], [0, 0, 0]]
    remaining.begin(1)  # says itself what there is
    assert not works[1].free.any()


def test_a_search_cannot_take_longer_than_its_limit():
    remaining = Remaining([SearchWork(CANDIDATES, 5, 0, limit=7.0)], 1, Clock())
    remaining.probed(0, 0, 1e3)
    assert remaining.seconds() == 7.0


def test_the_model_learns_how_seconds_grow_with_parameters():
    model = CostModel(CANDIDATES, ridge=1.0)
    truth = np.array([2.0 ** (c // 8) * 1.5 ** -(c % 8) for c in range(64)])
    for candidate in (0, 7, 20, 33, 42, 56, 63):
        model.see(candidate, truth[candidate])
    found = model.seconds()
    assert np.all(np.abs(np.log(found / truth)) < np.log(4))
    assert found[20] == truth[20]


def test_fits_that_will_be_those_of_others_take_no_time():
    clock = Clock()
    remaining = Remaining([SearchWork(CANDIDATES[:4], 2, 0)], 1, clock)
    remaining.begin(0)
    for candidate in (2, 3):
        remaining.foresee(0, candidate, 2)
    for _ in range(2):
        clock.now += 1.0
        remaining.fitted(0, 0, 1.0)
    assert remaining.seconds() == pytest.approx(2.0)  # two fits of one candidate, none of the two others
    remaining.fitted(0, 2, 0.0)
    assert remaining.seconds() == pytest.approx(2.0)


def test_kernels_too_narrow_for_the_data_are_foreseen(monkeypatch):
    X, y = load_iris(return_X_y=True)
    found = []
    foresee = Remaining.foresee
    monkeypatch.setattr(Remaining, "foresee", lambda self, *args: (found.append(args), foresee(self, *args))[1])
    X = np.unique(X, axis=0, return_index=True)[1]
    X, y = 1e3 * load_iris().data[X], y[X]
    compare(X, y, machines=["Crammer-Singer"], grid={"C": [1, 16], "gamma": [1e-8, 1.0, 10.0, 100.0]}, cv=3)
    assert [args[0] for args in found] == [0] * 4
    assert sorted(args[1] for args in found) in ([1, 2, 5, 6], [1, 3, 5, 7], [2, 3, 6, 7])
    assert {args[2] for args in found} == {3}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-:--:--"), (0.4, "0:00:00"), (42.3, "0:00:42"), (128, "0:02:10"), (1234, "0:21:00"), (4000, "1:05:00")],
)
def test_the_clock_shows_no_more_digits_than_an_estimate_has(seconds, text):
    assert clock_time(seconds) == text


def test_a_comparison_with_a_bar_tries_every_machine_first_and_gives_the_same_rates(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal
    X, y = load_iris(return_X_y=True)
    options = {"machines": ["DAG", KNeighborsClassifier()], "grid": {"C": [1, 16], "gamma": [0.1]}, "cv": 3}
    shown = compare(X, y, **options, verbose=1)
    assert "left" in capsys.readouterr().err
    assert [row["rate"] for row in shown.table] == [row["rate"] for row in compare(X, y, **options).table]


def test_the_limit_of_a_search_is_one_of_its_probes_too(monkeypatch, capsys):
    X, y = load_iris(return_X_y=True)
    limits = []
    fit = CrammerSingerSVC.fit
    monkeypatch.setattr(
        CrammerSingerSVC, "fit", lambda self, *args: (limits.append(self.time_limit), fit(self, *args))[1]
    )
    options = {"grid": {"C": [1, 2, 4], "gamma": [0.1]}, "cv": 3, "verbose": 1}
    compare(X, y, machines=["Crammer-Singer"], time_limit=20.0, **options)
    assert 19.0 < limits[2] < limits[1] < limits[0] == 20.0
    assert set(limits[3:]) == {None}
