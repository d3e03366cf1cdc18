"""OneVsOneSVC: the optimum of every pair, and scikit-learn's conventions."""

import numpy as np
import pytest
from reference.compare import audit, oracle, scores
from reference.composition import pairs
from reference.data import DATA_SETS, digits, iris, overlapping, random_classes, wine
from sklearn.svm import SVC

from polymargin import OneVsOneSVC

PSD_KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "rbf": {"kernel": "rbf"},
}
KERNELS = {**PSD_KERNELS, "sigmoid": {"kernel": "sigmoid", "gamma": 0.01, "coef0": 0.1}}


@pytest.mark.parametrize("kernel", PSD_KERNELS)
@pytest.mark.parametrize("C", [0.1, 1.0, 50.0])
def test_dual_objective_is_the_optimum(kernel, C):
    X, y = random_classes(4, n=100, seed=3)
    machine = OneVsOneSVC(C=C, tol=1e-6, **PSD_KERNELS[kernel]).fit(X, y)
    best, _ = oracle(machine, X, y)
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-6)
    assert machine.primal_objective_ == pytest.approx(best.dual, rel=1e-4)


@pytest.mark.parametrize("name", DATA_SETS)
def test_scores_are_those_of_the_optimum(name):
    X, y = DATA_SETS[name]()
    X, y = X[::2], y[::2]
    machine = OneVsOneSVC(C=5.0, tol=1e-6).fit(X, y)
    best, K = oracle(machine, X, y)
    np.testing.assert_allclose(scores(machine, X), best.scores(K), atol=1e-5)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("kernel", PSD_KERNELS)
def test_reported_objectives_are_those_of_the_attributes(kernel, tol):
    X, y = random_classes(4, n=100, seed=5)
    machine = OneVsOneSVC(C=2.0, tol=tol, **PSD_KERNELS[kernel]).fit(X, y)
    checked = audit(machine, X, y)
    assert checked.infeasibility < 1e-9
    assert machine.dual_objective_ == pytest.approx(checked.dual, rel=1e-5)
    assert machine.primal_objective_ == pytest.approx(checked.primal, rel=1e-5)
    assert checked.dual <= checked.primal * (1 + 1e-12)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_dual_never_exceeds_primal_and_the_gap_is_their_difference(tol):
    X, y = overlapping(n=300)
    machine = OneVsOneSVC(tol=tol).fit(X, y)
    assert machine.converged_
    assert machine.dual_objective_ <= machine.primal_objective_
    gap = (machine.primal_objective_ - machine.dual_objective_) / abs(machine.primal_objective_)
    assert machine.duality_gap_ == pytest.approx(gap, rel=0.1, abs=1e-12)
    assert 0 <= machine.duality_gap_ < 10 * tol


@pytest.mark.parametrize("name", DATA_SETS)
@pytest.mark.parametrize(("tol", "atol"), [(1e-3, 2e-3), (1e-6, 1e-5)])
def test_rbf_scores_agree_with_scikit_learn_at_the_same_tolerance(name, tol, atol):
    X, y = DATA_SETS[name]()
    ours = OneVsOneSVC(C=10.0, tol=tol).fit(X, y)
    theirs = SVC(C=10.0, tol=tol, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(scores(ours, X), theirs.decision_function(X), atol=atol)
    assert np.mean(ours.predict(X) == theirs.predict(X)) >= 0.999
    assert len(ours.support_) == pytest.approx(len(theirs.support_), rel=0.01, abs=1)


@pytest.mark.parametrize("name", DATA_SETS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("tol", "atol"), [(1e-3, 2e-3), (1e-6, 1e-5)])
def test_every_kernel_agrees_with_a_precise_scikit_learn(name, kernel, tol, atol):
    X, y = DATA_SETS[name]()
    ours = OneVsOneSVC(tol=tol, **KERNELS[kernel]).fit(X, y)
    theirs = SVC(tol=1e-9, decision_function_shape="ovo", **KERNELS[kernel]).fit(X, y)
    expected = theirs.decision_function(X)
    np.testing.assert_allclose(scores(ours, X), expected, atol=atol * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.125, 2])
