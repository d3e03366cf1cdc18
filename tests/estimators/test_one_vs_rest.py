"""OneVsRestSVC: the optimum of every class against all others."""

import numpy as np
import pytest
from reference.compare import audit, oracle, scores
from reference.data import DATA_SETS, digits, iris, overlapping, random_classes, wine
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from polymargin import OneVsOneSVC, OneVsRestSVC

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
    machine = OneVsRestSVC(C=C, tol=1e-6, **PSD_KERNELS[kernel]).fit(X, y)
    best, _ = oracle(machine, X, y)
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-6)
    assert machine.primal_objective_ == pytest.approx(best.dual, rel=1e-4)


@pytest.mark.parametrize("name", DATA_SETS)
def test_scores_are_those_of_the_optimum(name):
    X, y = DATA_SETS[name]()
    X, y = X[::2], y[::2]
    machine = OneVsRestSVC(C=5.0, tol=1e-6).fit(X, y)
    best, K = oracle(machine, X, y)
    np.testing.assert_allclose(scores(machine, X), best.scores(K), atol=1e-5)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("kernel", PSD_KERNELS)
def test_reported_objectives_are_those_of_the_attributes(kernel, tol):
    X, y = random_classes(4, n=100, seed=5)
    machine = OneVsRestSVC(C=2.0, tol=tol, **PSD_KERNELS[kernel]).fit(X, y)
    checked = audit(machine, X, y)
    assert checked.infeasibility < 1e-9
    assert machine.dual_objective_ == pytest.approx(checked.dual, rel=1e-5)
    assert machine.primal_objective_ == pytest.approx(checked.primal, rel=1e-5)
    assert checked.dual <= checked.primal * (1 + 1e-12)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_dual_never_exceeds_primal_and_the_gap_is_their_difference(tol):
    X, y = overlapping(n=300)
    machine = OneVsRestSVC(tol=tol).fit(X, y)
    assert machine.converged_
    assert machine.dual_objective_ <= machine.primal_objective_
    gap = (machine.primal_objective_ - machine.dual_objective_) / abs(machine.primal_objective_)
    assert machine.duality_gap_ == pytest.approx(gap, rel=0.1, abs=1e-12)
    assert 0 <= machine.duality_gap_ < 10 * tol


@pytest.mark.parametrize("name", DATA_SETS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("tol", "atol"), [(1e-3, 2e-3), (1e-6, 1e-5)])
def test_scores_agree_with_a_precise_scikit_learn(name, kernel, tol, atol):
    X, y = DATA_SETS[name]()
    ours = OneVsRestSVC(tol=tol, **KERNELS[kernel]).fit(X, y)
    theirs = OneVsRestClassifier(SVC(tol=1e-9, **KERNELS[kernel])).fit(X, y)
    expected = theirs.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), expected, atol=atol * max(1.0, np.abs(expected).max()))


def test_unseen_rows_get_scikit_learns_labels():
    X, y = digits()
    ours = OneVsRestSVC(C=5.0).fit(X[:900], y[:900])
    theirs = OneVsRestClassifier(SVC(C=5.0)).fit(X[:900], y[:900])
    assert np.mean(ours.predict(X[900:]) == theirs.predict(X[900:])) >= 0.998


def test_linear_coef_gives_the_decision_function():
    X, y = wine()
    machine = OneVsRestSVC(kernel="linear", tol=1e-6).fit(X, y)
    theirs = OneVsRestClassifier(SVC(kernel="linear", tol=1e-9)).fit(X, y)
    assert machine.coef_.shape == (3, X.shape[1])
    np.testing.assert_allclose(machine.coef_, np.vstack([e.coef_ for e in theirs.estimators_]), atol=1e-5)
    np.testing.assert_allclose(X @ machine.coef_.T + machine.intercept_, machine.decision_function(X), atol=1e-6)


def test_dual_coef_gives_the_decision_function_with_any_kernel():
    X, y = wine()
    machine = OneVsRestSVC(gamma=0.1).fit(X, y)
    squared = ((X[:, None, :] - machine.support_vectors_[None]) ** 2).sum(axis=2)
    expected = np.exp(-0.1 * squared) @ machine.dual_coef_.T + machine.intercept_
    np.testing.assert_allclose(machine.decision_function(X), expected, atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_two_classes_are_one_problem_with_the_second_class_positive(kernel):
    X, y = iris()
    X, y = X[y > 0], y[y > 0]
    machine = OneVsRestSVC(kernel=kernel, tol=1e-6).fit(X, y)
    theirs = SVC(kernel=kernel, tol=1e-8).fit(X, y)
    assert machine.dual_coef_.shape == (1, len(machine.support_))
    assert machine.intercept_.shape == (1,)
    assert machine.decision_function(X).shape == (len(X),)
    np.testing.assert_allclose(machine.decision_function(X), theirs.decision_function(X), atol=1e-5)
    if kernel == "linear":
        assert machine.coef_.shape == (1, X.shape[1])
        np.testing.assert_allclose(machine.coef_, theirs.coef_, atol=1e-5)
    pairwise = OneVsOneSVC(kernel=kernel, tol=1e-6).fit(X, y)
    assert machine.dual_objective_ == pytest.approx(pairwise.dual_objective_, rel=1e-8)


@pytest.mark.parametrize("k", [3, 5, 8])
def test_argmax_of_the_decision_function_is_the_prediction(k):
    X, y = random_classes(k, n=40 * k, seed=k)
    machine = OneVsRestSVC(C=0.5).fit(X[: 20 * k], y[: 20 * k])
    values = machine.decision_function(X)
    assert values.shape == (len(X), k)
    np.testing.assert_array_equal(machine.classes_[values.argmax(axis=1)], machine.predict(X))


def test_a_class_does_not_see_how_the_rest_is_divided():
    X, y = random_classes(4, n=120, seed=1)
    merged = np.where(y == 3, 2, y)
    all_four = OneVsRestSVC(tol=1e-6).fit(X, y).decision_function(X)
    three = OneVsRestSVC(tol=1e-6).fit(X, merged).decision_function(X)
    np.testing.assert_allclose(all_four[:, :2], three[:, :2], atol=1e-5)
    assert np.abs(all_four[:, 2] - three[:, 2]).max() > 0.1
