"""The core's session: what it answers call after call is what one call answers, whatever becomes of the arrays."""

import gc
import weakref

import numpy as np
import pytest
from reference.data import overlapping

from polymargin import _core
from polymargin.formulations.pairs import pair_problems
from polymargin.models import all_pairs

ANSWERS = ("support", "beta", "intercept", "primal", "dual", "violation", "iterations")
SETTINGS = _core.BinarySettings()
CONVERGED = _core.Status.converged
RBF = _core.Kernel(_core.KernelType.rbf, 0.05, 0.0, 3)


def sorted_problem(n=1500):
    X, y = overlapping(n=n)
    order = np.argsort(y, kind="stable")
    class_starts = np.searchsorted(y[order], np.arange(6))
    return X, order, np.full(n, 2.0), pair_problems(all_pairs(5).pairs, class_starts)


def session_on(X, order, threads=1, largest_bound=2.0, tolerance=1e-3, whole=False):
    data = _core.Data.dense(X)
    exactness = _core.Exactness(largest_cost_bound=largest_bound, tolerance=tolerance)
    resources = _core.Resources(budget_bytes=200_000_000, threads=threads, whole=whole)
    return _core.KernelSession(data, RBF, order, exactness, resources)


@pytest.mark.parametrize("n", [500, 1500])
@pytest.mark.parametrize("threads", [1, 2])
def test_call_by_call_is_at_once(n, threads):
    X, order, cost_bounds, problems = sorted_problem(n)
    once = session_on(X, order).train_binary(problems, cost_bounds, SETTINGS)
    session = session_on(X, order, threads)
    class_starts = np.searchsorted(np.sort(overlapping(n=n)[1]), np.arange(6))
    singles = [pair_problems(pair[None], class_starts) for pair in all_pairs(5).pairs]
    calls = [session.train_binary(single, cost_bounds, SETTINGS) for single in singles]
    for name in ANSWERS:
        np.testing.assert_array_equal(np.concatenate([getattr(call, name) for call in calls]), getattr(once, name))
    assert sum(call.evaluations for call in calls) == once.evaluations


def test_the_data_live_as_long_as_the_session():
    X, order, cost_bounds, problems = sorted_problem()
    expected = session_on(X, order).train_binary(problems, cost_bounds, SETTINGS)
    alive = weakref.ref(X)
    session = session_on(X, order)
    del X
    gc.collect()
    assert alive() is not None
    found = session.train_binary(problems, cost_bounds, SETTINGS)
    for name in ANSWERS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    del session
    gc.collect()
    assert alive() is None


