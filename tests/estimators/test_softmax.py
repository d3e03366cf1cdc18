"""Zien et al.'s machine: its optimum by an independent method, its special cases, and what it says of itself."""

import warnings
from functools import partial

import numpy as np
import pytest
from reference.data import digits, iris, overlapping, random_classes, wine
from reference.kernels import kernel_matrix
from reference.softmax import one_vs_rest_loss, optimum, softmax_loss
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from polymargin import SoftmaxSVC, certify
from polymargin.selection import regularization_path
from polymargin.solvers import NewtonSettings, Objective, primal_newton

BASES = ["kpca", "cholesky", "subset"]
GAMMAS = [0.0, 0.5, 1.0, 4.0, np.inf]
CLASS_KERNEL = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.5]])


def small(k=3, n=24, seed=0):
    X, y = random_classes(k, n=n, n_features=3, seed=seed)
    return X, y, kernel_matrix(X, X, "rbf", gamma=0.3)


def centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("bias", ["free", None])
def test_the_optimum_is_that_of_an_independent_method(gamma, bias):
    X, y, K = small()
    tol = 1e-6 if np.isinf(gamma) else 1e-3
    machine = SoftmaxSVC(C=2.0, gamma=0.3, aggregation=gamma, bias=bias, tol=tol).fit(X, y)
    assert machine.converged_
    best, scores = optimum(K, y, np.full(len(y), 2.0), lambda s, c: softmax_loss(s, c, gamma), free_bias=bias == "free")
    # Where there are kinks, the reference's method has no right to find the optimum; ours may not be worse.
    exact = np.isfinite(gamma)
    assert machine.primal_objective_ <= best * (1 + 1e-6)
    assert machine.primal_objective_ == pytest.approx(best, rel=1e-7 if exact else 1e-3)
    np.testing.assert_allclose(machine.decision_function(X), centred(scores), atol=1e-4 if exact else 0.05)


@pytest.mark.parametrize("strategy", ["joint", "one-vs-rest"])
@pytest.mark.parametrize("k", [2, 3])
def test_strategies_and_two_classes(strategy, k):
    X, y, K = small(k)
    machine = SoftmaxSVC(C=2.0, gamma=0.3, strategy=strategy).fit(X, y)
    joint = strategy == "joint" or k == 2
    loss = (lambda s, c: softmax_loss(s, c, 1.0)) if joint else one_vs_rest_loss
    class_kernel = np.eye(k) if joint else np.eye(k) / 2
    best, scores = optimum(K, y, np.full(len(y), 2.0), loss, class_kernel=class_kernel)
    assert machine.primal_objective_ == pytest.approx(best, rel=1e-7)
    expected = centred(scores) if joint else scores
    got = machine.decision_function(X)
    np.testing.assert_allclose(got, expected[:, 1] if k == 2 else expected, atol=1e-4)


def test_one_vs_rest_is_the_joint_machine_on_each_class_against_the_rest():
    X, y, _ = small()
    together = SoftmaxSVC(C=2.0, gamma=0.3, strategy="one-vs-rest").fit(X, y)
    singles = [SoftmaxSVC(C=2.0, gamma=0.3).fit(X, y == m) for m in range(3)]
    scores = np.column_stack([machine.decision_function(X) for machine in singles])
    np.testing.assert_allclose(together.decision_function(X), scores, atol=1e-8)
    assert together.primal_objective_ == pytest.approx(sum(m.primal_objective_ for m in singles), rel=1e-10)


def test_the_default_is_multinomial_logistic_regression():
    X, y = wine()
    machine = SoftmaxSVC(C=0.5, kernel="linear").fit(X, y)
    peer = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(machine.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(machine.coef_, peer.coef_, atol=1e-5)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("kernel", [{"kernel": "rbf", "gamma": 0.1}, {"kernel": "poly", "degree": 2, "coef0": 1.0}])
def test_exact_bases_have_the_same_optimum(basis, kernel):
    X, y = wine()
    machine = SoftmaxSVC(basis=basis, **kernel).fit(X, y)
    expected = SoftmaxSVC(**kernel).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), expected.decision_function(X), atol=1e-7)
    assert machine.primal_objective_ == pytest.approx(expected.primal_objective_, rel=1e-10)


