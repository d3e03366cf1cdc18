"""The interior-point method that ends small linear machines, and when it is asked."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from reference.data import iris, random_classes
from reference.linear import linear_optimum
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, certify
from polymargin.formulations import linear_interior
from polymargin.solvers import Bounds, Differences, LinearInterior, SignedScores

MACHINES = [OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC]
BIASES = ["free", "regularized", None]
every_machine = pytest.mark.parametrize("Machine", MACHINES)
every_bias = pytest.mark.parametrize("bias", BIASES)


@pytest.fixture
def at_once(monkeypatch):
    """Nothing but a first step comes before it."""
    none = dict.fromkeys(("share", "binary_share", "pairs_share", "joint_share"), 0.0)
    rule = linear_interior.InteriorRule(**none, least_steps=0)
    monkeypatch.setattr(linear_interior, "InteriorRule", lambda: rule)
    cost = linear_interior.Cost
    monkeypatch.setattr(linear_interior, "Cost", lambda interior, limits, exact: cost(interior, limits, False))


def stretched(k=3, n=90, seed=0, largest=5):
    """Columns of sizes from a thousandth to a hundred thousand, one of them constant, one a copy."""
    X, y = random_classes(k, n=n, n_features=5, seed=seed)
    X = X * np.logspace(-3, largest, X.shape[1])
    return np.column_stack([X, np.full(len(X), 7.0), X[:, -1]]), y


def wine():
    return load_wine(return_X_y=True)


def cancer():
    return load_breast_cancer(return_X_y=True)


def fitted(Machine, X, y, weight=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return Machine(kernel="linear", **parameters).fit(X, y, sample_weight=weight)


@pytest.mark.usefixtures("at_once")
@every_machine
@every_bias
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("C", [0.1, 30.0])
def test_the_answer_is_the_optimum(Machine, bias, k, C):
    X, y = random_classes(k, n=40, n_features=4, seed=k)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    tol = 1e-6 if Machine is CrammerSingerSVC else 1e-9
    machine = fitted(Machine, X, y, weight, C=C, bias=bias, tol=tol)
    assert machine.solver_used_ == "interior-point"
    best = linear_optimum(machine, X, y, weight)
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=2 * tol)
    assert machine.primal_objective_ == pytest.approx(best.dual, rel=2 * tol)
    proof = certify(machine, X, y, weight)
    assert proof.duality_gap <= 2 * tol
    assert proof.dual_objective == pytest.approx(machine.dual_objective_, rel=1e-8)


@every_machine
@every_bias
@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("data", [wine, cancer, stretched])
def test_columns_of_all_sizes_are_solved(Machine, bias, C, data):
    X, y = data()
    machine = fitted(Machine, X, y, C=C, bias=bias, time_limit=20.0)
    assert machine.converged_
    assert machine.duality_gap_ <= 1e-3
    assert certify(machine, X, y).duality_gap <= 1.1e-3


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_pairs_with_columns_of_all_sizes_are_solved(C):
    X, y = stretched(4, 200, largest=3)
    machine = fitted(OneVsOneSVC, X, y, C=C, stop="gap", time_limit=20.0)
    assert machine.duality_gap_ <= 1e-3
    assert certify(machine, X, y).duality_gap <= 1.1e-3


@pytest.mark.usefixtures("at_once")
def test_pairs_are_those_of_the_decomposition():
    X, y = iris()
    machine = fitted(OneVsOneSVC, X, y, stop="gap", tol=1e-8)
    assert machine.solver_used_ == "interior-point"
    assert machine.n_iter_.shape == (3,)
    other = fitted(OneVsOneSVC, X, y, tol=1e-6, max_iter=10**6)
    assert other.solver_used_ == "decomposition"
    assert machine.dual_objective_ == pytest.approx(other.dual_objective_, rel=1e-7)
    np.testing.assert_allclose(machine.decision_function(X), other.decision_function(X), atol=1e-3)


@pytest.mark.usefixtures("at_once")
@every_machine
def test_threads_and_repetition_change_nothing(Machine):
    X, y = stretched()
    one, two = (fitted(Machine, X, y, C=10.0, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


@pytest.mark.usefixtures("at_once")
@every_machine
def test_its_support_is_that_of_the_optimum(Machine):
    X, y = iris()
    machine = fitted(Machine, X, y, C=10.0, tol=1e-8)
    exact = fitted(Machine, X, y, C=10.0, tol=1e-10, solver="sequential-dual", stop="gap")
    assert len(machine.support_) <= len(exact.support_) + 3


@pytest.mark.usefixtures("at_once")
@every_machine
@every_bias
@pytest.mark.parametrize("data", [iris, wine])
def test_the_weights_are_those_of_the_coefficients(Machine, bias, data):
    X, y = data()
    machine = fitted(Machine, X, y, bias=bias)
    assert machine.solver_used_ == "interior-point"
    own = machine.dual_coef_ @ machine.support_vectors_
    np.testing.assert_allclose(machine.coef_, own, rtol=1e-8, atol=1e-8 * np.abs(own).max())


@pytest.mark.usefixtures("at_once")
@every_machine
def test_a_violation_is_reached_from_there(Machine):
    X, y = iris()
    machine = fitted(Machine, X, y, stop="violation", tol=1e-3)
    assert machine.converged_


@every_machine
def test_a_warm_start_ends_where_a_cold_one_does(Machine):
    X, y = stretched()
    machine = fitted(Machine, X, y, C=1.0, warm_start=True)
    warm = machine.set_params(C=2.0).fit(X, y)
    cold = fitted(Machine, X, y, C=2.0)
    assert warm.dual_objective_ == pytest.approx(cold.dual_objective_, rel=2e-3)


def test_whoever_limits_the_steps_is_not_helped():
    X, y = wine()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        machine = OneVsRestSVC(kernel="linear", bias="regularized", max_iter=1000).fit(X, y)
    assert machine.solver_used_ == "sequential-dual"


def test_large_problems_are_for_others():
    cost = linear_interior.Cost(np.inf, {}, exact=False)
    asked = []

    def first(options):
        asked.append(options.max_iterations)
        return "first"

    options = linear_interior.RunOptions()
    assert linear_interior.with_interior_point(first, None, cost, options) == "first"
    assert linear_interior.with_interior_point(first, None, cost, replace(options, max_iterations=5)) == "first"
    assert asked == [-1, 5]


def dense_normal(hinges, T, shared, d):
    """The matrix by definition: margins of unit weights, and the response of each example."""
    k = hinges.columns
    units = np.eye(k * d).reshape(k * d, k, d).transpose(0, 2, 1)
    margins = np.stack([hinges.margins(unit) for unit in units])
    responses = margins * T
    share = shared / (1.0 + shared * T.sum(axis=1))
    responses = responses - T * (share * responses.sum(axis=2))[:, :, None]
    return np.einsum("amq,bmq->ab", margins, responses)


@pytest.mark.parametrize("limited", ["none", "some", "all"])
def test_the_matrix_is_that_of_the_margins(limited):
    rng = np.random.default_rng(2)
    n, d, k = 30, 4, 3
    X, labels = rng.normal(size=(n, d)), np.sort(rng.integers(0, k, n))
    shared = rng.uniform(0.1, 5.0, n) * {"none": 0, "some": rng.integers(0, 2, n), "all": 1}[limited]
    for hinges in (Differences(X, labels, k), SignedScores(X, np.where(labels == 0, 1.0, -1.0))):
        T = np.where(hinges.used, rng.uniform(0.1, 2.0, hinges.used.shape), 0.0)
        upper = hinges.normal(T, shared, lambda: True)
        whole = np.triu(upper) + np.triu(upper, 1).T
        np.testing.assert_allclose(whole, dense_normal(hinges, T, shared, d), atol=1e-10)
        assert hinges.normal(T, shared, lambda: False) is None


def test_weights_are_the_transposed_product():
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(12, 3)), rng.integers(0, 4, 12)
    for hinges in (Differences(X, labels, 4), SignedScores(X, rng.choice([-1.0, 1.0], 12))):
        a = np.where(hinges.used, rng.normal(size=hinges.used.shape), 0.0)
        V = rng.normal(size=(3, hinges.columns))
        assert np.sum(hinges.margins(V) * a) == pytest.approx(np.sum(V * hinges.weights(a)))


def test_steps_hardly_depend_on_the_cost():
    X, y = stretched()
    X = (X - X.mean(axis=0)) @ np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:5].T
    steps = []
    for C in (1.0, 1e3, 1e6):
        bounds = Bounds(np.full(len(y), C), np.full(len(y), np.inf))
        result = LinearInterior(Differences(X, y, 3), np.ones(5), bounds, 2.0, lambda gap: True).solve(1e-6)
        assert result.converged
        assert result.gap <= 1e-6
        steps.append(result.steps)
    assert max(steps) <= 40


def test_whoever_says_stop_gets_the_best_so_far():
    X, y = iris()
    bounds = Bounds(np.full(len(y), 100.0), np.full(len(y), np.inf))
    gaps = []

    def go_on(gap):
        gaps.append(gap)
        return len(gaps) < 20

    result = LinearInterior(Differences(X, y, 3), np.ones(4), bounds, 2.0, go_on).solve(1e-9)
    assert not result.converged
    assert result.gap == pytest.approx(min(gaps))
    assert result.dual <= result.primal < np.inf