def test_an_error_in_the_progress_stops_a_call_and_the_next_one_begins_anew():
    X, order, cost_bounds, problems = sorted_problem(6000)  # long enough for progress to be shown
    hard = np.full(len(order), 1e6)
    session = session_on(X, order, largest_bound=1e6, tolerance=1e-10)

    def progress(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        session.train_binary(problems, hard, _core.BinarySettings(tolerance=1e-10), progress=progress)
    again = session.train_binary(problems, cost_bounds, SETTINGS)
    assert again.stop_reason is CONVERGED
    assert again.evaluations > 0


def test_more_than_was_promised_is_refused():
    X, order, cost_bounds, problems = sorted_problem(500)
    session = session_on(X, order)
    with pytest.raises(ValueError, match="bounds up to 2"):
        session.train_binary(problems, 1.01 * cost_bounds, SETTINGS)
    with pytest.raises(ValueError, match="tolerances from"):
        session.train_binary(problems, cost_bounds, _core.BinarySettings(tolerance=1e-4))
    with pytest.raises(ValueError, match="cost_bounds"):
        session.train_binary(problems, cost_bounds[:-1], SETTINGS)


@pytest.mark.parametrize("n", [500, 1500])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_path_of_costs_is_one_solution_after_the_other(n, threads):
    X, order, _, problems = sorted_problem(n)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, n)
    costs = np.array([0.01, 0.1, 0.5, 3.0, 100.0])
    settings = _core.BinarySettings(tolerance=1e-6)
    session = session_on(X, order, threads, largest_bound=200.0, tolerance=1e-6)
    path = session.train_paths(problems, weight[None], costs, settings)
    singles = [session.train_binary(problems, cost * weight, settings) for cost in costs]
    assert path.stop_reason is CONVERGED
    expected = np.concatenate([single.dual for single in singles])
    np.testing.assert_allclose(path.dual, expected, rtol=1e-7)
    np.testing.assert_allclose(path.primal, expected, rtol=1e-4)
    np.testing.assert_allclose(path.intercept, np.concatenate([s.intercept for s in singles]), atol=1e-4)
    for p, (begin, end) in enumerate(zip(path.starts, path.starts[1:], strict=False)):
        beta, bound = path.beta[begin:end], costs[p // len(problems)] * weight[path.support[begin:end]]
        assert np.all(np.abs(beta) <= bound)
        assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()


@pytest.mark.parametrize("n", [300, 2400])
def test_a_path_of_examples_that_are_alone_takes_few_steps_to_its_first_solution(n):
    X, order, _, problems = sorted_problem(n)
    weight = np.random.default_rng(0).choice([0.0, 1.0], n, p=[0.2, 0.8])  # as on the folds of a search
    K = np.exp(-300.0 * ((X[:, None] - X) ** 2).sum(axis=2))
    settings, costs = _core.BinarySettings(tolerance=1e-6), np.array([0.1, 1.0])
    kernel = _core.Kernel(_core.KernelType.precomputed, 0.0, 0.0, 0)
    exactness = _core.Exactness(largest_cost_bound=1.0, tolerance=1e-6)
    resources = _core.Resources(budget_bytes=400_000_000, threads=1, whole=True)
    session = _core.KernelSession(_core.Data.precomputed(K), kernel, order, exactness, resources)
    path = session.train_paths(problems, weight[None], costs, settings)
    singles = [session.train_binary(problems, cost * weight, settings) for cost in costs]
    assert path.stop_reason is CONVERGED
    np.testing.assert_allclose(path.dual, np.concatenate([single.dual for single in singles]), rtol=1e-7)
    assert path.iterations[: len(problems)].sum() < singles[0].iterations.sum() / 2
    assert np.all(weight[path.support] > 0)


def test_a_path_that_is_stopped_has_a_feasible_point_for_every_cost():
    X, order, _, problems = sorted_problem(6000)  # long enough to be stopped
    weight, costs = np.ones((2, len(order))), np.array([0.1, 1.0, 1e6])
    session = session_on(X, order, largest_bound=1e6, tolerance=1e-10)
    short = session.train_paths(problems, weight, costs, _core.BinarySettings(max_iterations=5))
    assert set(short.status) == {_core.Status.max_iter}
    settings = _core.BinarySettings(tolerance=1e-10)
    stopped = session.train_paths(problems, weight, costs, settings, progress=lambda *_: False)
    assert _core.Status.stopped in stopped.status
    for answer in (short, stopped):
        assert len(answer.dual) == 2 * len(costs) * len(problems)
        assert np.all(answer.dual <= answer.primal)


@pytest.mark.parametrize("costs", [[2.0, 1.0], [0.0, 1.0], [1.0, np.inf], [np.nan]])
def test_a_path_that_does_not_ascend_is_refused(costs):
    X, order, cost_bounds, problems = sorted_problem(500)
    session = session_on(X, order, largest_bound=1e9)
    with pytest.raises(ValueError, match=r"ascending|bounds up to"):
        session.train_paths(problems, cost_bounds[None], np.array(costs), SETTINGS)


def test_paths_need_bounds_for_all_examples_and_no_more_than_was_promised():
    X, order, cost_bounds, problems = sorted_problem(500)
    session = session_on(X, order, largest_bound=3.0)
    with pytest.raises(ValueError, match="a bound for each example"):
        session.train_paths(problems, cost_bounds[None, :-1], np.array([1.0]), SETTINGS)
    with pytest.raises(ValueError, match="bounds up to 3"):
        session.train_paths(problems, cost_bounds[None], np.array([1.0, 2.0]), SETTINGS)


def test_scores_of_a_path_come_from_a_kernel_matrix():
    X, order, cost_bounds, problems = sorted_problem(500)
    session = session_on(X, order)
    path = session.train_paths(problems, cost_bounds[None], np.array([1.0]), SETTINGS)
    with pytest.raises(ValueError, match="from a kernel matrix"):
        session.path_scores(order[:3], problems, path, np.empty((len(problems), 3, 1)))