def test_gamma_means_what_it_means_in_scikit_learn(gamma):
    X, y = wine()
    X = 3.0 * X + 1.0
    ours = OneVsOneSVC(gamma=gamma, tol=1e-6).fit(X, y)
    theirs = SVC(gamma=gamma, tol=1e-8, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(scores(ours, X), theirs.decision_function(X), atol=1e-5)


def test_unseen_rows_get_scikit_learns_labels():
    X, y = digits()
    ours = OneVsOneSVC(C=5.0).fit(X[:900], y[:900])
    theirs = SVC(C=5.0, decision_function_shape="ovo").fit(X[:900], y[:900])
    assert np.mean(ours.predict(X[900:]) == theirs.predict(X[900:])) >= 0.999
    np.testing.assert_allclose(scores(ours, X[900:]), theirs.decision_function(X[900:]), atol=2e-3)


def test_attributes_have_scikit_learns_layout():
    X, y = digits(500)
    ours = OneVsOneSVC(C=5.0, tol=1e-6).fit(X, y)
    theirs = SVC(C=5.0, tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


def test_linear_coef_is_scikit_learns():
    X, y = wine()
    ours = OneVsOneSVC(kernel="linear", tol=1e-6).fit(X, y)
    theirs = SVC(kernel="linear", tol=1e-8).fit(X, y)
    assert ours.coef_.shape == (3, X.shape[1])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(X @ ours.coef_.T + ours.intercept_, scores(ours, X), atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_two_classes_have_scikit_learns_signs(kernel):
    X, y = iris()
    X, y = X[y > 0], np.array(["versicolor", "virginica"])[y[y > 0] - 1]
    ours = OneVsOneSVC(kernel=kernel, tol=1e-6).fit(X, y)
    theirs = SVC(kernel=kernel, tol=1e-8).fit(X, y)
    assert ours.dual_coef_.shape == (1, len(ours.support_))
    assert ours.intercept_.shape == (1,)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    if kernel == "linear":
        assert ours.coef_.shape == (1, X.shape[1])
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X) == "virginica", ours.decision_function(X) > 0)


def test_pairwise_values_of_two_classes_are_minus_the_decision_function():
    X, y = iris()
    X, y = X[y > 0], y[y > 0]
    machine = OneVsOneSVC().fit(X, y)
    assert machine.decision_function(X).shape == (len(X),)
    assert machine.pairwise_decision_function(X).shape == (len(X), 1)
    np.testing.assert_array_equal(machine.pairwise_decision_function(X)[:, 0], -machine.decision_function(X))


def test_pairwise_values_come_in_order_and_positive_for_the_first_class():
    X, y = digits(600)
    machine = OneVsOneSVC(C=100.0).fit(X, y)
    values = machine.pairwise_decision_function(X)
    assert values.shape == (len(X), 45)
    for column, (i, j) in enumerate(pairs(10)):
        assert (values[y == i, column] > 0).all()
        assert (values[y == j, column] < 0).all()


def test_a_pair_knows_nothing_of_the_other_classes():
    X, y = wine()
    machine = OneVsOneSVC(gamma=0.05, tol=1e-6).fit(X, y)
    values = machine.pairwise_decision_function(X)
    for column, (i, j) in enumerate(pairs(3)):
        own = (y == i) | (y == j)
        alone = OneVsOneSVC(gamma=0.05, tol=1e-6).fit(X[own], y[own])
        np.testing.assert_allclose(values[:, column], alone.pairwise_decision_function(X)[:, 0], atol=1e-5)


@pytest.mark.parametrize("decision", ["votes", "dag", "adag", "coupling"])
@pytest.mark.parametrize("k", [3, 4, 7])
def test_argmax_of_the_decision_function_is_the_prediction(decision, k):
    X, y = random_classes(k, n=40 * k, seed=k)
    machine = OneVsOneSVC(decision=decision, C=0.5).fit(X[: 20 * k], y[: 20 * k])
    values = machine.decision_function(X)
    assert values.shape == (len(X), k)
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(machine.classes_[values.argmax(axis=1)], machine.predict(X))
