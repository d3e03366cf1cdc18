"""Weights are bounds: ``C_i = C * class_weight[y_i] * sample_weight[i]``."""

import numpy as np
import pytest
from reference.compare import audit, oracle, scores
from reference.data import iris, random_classes, wine
from sklearn.utils.class_weight import compute_class_weight

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, OutputCodeSVC, UncertaintySVC, WestonWatkinsSVC

MACHINES = [OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC, UncertaintySVC, OutputCodeSVC]


def random_weights(n, seed=0):
    weight = np.random.default_rng(seed).uniform(0.1, 4.0, n)
    weight[::9] = 0.0
    return weight


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 2: 0.25}, "balanced"])
@pytest.mark.parametrize("weighted", [False, True])
def test_weighted_problem_is_solved_to_its_optimum(Machine, class_weight, weighted):
    X, y = random_classes(3, n=90, seed=11)
    kept = (y != 2) | (np.arange(len(y)) % 2 == 0)  # unequal classes
    X, y = X[kept], y[kept]
    weight = random_weights(len(y)) if weighted else None
    machine = Machine(C=2.0, tol=1e-6, class_weight=class_weight).fit(X, y, sample_weight=weight)
    best, K = oracle(machine, X, y, weight)
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-6)
    np.testing.assert_allclose(scores(machine, X), best.scores(K), atol=2e-5)
    checked = audit(machine, X, y, weight)
    assert checked.infeasibility < 1e-9
    assert checked.dual == pytest.approx(machine.dual_objective_, rel=1e-6)


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_row_given_twice_is_a_row_of_weight_two(Machine, gamma, class_weight):
    X, y = wine()
    X = X + 1.0
    repeats = np.where(np.arange(len(y)) % 4 == 0, 2, 1)
    params = {"C": 0.2, "gamma": gamma, "class_weight": class_weight, "tol": 1e-6}
    weighted = Machine(**params).fit(X, y, sample_weight=repeats)
    repeated = Machine(**params)
    repeated.fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    np.testing.assert_allclose(scores(weighted, X), scores(repeated, X), atol=1e-5)
    assert weighted.dual_objective_ == pytest.approx(repeated.dual_objective_, rel=1e-6)
    plain = Machine(**params).fit(X, y)
    assert np.abs(scores(weighted, X) - scores(plain, X)).max() > 1e-3


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("gamma", ["scale", 0.3])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_row_of_weight_zero_is_not_there(Machine, gamma, class_weight):
    X, y = wine()
    weight = np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.0)
    kept = weight > 0
    weighted = Machine(gamma=gamma, class_weight=class_weight, tol=1e-6).fit(X, y, sample_weight=weight)
    without = Machine(gamma=gamma, class_weight=class_weight, tol=1e-6).fit(X[kept], y[kept])
    np.testing.assert_allclose(scores(weighted, X), scores(without, X), atol=1e-5)
    assert not np.isin(weighted.support_, np.flatnonzero(~kept)).any()


@pytest.mark.parametrize("Machine", MACHINES)
def test_balanced_is_the_dictionary_that_scikit_learn_computes(Machine):
    X, y = iris()
    X, y = X[20:120], y[20:120]
    values = compute_class_weight("balanced", classes=np.unique(y), y=y)
    by_name = Machine(class_weight="balanced").fit(X, y)
    by_value = Machine(class_weight=dict(enumerate(values))).fit(X, y)
    np.testing.assert_array_equal(by_name.dual_coef_, by_value.dual_coef_)
    assert np.ptp(values) > 0.1
    assert not np.array_equal(scores(by_name, X), scores(Machine().fit(X, y), X))


@pytest.mark.parametrize("Machine", MACHINES)
def test_class_weight_is_keyed_by_the_labels_as_given(Machine):
    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    by_name = Machine(class_weight={"versicolor": 5.0}).fit(X, names)
    by_index = Machine(class_weight={1: 5.0}).fit(X, y)
    np.testing.assert_array_equal(by_name.dual_coef_, by_index.dual_coef_)


@pytest.mark.parametrize("Machine", MACHINES)
def test_class_weight_and_sample_weight_multiply(Machine):
    X, y = wine()
    weight = random_weights(len(y), seed=2) + 0.1
    factors = np.array([0.5, 2.0, 1.5])
    both = Machine(gamma=0.1, tol=1e-6, class_weight=dict(enumerate(factors))).fit(X, y, sample_weight=weight)
    one = Machine(gamma=0.1, tol=1e-6).fit(X, y, sample_weight=weight * factors[y])
    np.testing.assert_allclose(scores(both, X), scores(one, X), atol=1e-5)


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_common_factor_moves_between_cost_and_weights(Machine):
    X, y = wine()
    weight = random_weights(len(y), seed=4)
    small = Machine(C=1.0, gamma=0.1, tol=1e-6).fit(X, y, sample_weight=4.0 * weight)
    large = Machine(C=4.0, gamma=0.1, tol=1e-6).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(scores(small, X), scores(large, X), atol=1e-5)
    assert small.dual_objective_ == pytest.approx(large.dual_objective_, rel=1e-7)


@pytest.mark.parametrize("Machine", MACHINES)
def test_scalar_weight_is_a_weight_for_every_row(Machine):
    X, y = iris()
    scalar = Machine(gamma=0.2, tol=1e-6).fit(X, y, sample_weight=3.0)
    array = Machine(gamma=0.2, tol=1e-6).fit(X, y, sample_weight=np.full(len(y), 3.0))
    np.testing.assert_array_equal(scalar.dual_coef_, array.dual_coef_)
