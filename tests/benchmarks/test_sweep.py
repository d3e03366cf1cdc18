"""The sweep: what its page says of cells that are slow, unconverged or silent, and that a run goes on where it was."""

import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def _benchmarks_on_the_path():
    """The scripts import each other by name; so do the tests, and leave the path as it was."""
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


@pytest.fixture
def page():
    import sweep_page

    return sweep_page


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    import result_store
    import sweep

    monkeypatch.setattr(result_store, "FOLDER", tmp_path / "build")
    monkeypatch.setattr(sweep, "RESULTS", tmp_path / "results")
    return sweep


def made_cell(**changes):
    """A cell in which nothing is wrong: twice as fast as scikit-learn, converged and at the best objective."""
    cell = {
        "kernel": "kernel",
        "machine": "one-vs-one",
        "threads": 1,
        "data": "glass",
        "scaling": "raw",
        "C": 1.0,
        "gamma": "scale",
        "rows": 214,
        "limit": 20.0,
        "seconds": 0.1,
        "peer_seconds": 0.2,
        "peer_killed": False,
        "peer_warnings": [],
        "warnings": [],
        "converged": True,
        "stop_reason": "converged",
        "duality_gap": 1e-5,
        "dual_objective": 100.0,
        "best": 100.0,
    }
    return cell | changes


def titles(tables):
    return [table.title for table in tables]


def row(table, index=0):
    return dict(zip(table.columns, (cell.markdown() for cell in table.rows[index]), strict=True))


def options(**changes):
    """One small problem, few machines, one round."""
    quick = {
        "data": ["sklearn-iris"],
        "machines": ["one-vs-one"],
        "kernels": ["kernel"],
        "scalings": ["standardised"],
        "costs": [1.0],
        "widths": ["scale"],
        "threads": 1,
        "rounds": 1,
        "limit": 20.0,
        "budget": None,
        "best": None,
        "anew": False,
        "output": None,
    }
    return Namespace(**quick | changes)


def test_a_good_cell_is_in_no_list_of_wrong_ones(page):
    tables = page.tables([made_cell()], worst=10)
    assert titles(tables) == [
        "Distribution of time of scikit-learn / time of polymargin",
        "Worst cells of each machine",
    ]
    found = row(tables[0])
    assert (found["min"], found["too slow"], found["not converged"], found["silent"]) == ("2 ✓", "0 ✓", "0 ✓", "0 ✓")


def test_the_worst_cells_come_first_and_no_more_than_asked_for(page):
    cells = [made_cell(data=str(ratio), peer_seconds=0.1 * ratio) for ratio in (3, 0.5, 7, 2)]
    table = page.worst_table(cells, most=3)
    assert [row(table, index)["data set"] for index in range(len(table.rows))] == ["0.5", "2", "3"]
    assert row(table)["ratio"].endswith("✗")


def test_quantiles_are_of_cells_that_take_long_enough(page):
    cells = [made_cell(peer_seconds=0.1 * ratio) for ratio in (1, 2, 3)] + [made_cell(seconds=1e-4, peer_seconds=1e-5)]
    found = row(page.distribution(cells))
    assert (found["cells"], found["judged"], found["min"], found["median"]) == ("4", "3", "1 ✓", "2 ✗")


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"stop_reason": "time_limit", "seconds": 20.0, "peer_seconds": 2.0}, "≤ 0.1 ✗"),
        ({"peer_killed": True, "peer_seconds": 20.0, "seconds": 2.0}, "≥ 10 ✓"),
        ({"peer_killed": True, "killed": True, "seconds": 20.0, "peer_seconds": 20.0}, "-"),
        ({"seconds": None, "error": "it broke"}, "-"),
    ],
)
def test_a_ratio_says_where_it_is_a_bound(page, changes, shown):
    assert page.ratio_cell(made_cell(**changes)).markdown() == shown


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"converged": False, "duality_gap": 2e-3, "warnings": ["ConvergenceWarning"]}, "Not converged"),
        ({"duality_gap": 0.5}, "Large gaps without a warning"),
        ({"dual_objective": 99.9}, "Dual objectives below the best known"),
    ],
)
def test_a_wrong_cell_is_listed_under_what_is_wrong(page, changes, title):
    tables = page.tables([made_cell(), made_cell(**changes)], worst=1)
    assert titles(tables)[2:] == [title]
    assert len(tables[2].rows) == 1


def test_a_small_gap_needs_no_tolerance_and_a_warned_gap_is_not_silent(page):
    assert page.has_converged(made_cell(converged=False, duality_gap=5e-4))
    assert not page.is_silent(made_cell(duality_gap=0.5, warnings=["ConvergenceWarning"]))


@pytest.mark.parametrize(("seconds", "rows", "fast"), [(0.9, 200, True), (1.1, 200, False), (1.1, 5000, None)])
def test_linear_cells_have_a_bar_in_seconds(page, seconds, rows, fast):
    assert page.is_fast(made_cell(kernel="linear", gamma=None, seconds=seconds, rows=rows)) is fast


def test_errors_are_told_in_the_notes(page):
    cell = made_cell(error="it broke", seconds=None)
    assert any("one-vs-one on glass, raw, C=1: it broke" in note for note in page.notes([cell]))
    assert page.brief(cell).endswith("it broke")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scaling", ["raw", "standardised", "range"])
