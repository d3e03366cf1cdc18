"""The core's session: what it answers call after call is what one call answers, whatever becomes of the arrays."""

import gc
import weakref

import numpy as np
import pytest
from reference.data import overlapping

from polymargin import _core
from polymargin.estimators._pairs import all_pairs, pair_problems

ANSWERS = ("support", "beta", "intercept", "primal", "dual", "violation", "iterations")
LIMITS = {"folds": None, "refine": True, "tolerance": 1e-3, "max_iterations": -1, "time_limit": 60.0, "progress": None}
RBF = _core.Kernel(_core.KernelType.rbf, 0.05, 0.0, 3)


def sorted_problem(n=1500):
    X, y = overlapping(n=n)
    order = np.argsort(y, kind="stable")
    bounds = np.searchsorted(y[order], np.arange(6))
    return X, order, np.full(n, 2.0), pair_problems(all_pairs(5).pairs, bounds)


def session_on(X, order, threads=1, largest_bound=2.0, tolerance=1e-3, whole=False):
    data = _core.Data.dense(X)
    return _core.KernelSession(data, RBF, order, largest_bound, tolerance, whole, 200_000_000, threads)


@pytest.mark.parametrize("n", [500, 1500])
@pytest.mark.parametrize("threads", [1, 2])
def test_call_by_call_is_at_once(n, threads):
    X, order, upper, problems = sorted_problem(n)
    once = session_on(X, order).train(problems, upper, None, **LIMITS)
    session = session_on(X, order, threads)
    calls = [session.train(problems[p : p + 1], upper, None, **LIMITS) for p in range(len(problems))]
    for name in ANSWERS:
        np.testing.assert_array_equal(np.concatenate([call[name] for call in calls]), once[name])
    assert sum(call["evaluations"] for call in calls) == once["evaluations"]


def test_the_data_live_as_long_as_the_session():
    X, order, upper, problems = sorted_problem()
    expected = session_on(X, order).train(problems, upper, None, **LIMITS)
    alive = weakref.ref(X)
    session = session_on(X, order)
    del X
    gc.collect()
    assert alive() is not None
    found = session.train(problems, upper, None, **LIMITS)
    for name in ANSWERS:
        np.testing.assert_array_equal(found[name], expected[name])
    del session
    gc.collect()
    assert alive() is None


def test_an_error_in_the_progress_stops_a_call_and_the_next_one_begins_anew():
    X, order, upper, problems = sorted_problem(6000)  # long enough for progress to be shown
    hard = np.full(len(order), 1e6)
    session = session_on(X, order, largest_bound=1e6, tolerance=1e-10)

    def progress(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        session.train(problems, hard, None, None, True, 1e-10, -1, 60.0, progress)
    again = session.train(problems, upper, None, None, True, 1e-3, -1, 60.0, None)
    assert set(again["status"]) == {"converged"}
    assert again["evaluations"] > 0


def test_more_than_was_promised_is_refused():
    X, order, upper, problems = sorted_problem(500)
    session = session_on(X, order)
    with pytest.raises(ValueError, match="bounds up to 2"):
        session.train(problems, 1.01 * upper, None, **LIMITS)
    with pytest.raises(ValueError, match="tolerances from"):
        session.train(problems, upper, None, **(LIMITS | {"tolerance": 1e-4}))
    with pytest.raises(ValueError, match="upper"):
        session.train(problems, upper[:-1], None, **LIMITS)


@pytest.mark.parametrize("n", [500, 1500])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_path_of_costs_is_one_solution_after_the_other(n, threads):
    X, order, _, problems = sorted_problem(n)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, n)
    costs = np.array([0.01, 0.1, 0.5, 3.0, 100.0])
    limits = LIMITS | {"tolerance": 1e-6}
    session = session_on(X, order, threads, largest_bound=200.0, tolerance=1e-6)
    path = session.train_paths(problems, weight[None], costs, 1e-6, -1, None)
    singles = [session.train(problems, cost * weight, None, **limits) for cost in costs]
    assert set(path["status"]) == {"converged"}
    expected = np.concatenate([single["dual"] for single in singles])
    np.testing.assert_allclose(path["dual"], expected, rtol=1e-7)
    np.testing.assert_allclose(path["primal"], expected, rtol=1e-4)
    np.testing.assert_allclose(path["intercept"], np.concatenate([s["intercept"] for s in singles]), atol=1e-4)
    for p, (begin, end) in enumerate(zip(path["starts"], path["starts"][1:], strict=False)):
        beta, bound = path["beta"][begin:end], costs[p // len(problems)] * weight[path["support"][begin:end]]
        assert np.all(np.abs(beta) <= bound)
        assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()


def test_a_path_that_is_stopped_has_a_feasible_point_for_every_cost():
    X, order, _, problems = sorted_problem(6000)  # long enough to be stopped
    weight, costs = np.ones((2, len(order))), np.array([0.1, 1.0, 1e6])
    session = session_on(X, order, largest_bound=1e6, tolerance=1e-10)
    short = session.train_paths(problems, weight, costs, 1e-3, 5, None)
    assert set(short["status"]) == {"max_iter"}
    stopped = session.train_paths(problems, weight, costs, 1e-10, -1, lambda *_: False)
    assert "stopped" in stopped["status"]
    for answer in (short, stopped):
        assert len(answer["dual"]) == 2 * len(costs) * len(problems)
        assert np.all(answer["dual"] <= answer["primal"])


@pytest.mark.parametrize("costs", [[2.0, 1.0], [0.0, 1.0], [1.0, np.inf], [np.nan]])
def test_a_path_that_does_not_ascend_is_refused(costs):
    X, order, upper, problems = sorted_problem(500)
    session = session_on(X, order, largest_bound=1e9)
    with pytest.raises(ValueError, match=r"ascending|bounds up to"):
        session.train_paths(problems, upper[None], np.array(costs), 1e-3, -1, None)


def test_paths_need_bounds_for_all_examples_and_no_more_than_was_promised():
    X, order, upper, problems = sorted_problem(500)
    session = session_on(X, order, largest_bound=3.0)
    with pytest.raises(ValueError, match="a bound for each example"):
        session.train_paths(problems, upper[None, :-1], np.array([1.0]), 1e-3, -1, None)
    with pytest.raises(ValueError, match="bounds up to 3"):
        session.train_paths(problems, upper[None], np.array([1.0, 2.0]), 1e-3, -1, None)


def test_scores_of_a_path_come_from_a_kernel_matrix():
    X, order, upper, problems = sorted_problem(500)
    session = session_on(X, order)
    path = session.train_paths(problems, upper[None], np.array([1.0]), 1e-3, -1, None)
    of_path = [path[name] for name in ("starts", "support", "beta", "intercept")]
    with pytest.raises(ValueError, match="from a kernel matrix"):
        session.path_scores(order[:3], problems, *of_path, np.empty((len(problems), 3, 1)), 1)