@pytest.mark.parametrize("basis", BASES)
def test_the_linear_kernel_needs_no_basis(basis):
    X, y = wine()
    direct = SoftmaxSVC(kernel="linear").fit(X, y)
    through = SoftmaxSVC(kernel="linear", basis=basis, rank=len(X)).fit(X, y)
    assert direct.n_kernel_evaluations_ == 0
    np.testing.assert_allclose(direct.decision_function(X), through.decision_function(X), atol=1e-7)
    np.testing.assert_allclose(direct.coef_, through.coef_, atol=1e-7)
    np.testing.assert_allclose(direct.dual_coef_ @ X, direct.coef_, atol=1e-7)  # the representer theorem
    csr = SoftmaxSVC(kernel="linear").fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(csr.decision_function(X), direct.decision_function(X), atol=1e-7)


def test_objectives_are_continuous_in_the_aggregation():
    X, y = iris()

    def objective(gamma):
        return SoftmaxSVC(aggregation=gamma, tol=1e-6).fit(X, y).primal_objective_

    assert objective(1e-10) == pytest.approx(objective(0.0), rel=1e-7)
    assert objective(1e10) == pytest.approx(objective(np.inf), rel=3e-6)
    assert objective(1.0 + 1e-9) == pytest.approx(objective(1.0), rel=1e-7)
    series = [objective(gamma) for gamma in (0.0, 0.3, 1.0, 5.0, 100.0, np.inf)]
    assert series == sorted(series, reverse=True)


def test_identity_as_class_kernel_is_none():
    X, y = iris()
    plain = SoftmaxSVC().fit(X, y)
    identity = SoftmaxSVC(class_kernel=np.eye(3)).fit(X, y)
    np.testing.assert_allclose(identity.decision_function(X), plain.decision_function(X), atol=1e-9)
    assert identity.primal_objective_ == pytest.approx(plain.primal_objective_, rel=1e-12)


@pytest.mark.parametrize("class_kernel", [CLASS_KERNEL, np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1.0]])])
def test_class_kernels_enter_as_the_formula_says(class_kernel):
    X, y, K = small()
    machine = SoftmaxSVC(C=2.0, gamma=0.3, class_kernel=class_kernel).fit(X, y)
    best, scores = optimum(K, y, np.full(len(y), 2.0), lambda s, c: softmax_loss(s, c, 1.0), class_kernel=class_kernel)
    assert machine.primal_objective_ == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(machine.decision_function(X), centred(scores), atol=1e-4)


def test_a_scaled_class_kernel_is_a_scaled_cost():
    X, y = iris()
    scaled = SoftmaxSVC(C=1.0, class_kernel=4 * np.eye(3)).fit(X, y)
    plain = SoftmaxSVC(C=4.0).fit(X, y)
    np.testing.assert_allclose(scaled.decision_function(X), plain.decision_function(X), atol=1e-8)
    two = SoftmaxSVC(class_kernel=np.array([[1.0, -0.5], [-0.5, 2.0]])).fit(X, y > 0)
    np.testing.assert_array_equal(two.predict(X), two.decision_function(X) > 0)


@pytest.mark.parametrize("gamma", [0.0, 1.0, 3.0, np.inf])
@pytest.mark.parametrize("bias", ["free", "regularized", None])
def test_the_certificate(gamma, bias):
    X, y = overlapping(n=1500, n_features=8, n_classes=4)
    machine = SoftmaxSVC(aggregation=gamma, bias=bias, basis="cholesky", rank=100).fit(X, y)
    exact = SoftmaxSVC(aggregation=gamma, bias=bias, basis="cholesky", rank=100, tol=1e-7).fit(X, y)
    assert machine.converged_
    assert 0 <= machine.duality_gap_ <= 1e-3
    assert exact.duality_gap_ <= 1e-7
    assert machine.dual_objective_ <= exact.primal_objective_ <= machine.primal_objective_ * (1 + 1e-12)
    assert machine.n_iter_ < exact.n_iter_


def test_between_zero_and_one_there_is_a_stationary_point_and_a_bound_that_holds():
    X, y = overlapping(n=600, n_features=8, n_classes=4)
    machine = SoftmaxSVC(aggregation=0.5, gamma=0.1).fit(X, y)
    convex = SoftmaxSVC(aggregation=1.0, gamma=0.1).fit(X, y)
    assert machine.converged_
    assert machine.gradient_norm_ < 1e-6
    assert machine.dual_objective_ <= convex.primal_objective_ <= machine.primal_objective_