def test_scaling(sweep, scaling, sparse):
    X = np.array([[0.0, 10.0], [2.0, 0.0], [4.0, -20.0]])
    found = sweep.sweep_data.scaled(csr_matrix(X) if sparse else X, scaling)
    assert issparse(found) is sparse
    dense = found.toarray() if sparse else found
    if scaling == "raw":
        np.testing.assert_array_equal(dense, X)
    elif sparse:
        np.testing.assert_array_equal(dense == 0, X == 0)
    elif scaling == "range":
        np.testing.assert_allclose([dense.min(axis=0), dense.max(axis=0)], [[-1, -1], [1, 1]])
    else:
        np.testing.assert_allclose([dense.mean(axis=0), dense.std(axis=0)], [[0, 0], [1, 1]], atol=1e-12)


def test_problems_without_a_kernel_have_no_width(sweep):
    asked = options(kernels=["kernel", "linear"], costs=[1.0, 100.0], widths=["scale", 1.0])
    found = sweep.problems(asked)
    assert sum(problem.kernel == "kernel" for problem in found) == 4
    assert [problem.gamma for problem in found if problem.kernel == "linear"] == [None, None]


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.7])
def test_every_beginning_of_the_order_is_a_fair_sample(sweep, share):
    asked = options(
        data=["sklearn-iris", "sklearn-wine", "made-blobs-10", "made-blobs-15", "made-noise"],
        kernels=["kernel", "linear"],
        scalings=["raw", "standardised", "range"],
        costs=[1.0, 100.0, 1e4],
        widths=[0.01, "scale", 1.0],
    )
    listed = sweep.problems(asked)
    order = sweep.sweep_order.spread(listed, sweep.astuple)
    assert sorted(map(str, order)) == sorted(map(str, listed))
    taken = order[: round(share * len(order))]
    for part in ("kernel", "data", "scaling", "C", "gamma"):
        for value in {getattr(problem, part) for problem in listed}:
            expected = share * sum(getattr(problem, part) == value for problem in listed)
            assert abs(sum(getattr(problem, part) == value for problem in taken) - expected) <= 1.5


def test_the_order_is_the_same_every_time(sweep):
    listed = sweep.problems(options(data=["sklearn-iris", "sklearn-wine"], costs=[1.0, 100.0, 1e4]))
    assert sweep.sweep_order.spread(listed, sweep.astuple) == sweep.sweep_order.spread(listed, sweep.astuple)
    assert sweep.sweep_order.spread([], sweep.astuple) == []


def test_a_budget_ends_the_run_and_the_page_says_how_far_it_came(sweep, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(sweep.time, "monotonic", lambda: now[0])

    def race(self, problem, machines):
        now[0] += 4.0
        return {machine: made_cell(optimum="here") for machine in machines}

    monkeypatch.setattr(sweep.Sweep, "race", race)
    run = sweep.Sweep(options(costs=[1.0, 10.0, 100.0, 1000.0], budget=10.0))
    run.run()
    assert len(run.cells) == 3
    assert run.coverage().startswith("3 of 4 problems, 3 cells, in 12 s")


@pytest.mark.parametrize(
    ("gap", "best", "elapsed", "seconds"),
    [(1e-5, 5.0, 100.0, None), (1e-2, 5.0, 0.0, 5.0), (1e-2, None, 100.0, 15.0), (1e-2, None, 0.0, None)],
)
def test_the_best_objective_is_looked_for_where_it_is_open_and_time_allows(sweep, gap, best, elapsed, seconds):
    class Lane:
        limits = ()

        def fit(self, problem, within, time_limit, tol):
            self.limits = (*self.limits, time_limit)
            return {"dual_objective": 7.0, "primal_objective": 7.1}

    run, lane = sweep.Sweep(options(best=best)), Lane()
    run.start = sweep.time.monotonic() - elapsed
    problem = run.problems[0]
    run.look_for_best(problem, {"machine": "one-vs-one", "duality_gap": gap}, lane)
    assert lane.limits == (() if seconds is None else (pytest.approx(seconds, rel=0.01),))
    assert run.best.found == ({} if seconds is None else {problem.key("one-vs-one"): 7.0})


def test_data_are_thinned_to_rows_of_every_class_for_the_first_fit(sweep):
    y = np.array([3, 3, 1, 3, 2, 1, 3])
    np.testing.assert_array_equal(sweep.sweep_data.few_of_each(y, 2), [0, 1, 2, 4, 5])


def test_a_cell_is_measured_once_and_again_with_a_longer_limit(sweep, monkeypatch):
    asked = []
    cell = made_cell(data="sklearn-iris", stop_reason="time_limit", optimum="here", limit=20.0)
    monkeypatch.setattr(
        sweep.Sweep, "race", lambda self, problem, machines: asked.append(machines) or dict.fromkeys(machines, cell)
    )
    for limit in (20.0, 20.0, 30.0):
        sweep.Sweep(options(limit=limit)).run()
    assert asked == [["one-vs-one"]] * 2


def test_the_best_dual_objective_is_the_largest(sweep):
    run = sweep.Sweep(options())
    for dual in (1.0, 3.0, 2.0):
        run.remember("here", dual)
    assert sweep.Sweep(options()).best.found == {"here": 3.0}


def test_a_cell_from_its_process_to_the_page(sweep):
    run = sweep.Sweep(options(machines=["one-vs-one", "weston-watkins"]))
    run.run()
    assert [cell["machine"] for cell in run.cells] == ["one-vs-one", "weston-watkins"]
    for cell in run.cells:
        assert cell["converged"]
        assert cell["rows"] == 150
        assert cell["seconds"] > 0
        assert cell["peer_seconds"] > 0
        assert cell["best"] == pytest.approx(cell["dual_objective"])
    assert sweep.sweep_page.tables(run.cells, 10)[0].rows
