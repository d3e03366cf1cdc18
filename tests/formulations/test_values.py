"""Formulations as values: solved on a training set and a kernel without an estimator, for one cost or many."""

import numpy as np
import pytest
from reference.data import overlapping

from polymargin import CrammerSingerSVC, LinearProgramSVC, OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC
from polymargin.decision import LargestScore, Votes
from polymargin.formulations import (
    Division,
    Joint,
    LinearProgram,
    OneVsRest,
    Pairs,
    RunOptions,
    checked_weights,
    training_set,
)
from polymargin.kernels import Kernel
from polymargin.losses import CrammerSinger, WestonWatkins
from polymargin.models import LinearModel

C, GAMMA = 2.0, 0.3
FORMULATIONS = {
    "pairs": (Pairs(), OneVsOneSVC),
    "one-vs-rest": (OneVsRest(), OneVsRestSVC),
    "weston-watkins": (Joint(WestonWatkins(), "regularized"), WestonWatkinsSVC),
    "crammer-singer": (Joint(CrammerSinger()), CrammerSingerSVC),
    "linear-program": (LinearProgram(), LinearProgramSVC),
}
every_formulation = pytest.mark.parametrize("name", FORMULATIONS)


def problem(n=150, **options):
    X, y = overlapping(n=n)
    return X, y, training_set(X, y, np.unique(y), C=C, **options)


@every_formulation
def test_a_formulation_is_what_its_estimator_fits(name):
    X, y, training = problem()
    formulation, Estimator = FORMULATIONS[name]
    solution = formulation.solve(training, Kernel("rbf", GAMMA, 0.0, 3), RunOptions())
    machine = Estimator(C=C, gamma=GAMMA).fit(X, y)
    np.testing.assert_allclose(solution.model.coefficients, machine.dual_coef_, atol=1e-9)
    np.testing.assert_array_equal(solution.model.support, machine.support_)
    assert solution.outcome.primal == pytest.approx(machine.primal_objective_, rel=1e-9)
    assert solution.outcome.converged
    assert solution.outcome.gap < 1e-3
    assert solution.model.defect is None


@every_formulation
def test_a_solution_starts_the_next(name):
    _, _, training = problem(n=300)
    formulation, _ = FORMULATIONS[name]
    kernel = Kernel("rbf", GAMMA, 0.0, 3)
    cold = formulation.solve(training, kernel, RunOptions(tolerance=1e-4))
    warm = formulation.solve(training, kernel, RunOptions(tolerance=1e-4, start=cold.model))
    assert np.sum(warm.outcome.iterations) <= np.sum(cold.outcome.iterations)
    assert warm.outcome.dual == pytest.approx(cold.outcome.dual, rel=1e-4)


@pytest.mark.parametrize("formulation", [OneVsRest("regularized"), Joint(CrammerSinger(), None, "sequential-dual")])
def test_linear_kernels_leave_weights(formulation):
    X, _, training = problem()
    solution = formulation.solve(training, Kernel("linear", 0.0, 0.0, 3), RunOptions())
    assert isinstance(solution.model, LinearModel)
    assert solution.model.weights.shape == (X.shape[1], 5)
    assert formulation.measure(training, solution.model.kernel) == "gap"
    assert not formulation.needs_kernel("linear", 150, hard=False)


@pytest.mark.parametrize(("formulation", "rule"), [(Pairs(), Votes(5)), (OneVsRest(), LargestScore())])
def test_a_family_decides_as_its_members(formulation, rule):
    """Many costs and two divisions by one call, against a model for each."""
    X, y = overlapping(n=200)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    kernel = Kernel("rbf", GAMMA, 0.0, 3)
    K = kernel.matrix(X, np.arange(200), X, np.arange(200), 1)
    costs, options = [0.5, 4.0, 32.0], RunOptions(tolerance=1e-6)
    divisions, expected = [], []
    for test in (np.arange(0, 200, 5), np.arange(1, 200, 4)):
        train = np.setdiff1d(np.arange(200), test)
        weight = np.zeros(200)
        weight[train] = 1.0
        divisions.append(Division(weight, test))
        decided = []
        for cost in costs:
            training = training_set(X[train], y[train], np.arange(5), C=cost)
            model = formulation.solve(training, kernel, options).model
            decided.append(rule.predict(model, X[test], 1))
        expected.append(decided)
    family = formulation.family(K, y, costs, 1e-6, options)
    shares = []
    answers = family.decided(divisions, [rule], lambda share: shares.append(share) or True)
    for answer, decided in zip(answers, expected, strict=True):
        np.testing.assert_array_equal(answer[0], decided)
    assert all(0 <= share <= 1 for share in shares)


def test_a_family_that_does_not_converge_has_no_answer():
    X, y = overlapping(n=200)
    K = X @ X.T
    family = Pairs().family(K, y, [1.0], 1e-3, RunOptions(max_iterations=1))
    assert family.decided([Division(np.ones(200), np.arange(3))], [Votes(5)], lambda share: True) == [None]
    assert family.decided([], [Votes(5)], lambda share: True) == []


def test_training_sets_are_sorted_and_weighted():
    X, y = overlapping(n=60)
    weight = np.arange(60) % 3.0
    training = training_set(X, y, np.arange(5), C=C, class_weight={0: 2.0}, sample_weight=weight)
    assert np.all(np.diff(training.labels) >= 0)
    np.testing.assert_array_equal(y[training.order], training.labels)
    np.testing.assert_array_equal(training.class_of(np.arange(training.n_examples)), training.labels)
    np.testing.assert_allclose(training.weight, weight[training.order] * np.where(training.labels == 0, 2.0, 1.0))
    np.testing.assert_allclose(training.cost_bounds, C * training.weight)
    assert training.largest_cost_bound == training.cost_bounds.max()
    np.testing.assert_array_equal(training.place_of(training.order), np.arange(training.n_examples))
    assert np.all(training.place_of(np.flatnonzero(weight == 0)) == -1)


def test_weights_that_are_none():
    X, y = overlapping(n=60)
    assert checked_weights(None, X) is None
    with pytest.raises(ValueError, match="row 3 has -1"):
        checked_weights(np.where(np.arange(60) == 3, -1.0, 1.0), X)
    with pytest.raises(ValueError, match="only one class"):
        training_set(X, np.zeros(60, dtype=int), np.array([7]), C=1.0)
    with pytest.raises(ValueError, match="no example with positive sample_weight"):
        training_set(X, y, np.arange(5), C=1.0, sample_weight=(y > 0).astype(float))


def test_the_seed_of_nothing_is_always_the_same():
    assert RunOptions().seed == RunOptions(random_state=None).seed == 0
    assert RunOptions(random_state=3).seed == RunOptions(random_state=3).seed != RunOptions(random_state=4).seed
