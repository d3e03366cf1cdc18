"""The references themselves, against scikit-learn: an oracle that is wrong proves nothing."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

from reference.binary import solve_binary
from reference.certificate import audit_problems, offsets_are_unique, one_vs_one_problems
from reference.composition import one_vs_one, one_vs_rest, pairs, upper_bounds
from reference.data import DATA_SETS, iris, separable
from reference.decisions import adag, dag, decide, vote_counts, votes
from reference.kernels import gamma_value, kernel_matrix
from reference.together import crammer_singer, hsu_lin_primal, weston_watkins


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_kernels_agree_with_scikit_learn(kernel):
    X, _ = iris()
    parameters = {} if kernel == "linear" else {"gamma": 0.3}
    if kernel in ("poly", "sigmoid"):
        parameters["coef0"] = 0.5
    if kernel == "poly":
        parameters["degree"] = 4
    expected = pairwise_kernels(X, X[:20], metric=kernel, **parameters)
    np.testing.assert_allclose(kernel_matrix(X, X[:20], kernel, **parameters), expected, rtol=1e-10)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.25])
def test_gamma_agrees_with_scikit_learn(gamma):
    X, y = iris()
    X = X + 3.0
    assert gamma_value(gamma, X) == pytest.approx(SVC(gamma=gamma).fit(X, y)._gamma)


def test_gamma_scale_counts_a_row_of_weight_two_twice():
    X, _ = iris()
    weight = np.where(np.arange(len(X)) % 3 == 0, 2, 1)
    assert gamma_value("scale", X, weight) == pytest.approx(gamma_value("scale", np.repeat(X, weight, axis=0)))


def test_balanced_bounds_agree_with_scikit_learn():
    y = np.array([0] * 10 + [1] * 5 + [2] * 3)
    machine = SVC(class_weight="balanced").fit(np.arange(18.0)[:, None], y)
    bounds = upper_bounds(y, 2.0, "balanced")
    np.testing.assert_allclose(bounds, 2.0 * machine.class_weight_[y])


@pytest.mark.parametrize("name", DATA_SETS)
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_one_vs_one_agrees_with_scikit_learn(name, C):
    X, y = DATA_SETS[name]()
    X, y = X[::2], y[::2]
    gamma = gamma_value("scale", X)
    K = kernel_matrix(X, X, "rbf", gamma=gamma)
    oracle = one_vs_one(K, y, upper_bounds(y, C))
    machine = SVC(C=C, tol=1e-10, decision_function_shape="ovo").fit(X, y)

    np.testing.assert_allclose(oracle.scores(K), machine.decision_function(X), atol=1e-6)
    problems = one_vs_one_problems(machine, y)
    audit = audit_problems(problems, K, upper_bounds(y, C))
    assert audit.infeasibility < 1e-9
    assert offsets_are_unique(problems, upper_bounds(y, C))
    assert oracle.dual == pytest.approx(audit.dual, rel=1e-9)
    assert oracle.primal == pytest.approx(audit.primal, rel=1e-5)  # LIBSVM keeps its kernel in float32
    assert oracle.dual == pytest.approx(oracle.primal, rel=1e-8)


def test_one_vs_one_with_weights_agrees_with_scikit_learn():
    X, y = iris()
    weight = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    weight[::7] = 0.0
    class_weight = {0: 2.0, 2: 0.3}
    K = kernel_matrix(X, X, "rbf", gamma=0.4)
    oracle = one_vs_one(K, y, upper_bounds(y, 5.0, class_weight, weight))
    machine = SVC(C=5.0, gamma=0.4, tol=1e-10, class_weight=class_weight, decision_function_shape="ovo")
    machine.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(oracle.scores(K), machine.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_one_vs_rest_agrees_with_scikit_learn(classes):
    X, y = iris()
    X, y = X[y > 2 - classes], y[y > 2 - classes]
    K = kernel_matrix(X, X, "rbf", gamma=0.25)
    oracle = one_vs_rest(K, y, upper_bounds(y, 3.0))
    machine = OneVsRestClassifier(SVC(C=3.0, gamma=0.25, tol=1e-10)).fit(X, y)
    expected = machine.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(oracle.scores(K), expected, atol=1e-6)


def test_hard_margin_agrees_with_a_large_bound():
    X, y = separable(n_classes=2)
    t = np.where(y == 0, 1.0, -1.0)
    K = kernel_matrix(X, X, "linear")
    hard, soft = solve_binary(K, t, np.inf), solve_binary(K, t, 1e3)
    assert hard.dual == pytest.approx(soft.dual, rel=1e-7)
    assert hard.dual == pytest.approx(hard.primal, rel=1e-6)
    assert np.min(t * (K @ (hard.alpha * t) + hard.b)) == pytest.approx(1.0, abs=1e-6)


def _values(k, winner):
    return np.array([1.0 if winner(i, j) == i else -1.0 for i, j in pairs(k)])


def test_decisions_on_tournaments_worked_by_hand():
    # A larger index wins every game.
    assert [rule(_values(5, max), 5) for rule in (votes, dag, adag)] == [4, 4, 4]
    # 0 beats 1, 1 beats 2, 2 beats 0: one vote each, so 0 by index; dag asks (0, 2), then (1, 2): 1;
    # adag plays (0, 2) with 1 going through, then (2, 1): 1.
    cycle = np.array([1.0, -1.0, 1.0])
    assert [rule(cycle, 3) for rule in (votes, dag, adag)] == [0, 1, 1]
    # 3 beats 0 alone, all other games go to the smaller index: votes 2, 2, 1, 1.
    upset = np.array([1.0, 1.0, -1.0, 1.0, 1.0, 1.0])
    assert vote_counts(upset[None], 4).tolist() == [[2, 2, 1, 1]]
    # dag: 3 beats 0, 1 beats 3, 1 beats 2; adag: (0, 3) to 3, (1, 2) to 1, then 1 beats 3.
    assert [rule(upset, 4) for rule in (votes, dag, adag)] == [0, 1, 1]


def test_the_three_decisions_differ_from_each_other():
    values = np.random.default_rng(0).normal(size=(300, 15))
    answers = {kind: decide(kind, values, 6) for kind in ("votes", "dag", "adag")}
    assert np.mean(answers["votes"] != answers["dag"]) > 0.05
    assert np.mean(answers["dag"] != answers["adag"]) > 0.05


def test_votes_agree_with_scikit_learn():
    X, y = DATA_SETS["digits"]()
    machine = SVC(C=0.05, decision_function_shape="ovo").fit(X[:150], y[:150])
    np.testing.assert_array_equal(decide("votes", machine.decision_function(X), 10), machine.predict(X))


@pytest.mark.parametrize("bias", [None, "regularized", "free"])
@pytest.mark.parametrize("solve", [weston_watkins, crammer_singer])
def test_all_together_references_close_their_gap(solve, bias):
    X, y = iris()
    X, y = X[::4], y[::4]
    weight = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    weight[::7] = 0.0
    best = solve(kernel_matrix(X, X, "rbf", gamma=0.4), y, upper_bounds(y, 5.0, None, weight), bias=bias)
    assert best.dual == pytest.approx(best.primal, rel=1e-8)
    np.testing.assert_allclose(best.B.sum(axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(best.b.sum(), 0.0, atol=1e-9)
    assert (best.B[weight == 0] == 0).all()


def test_weston_watkins_with_two_classes_agrees_with_scikit_learn():
    X, y = iris()
    X, y = X[y > 0][::2], y[y > 0][::2]
    K = kernel_matrix(X, X, "rbf", gamma=0.25)
    best = weston_watkins(K, y, upper_bounds(y, 3.0), bias="free")
    machine = SVC(C=3.0, gamma=0.25, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(best.scores(K)[:, 0], machine.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("bias", [None, "regularized"])
def test_crammer_singer_agrees_with_scikit_learn(bias):
    X, y = iris()
    X, y = X[::3], y[::3]
    K = kernel_matrix(X, X, "linear")
    best = crammer_singer(K, y, upper_bounds(y, 0.5), bias=bias)
    machine = LinearSVC(
        multi_class="crammer_singer", C=0.5, fit_intercept=bias is not None, tol=1e-9, max_iter=100_000
    ).fit(X, y)
    np.testing.assert_allclose(best.scores(K), machine.decision_function(X), atol=1e-4)


def test_weston_watkins_primal_and_dual_agree():
    X, y = iris()
    X, y = X[::5], y[::5]
    K = kernel_matrix(X, X, "linear")
    best = weston_watkins(K, y, upper_bounds(y, 0.7), bias="free")
    W, b, objective = hsu_lin_primal(X, y, 0.7, 4)
    assert objective == pytest.approx(best.dual, rel=1e-9)
    np.testing.assert_allclose(X @ W.T + b, best.all_scores(K), atol=1e-5)