@pytest.mark.parametrize("basis", BASES)
def test_a_row_of_weight_two_is_a_row_given_twice(basis):
    X, y = iris()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = SoftmaxSVC(gamma=0.3, basis=basis, class_weight={0: 2.0}).fit(X, y, sample_weight=weight)
    repeated = SoftmaxSVC(gamma=0.3, basis=basis, class_weight={0: 2.0}).fit(
        np.repeat(X, weight, 0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-7)
    assert weighted.primal_objective_ == pytest.approx(repeated.primal_objective_, rel=1e-10)


@pytest.mark.parametrize("basis", BASES)
def test_repeated_examples_and_constant_features(basis):
    X, y = iris()
    X = np.hstack([X, np.full((len(X), 1), 3.0)])
    expected = SoftmaxSVC(C=2.0, gamma=0.3).fit(X, y).decision_function(X)
    doubled = SoftmaxSVC(gamma=0.3, basis=basis).fit(np.vstack([X, X]), np.append(y, y))
    np.testing.assert_allclose(doubled.decision_function(X), expected, atol=1e-7)
    constant = SoftmaxSVC(basis=basis, kernel="linear", rank=5).fit(np.zeros((6, 2)), [0, 0, 0, 1, 1, 2])
    np.testing.assert_allclose(constant.predict_proba(np.zeros((1, 2))), [[1 / 2, 1 / 3, 1 / 6]], atol=1e-6)


def test_precomputed_and_callable_kernels():
    X, y, K = small(n=60)
    direct = SoftmaxSVC(gamma=0.3).fit(X, y).decision_function(X)
    for basis in BASES:
        precomputed = SoftmaxSVC(kernel="precomputed", basis=basis).fit(K, y)
        called = SoftmaxSVC(kernel=lambda A, B: kernel_matrix(A, B, "rbf", gamma=0.3), basis=basis).fit(X, y)
        np.testing.assert_allclose(precomputed.decision_function(K), direct, atol=1e-7)
        np.testing.assert_allclose(called.decision_function(X), direct, atol=1e-7)


@pytest.mark.parametrize("strategy", ["joint", "one-vs-rest"])
@pytest.mark.parametrize("k", [2, 4])
def test_probabilities_sum_to_one_and_agree_with_the_prediction(strategy, k):
    X, y = random_classes(k, n=200, seed=5)
    machine = SoftmaxSVC(C=1e4, gamma=2.0, strategy=strategy).fit(X[:100], y[:100])
    for rows in (X, 1e6 * X):
        P = machine.predict_proba(rows)
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
        assert ((P >= 0) & (P <= 1)).all()
        np.testing.assert_array_equal(machine.classes_[P.argmax(axis=1)], machine.predict(rows))


def test_probabilities_are_frequencies_where_the_examples_say_nothing_else():
    y = np.repeat([0, 1, 2], [10, 30, 60])
    for strategy in ("joint", "one-vs-rest"):
        machine = SoftmaxSVC(strategy=strategy, gamma=1.0).fit(np.ones((100, 1)), y)
        np.testing.assert_allclose(machine.predict_proba(np.ones((1, 1))), [[0.1, 0.3, 0.6]], atol=1e-8)


def test_low_rank_scores_approach_the_exact_ones():
    X, y = digits(600)
    exact = SoftmaxSVC(gamma=0.02).fit(X, y)
    for basis in BASES:
        errors = []
        for rank in (20, 100, 500):
            machine = SoftmaxSVC(gamma=0.02, basis=basis, rank=rank).fit(X, y)
            assert machine.primal_objective_ >= exact.primal_objective_ * (1 - 1e-9)
            assert len(machine.support_) == (600 if basis == "kpca" else rank)
            errors.append(np.abs(machine.decision_function(X) - exact.decision_function(X)).max())
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < 0.2


def test_warm_start_takes_fewer_steps_to_the_same_point():
    X, y = digits(400)
    machine = SoftmaxSVC(gamma=0.02, warm_start=True).fit(X, y)
    first = machine.n_iter_
    again = machine.fit(X, y)
    assert again.n_iter_ <= 3 < first
    path = regularization_path(SoftmaxSVC(gamma=0.02), X, y, [1.0, 2.0, 4.0])
    cold = SoftmaxSVC(4.0, gamma=0.02).fit(X, y)
    np.testing.assert_allclose(path[-1].decision_function(X), cold.decision_function(X), atol=1e-6)
    with_kernel = SoftmaxSVC(gamma=0.02, warm_start=True, class_kernel=2 * np.eye(10)).fit(X, y).fit(X, y)
    assert with_kernel.n_iter_ <= 3


@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"time_limit": 1e-6}], ids=["max_iter", "time_limit"])
def test_a_limit_warns_and_leaves_a_usable_machine(limit):
    X, y = overlapping(n=400)
    machine = SoftmaxSVC(C=100.0, **limit)
    with pytest.warns(ConvergenceWarning, match=next(iter(limit))):
        machine.fit(X, y)
    assert not machine.converged_
    assert machine.stop_reason_ == next(iter(limit))
    assert machine.dual_objective_ <= machine.primal_objective_
    assert np.isfinite(machine.decision_function(X)).all()


@pytest.mark.parametrize("max_iter", [2, 5])
def test_a_fit_that_is_stopped_has_the_bound_of_its_best_point(max_iter):
    X, y = overlapping(n=300)
    machine = SoftmaxSVC(C=100.0, bias=None, max_iter=max_iter)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        machine.fit(X, y)
    # Without a bias the bound is the objective less half the squared gradient; that of no weights at all may be better.
    nothing = 100.0 * len(y) * np.log(len(machine.classes_))
    assert machine.dual_objective_ >= machine.primal_objective_ - machine.gradient_norm_**2 / 2 - 1e-9 * nothing
    assert machine.dual_objective_ >= 0.0
    assert machine.primal_objective_ < nothing


@pytest.mark.parametrize(
    ("params", "last_weight", "exact"),
    [({}, 1.0, False), ({"tol": 1e-5}, 1.0, True), ({}, 2.0, True), ({"class_weight": {0: 2.0}}, 1.0, False)],
)
def test_an_exact_answer_that_costs_something_is_for_those_who_ask(params, last_weight, exact, monkeypatch):
    monkeypatch.setattr(primal_newton, "NewtonSettings", partial(NewtonSettings, polish_share=0.0, polish_work=0.0))
    X, y = overlapping(n=400)
    weight = np.append(np.ones(len(y) - 1), last_weight)
    machine = SoftmaxSVC(C=10.0, **params).fit(X, y, sample_weight=weight)
    assert machine.converged_
    assert (machine.duality_gap_ < 1e-12) == exact


def test_hard_costs_are_solved_without_a_warning():
    X, y = iris()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for C in (1e-4, 1e4, 1e7):
            assert SoftmaxSVC(C=C).fit(X, y).converged_


# Bad input


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("aggregation", -0.1),
        ("aggregation", np.nan),
        ("aggregation", "max"),
        ("basis", "pca"),
        ("rank", 0),
        ("rank", 1.5),
        ("strategy", "ovr"),
        ("bias", "none"),
        ("class_kernel", "identity"),
        ("class_kernel", np.eye(2)),
        ("class_kernel", np.diag([1.0, 1.0, -1.0])),
        ("class_kernel", np.zeros((3, 3))),
        ("class_kernel", np.full((3, 3), np.nan)),
        ("class_kernel", np.arange(9.0).reshape(3, 3)),
        ("C", np.inf),
    ],
)
def test_a_wrong_parameter_is_named(name, value):
    machine = SoftmaxSVC(**{name: value})
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        machine.fit(*iris())
    assert not hasattr(machine, "dual_coef_")


def test_a_class_kernel_has_no_place_in_binary_problems():
    with pytest.raises(ValueError, match="class_kernel"):
        SoftmaxSVC(strategy="one-vs-rest", class_kernel=np.eye(3)).fit(*iris())


def test_certify_refuses_a_machine_of_the_primal():
    X, y = iris()
    with pytest.raises(TypeError, match="dual"):
        certify(SoftmaxSVC().fit(X, y), X, y)


def test_logarithms_of_probabilities():
    X, y = iris()
    machine = SoftmaxSVC(C=1e6, kernel="linear").fit(X, y)
    far = 1e4 * (X[:100] - X.mean(axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = machine.predict_log_proba(far)
    assert np.isneginf(found).any()
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(found, np.log(machine.predict_proba(far)))


def test_a_large_cost_takes_few_products_with_the_hessian(monkeypatch):
    counted = []
    product = Objective.hessian_product

    def counting(self, point, direction):
        counted.append(1)
        return product(self, point, direction)

    monkeypatch.setattr(Objective, "hessian_product", counting)
    X, y = overlapping(n=1100, n_features=6, n_classes=4)
    machine = SoftmaxSVC(C=1000.0, gamma=0.3).fit(X, y)
    assert machine.converged_
    assert len(counted) < 500  # thousands without a preconditioner


def test_the_span_does_not_depend_on_its_basis():
    X, y = overlapping(n=1100, n_features=6, n_classes=4)
    whole, pivoted = (SoftmaxSVC(gamma=0.3, basis=basis, tol=1e-7).fit(X, y) for basis in ("kpca", "cholesky"))
    assert whole.primal_objective_ == pytest.approx(pivoted.primal_objective_, rel=1e-6)
    assert whole.primal_objective_ == pytest.approx(
        SoftmaxSVC(gamma=0.3, rank=1100, tol=1e-7).fit(X, y).primal_objective_, rel=1e-6
    )
