"""Linear machines without kernel values: the optimum, agreement with other solvers, an honest gap."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from reference.composition import one_vs_rest, upper_bounds
from reference.data import digits, iris, random_classes, wine
from reference.linear import class_weights, linear_optimum, signs, worth
from reference.linear_machines import (
    BIASES,
    CONTAINERS,
    EXACT,
    TOGETHER,
    assert_honest,
    converged,
    every_bias,
    every_container,
    every_machine,
    every_together,
    farthest,
    limited,
    many_classes,
    sequential,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from polymargin import CrammerSingerSVC, OneVsRestSVC, WestonWatkinsSVC, certify
from polymargin.formulations import Heuristics
from polymargin.formulations import linear as _linear

# The optimum


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_reference_of_one_against_all_is_that_of_its_binary_machines(k):
    X, y = random_classes(k, n=30, seed=k)
    ones = np.column_stack([X, np.ones(len(X))])
    free, regularised, none = (linear_optimum(OneVsRestSVC(bias=b), X, y) for b in ("free", "regularized", None))
    assert free.dual == pytest.approx(one_vs_rest(X @ X.T, y, upper_bounds(y)).dual, rel=1e-9)
    assert regularised.dual == pytest.approx(linear_optimum(OneVsRestSVC(bias=None), ones, y).dual, rel=1e-9)
    assert free.dual < regularised.dual < none.dual


@every_machine
@every_bias
@every_container
@pytest.mark.parametrize("k", [2, 3, 5])
def test_solution_is_the_optimum(Machine, bias, container, k):
    X, y = random_classes(k, n=40, n_features=7, seed=20 + k)
    for C in (0.02, 0.3, 1.0):
        machine = converged(sequential(Machine, C=C, bias=bias, tol=EXACT), CONTAINERS[container](X), y)
        best = linear_optimum(machine, X, y)
        assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-8)
        assert machine.primal_objective_ == pytest.approx(best.dual, rel=1e-8)
        W, b = class_weights(machine)
        np.testing.assert_allclose(W, best.W, rtol=0, atol=farthest(machine, best.dual))
        if bias != "free":
            np.testing.assert_allclose(b, best.b, rtol=0, atol=farthest(machine, best.dual))
        assert_honest(machine, X, y)


@every_machine
@pytest.mark.parametrize("bias", [None, "regularized"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_large_cost_takes_longer_and_ends_at_the_optimum(Machine, bias, k):
    X, y = random_classes(k, n=40, seed=1)
    machine = converged(sequential(Machine, C=30.0, bias=bias, tol=1e-6), X, y)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-6)
    assert_honest(machine, X, y)


@every_machine
@every_bias
@every_container
@pytest.mark.parametrize("class_weight", [{0: 3.0, 2: 0.25}, "balanced"], ids=["dict", "balanced"])
def test_weighted_solution_is_the_optimum(Machine, bias, container, class_weight):
    X, y = random_classes(3, n=60, n_features=6, seed=11)
    X, y = X[:45], y[:45]
    rng = np.random.default_rng(3)
    weight = rng.uniform(0.1, 3.0, len(y))
    weight[::7] = 0.0
    machine = sequential(Machine, C=0.7, bias=bias, class_weight=class_weight, tol=EXACT)
    converged(machine, CONTAINERS[container](X), y, weight)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y, weight).dual, rel=1e-8)
    assert_honest(machine, X, y, weight)
    assert not np.isin(np.flatnonzero(weight == 0), machine.support_).any()
    assert machine.n_support_.sum() == len(machine.support_)


@every_machine
@every_bias
def test_a_weight_is_a_number_of_rows(Machine, bias):
    X, y = random_classes(3, n=60, seed=5)
    repeats = np.arange(len(y)) % 3
    weighted = converged(sequential(Machine, bias=bias, tol=EXACT, C=0.3), X, y, repeats)
    repeated = converged(clone(weighted), np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    assert weighted.dual_objective_ == pytest.approx(repeated.dual_objective_, rel=1e-8)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2 * farthest(weighted, weighted.dual_objective_))


@every_bias
@pytest.mark.parametrize("margin", [0.05, 1.0, 4.0])
def test_any_margin(bias, margin):
    X, y = random_classes(3, n=40, seed=4)
    machine = converged(sequential(WestonWatkinsSVC, C=0.2 * margin, bias=bias, margin=margin, tol=EXACT), X, y)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-8)
    assert_honest(machine, X, y)


@every_machine
@every_bias
@pytest.mark.parametrize("seed", [2, 3])
def test_more_features_than_examples(Machine, bias, seed):
    X, y = random_classes(4, n=24, n_features=100, seed=seed)
    machine = converged(sequential(Machine, C=10.0, bias=bias, tol=EXACT), sparse.csr_array(X), y)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-8)
    assert_honest(machine, X, y)
    assert machine.score(X, y) == 1.0


# Agreement with other solvers


@pytest.mark.parametrize(
    ("Machine", "bias"), [(Machine, bias) for Machine in TOGETHER for bias in BIASES] + [(OneVsRestSVC, "free")]
)
@pytest.mark.parametrize("data", [wine, lambda: digits(300)], ids=["wine", "digits"])
def test_decomposition_agrees(Machine, bias, data):
    X, y = data()
    machine = converged(sequential(Machine, C=0.1, bias=bias, tol=1e-8), X, y)
    other = converged(clone(machine).set_params(solver="decomposition", tol=1e-7), X, y)
    assert (machine.solver_used_, other.solver_used_) == ("sequential-dual", "decomposition")
    assert machine.dual_objective_ == pytest.approx(other.dual_objective_, rel=1e-6)
    assert machine.primal_objective_ == pytest.approx(other.primal_objective_, rel=1e-6)
    far = np.sqrt(2 * (machine.duality_gap_ + other.duality_gap_) * machine.dual_objective_) + 1e-5
    np.testing.assert_allclose(machine.coef_, other.coef_, rtol=0, atol=2 * far)
    assert np.mean(machine.predict(X) == other.predict(X)) > 0.99  # but for ties


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("data", [iris, wine, lambda: digits(300)], ids=["iris", "wine", "digits"])
def test_one_against_all_has_the_objectives_of_liblinear(data, intercept):
    X, y = data()
    C = 0.1
    ours = converged(sequential(OneVsRestSVC, C=C, bias="regularized" if intercept else None, tol=1e-8), X, y)
    theirs = LinearSVC(loss="hinge", C=C, fit_intercept=intercept, tol=1e-10, max_iter=1_000_000).fit(X, y)
    t = signs(y, len(ours.classes_))

    def objectives(W, b):  # liblinear's intercept is a feature, and regularised
        return 0.5 * ((W**2).sum(axis=1) + b**2) + C * np.maximum(0.0, 1.0 - t * (X @ W.T + b)).sum(axis=0)

    expected = objectives(theirs.coef_, np.broadcast_to(theirs.intercept_, len(t.T)))
    np.testing.assert_allclose(objectives(ours.coef_, ours.intercept_), expected, rtol=1e-6)
    np.testing.assert_allclose(worth(ours, X, y).duals, expected, rtol=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


@pytest.mark.parametrize("intercept", [False, True])
def test_crammer_singer_agrees_with_liblinear(intercept):
    X, y = wine()
    ours = converged(sequential(CrammerSingerSVC, C=0.1, bias="regularized" if intercept else None, tol=1e-8), X, y)
    theirs = LinearSVC(multi_class="crammer_singer", C=0.1, fit_intercept=intercept, tol=1e-9, max_iter=100_000)
    np.testing.assert_allclose(ours.decision_function(X), theirs.fit(X, y).decision_function(X), atol=1e-3)


@every_together
@pytest.mark.parametrize("bias", [None, "regularized"])
@every_container
@pytest.mark.parametrize("k", [2, 4])
def test_the_cutting_plane_method_ends_at_the_same_optimum(Machine, bias, container, k):
    X, y = random_classes(k, n=40, seed=k)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    machine = sequential(Machine, C=0.2, bias=bias, solver="cutting-plane", tol=1e-6)
    converged(machine, CONTAINERS[container](X), y, weight)
    assert machine.solver_used_ == "cutting-plane"
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y, weight).dual, rel=2e-6)
    assert_honest(machine, X, y, weight)
    assert machine.n_iter_ > 1
    message = limited(clone(machine).set_params(max_iter=2), X, y)
    assert "max_iter=2" in message


# An honest gap


@every_machine
@every_bias
@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-6])
def test_reported_objectives_are_those_of_the_attributes(Machine, bias, tol):
    X, y = random_classes(4, n=60, seed=5)
    for C, data in ((0.1, X), (1.0, sparse.csr_matrix(X))):
        assert_honest(converged(sequential(Machine, C=C, bias=bias, tol=tol), data, y), X, y)


@every_machine
@every_bias
@every_container
def test_the_gap_is_honest_when_the_solver_works_in_single_precision(Machine, bias, container):
    X, y = digits(1700)  # by 10 classes: enough
    machine = converged(sequential(Machine, C=0.01, bias=bias, tol=2e-3), CONTAINERS[container](X), y)
    assert assert_honest(machine, X, y).gap > 0
    exact = converged(clone(machine).set_params(tol=9e-6), X, y)  # in double
    assert exact.dual_objective_ <= exact.primal_objective_ <= machine.primal_objective_ * (1 + 1e-6)
    assert exact.dual_objective_ >= machine.dual_objective_ * (1 - 1e-6)


# Newton steps


def overlapping(n, seed=0):
    """Return six classes that overlap, some of them with features that the others do not have."""
    rng = np.random.default_rng(seed)
    y = rng.integers(6, size=n)
    X = rng.normal(size=(6, 12))[y] + 1.5 * rng.normal(size=(n, 12))
    X[:, 10:] *= 20 * (rng.uniform(size=(n, 1)) < 0.01)
    return X, y


def without_newton(machine):
    """Return the machine as it was in the paper."""
    Machine = type(machine)

    class Paper(Machine):
        @property
        def formulation(self):
            return replace(super().formulation, heuristics=Heuristics(newton=False))

    Paper.__name__ = Machine.__name__
    return Paper(**machine.get_params())


def row_visits(machine):
    """How often rows were read: classes that are solved together, all of them by Newton steps, share their visits."""
    return np.sum(np.unique(machine.n_iter_))


@every_machine
@every_container
@every_bias
def test_newton_steps_end_at_the_same_optimum(Machine, bias, container):
    X, y = overlapping(6000)
    if bias == "free":  # loops alone would take too long
        X = X[:, :10] + 1.0
    data = CONTAINERS[container](X)
    machine = converged(sequential(Machine, C=0.5, bias=bias, tol=1e-4), data, y)
    assert_honest(machine, X, y, newton=True)
    checked = certify(machine, data, y)
    assert checked.primal_objective == pytest.approx(machine.primal_objective_, rel=1e-9)
    assert checked.dual_objective == pytest.approx(machine.dual_objective_, rel=1e-9)
    plain = converged(without_newton(machine), data, y)
    assert_honest(plain, X, y)
    assert plain.dual_objective_ <= machine.primal_objective_ <= plain.primal_objective_ * (1 + 1e-4)
    assert machine.dual_objective_ <= plain.primal_objective_
    assert row_visits(machine) < 0.5 * row_visits(plain)
    assert np.mean(machine.predict(data) == plain.predict(data)) > 0.995


@every_machine
@every_bias
def test_newton_steps_go_as_far_as_they_are_asked(Machine, bias):
    X, y = overlapping(4000, seed=1)
    machines = [converged(sequential(Machine, C=2.0, bias=bias, tol=tol), X, y) for tol in (0.2, 1e-2, 1e-4, 1e-7)]
    for machine in machines:
        assert_honest(machine, X, y, newton=True)
    primal = [machine.primal_objective_ for machine in machines]
    assert primal[0] > primal[1] > primal[2] > primal[3] * (1 + 1e-9)
    for machine in machines:  # the primal is curved by one in every direction
        apart = 0.5 * np.sum((machine.coef_ - machines[3].coef_) ** 2)
        assert apart <= 2 * (machine.primal_objective_ - machines[3].dual_objective_)


@every_together
def test_newton_steps_are_few_though_some_rows_are_much_longer_than_others(Machine):
    rng = np.random.default_rng(1)
    y = rng.integers(6, size=8000)
    X = rng.normal(size=(8000, 40)) + 0.4 * rng.normal(size=(6, 40))[y]
    X *= rng.lognormal(0.0, 1.5, size=(8000, 1))
    machine = converged(sequential(Machine, bias=None, tol=1e-4), X, y)
    assert_honest(machine, X, y, newton=True)
    assert np.mean(machine.n_iter_) < 330 * len(X)


@every_together
def test_newton_steps_give_the_same_machine_for_any_number_of_threads(Machine):
    X, y = overlapping(4000, seed=2)
    one, two = (converged(sequential(Machine, tol=1e-4, n_jobs=n_jobs), X, y) for n_jobs in (1, 2))
    for name in ("coef_", "intercept_", "dual_coef_", "n_iter_", "primal_objective_", "dual_objective_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@every_machine
def test_newton_steps_that_are_cut_off_keep_an_honest_certificate(Machine):
    X, y = overlapping(4000, seed=3)
    machine = sequential(Machine, C=10.0, bias=None, tol=1e-9, max_iter=100_000)
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    assert_honest(machine, X, y, newton=True)
    again = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(again.decision_function(X), machine.decision_function(X))


@every_machine
@every_bias
def test_a_smaller_tolerance_takes_more_steps_to_a_smaller_gap(Machine, bias):
    X, y = digits(300)
    machines = [converged(sequential(Machine, C=0.1, bias=bias, tol=tol), X, y) for tol in (0.1, 1e-3, 1e-6)]
    gaps = [machine.duality_gap_ for machine in machines]
    steps = [np.sum(machine.n_iter_) for machine in machines]
    assert gaps[0] > gaps[1] > gaps[2]
    assert steps[0] < steps[1] < steps[2]


@every_machine
def test_what_the_bias_means(Machine):
    X, y = random_classes(3, n=60, n_features=6, seed=8)
    X = X + 1.0
    none, regularised, free = (converged(sequential(Machine, C=0.1, bias=bias, tol=1e-8), X, y) for bias in BIASES)
    assert free.dual_objective_ < regularised.dual_objective_ < none.dual_objective_
    np.testing.assert_array_equal(none.intercept_, 0.0)
    np.testing.assert_allclose(regularised.intercept_, regularised.dual_coef_.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(free.dual_coef_.sum(axis=1), 0.0, atol=1e-12)
    wider = np.column_stack([X, np.ones(len(X))])
    feature = converged(sequential(Machine, C=0.1, bias=None, tol=1e-8), wider, y)
    assert feature.dual_objective_ == pytest.approx(regularised.dual_objective_, rel=1e-7)
    np.testing.assert_allclose(feature.coef_[:, -1], regularised.intercept_, atol=1e-2)
    if Machine in TOGETHER:
        for machine in (none, regularised, free):
            np.testing.assert_allclose(machine.coef_.sum(axis=0), 0.0, atol=1e-10)
            np.testing.assert_allclose(machine.dual_coef_.sum(axis=0), 0.0, atol=1e-12)
            assert abs(machine.intercept_.sum()) < 1e-9


@every_machine
@every_bias
@every_container
def test_the_certificate_says_what_the_machine_says(Machine, bias, container):
    X, y = random_classes(4, n=100, seed=5)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    weight[3] = 0.0
    data = CONTAINERS[container](X)
    machine = converged(sequential(Machine, C=0.1, bias=bias, tol=1e-3), data, y, weight)
    proof = certify(machine, data, y, weight)
    assert proof.infeasibility < 1e-12
    assert proof.primal_objective == pytest.approx(machine.primal_objective_, rel=1e-9)
    assert proof.dual_objective == pytest.approx(machine.dual_objective_, rel=1e-9)
    assert proof.duality_gap == pytest.approx(machine.duality_gap_, rel=1e-5)


# What a machine is made of


@every_machine
@every_bias
@pytest.mark.parametrize("k", [2, 4])
def test_scores_are_weights_times_features(Machine, bias, k):
    X, y = random_classes(k, n=50, seed=k)
    machine = converged(sequential(Machine, C=0.1, bias=bias, tol=1e-4), X, y)
    columns = 1 if Machine is OneVsRestSVC and k == 2 else k
    shown = 1 if k == 2 else k
    assert machine.coef_.shape == (shown, X.shape[1])
    assert machine.dual_coef_.shape == (columns, len(machine.support_))
    assert machine.intercept_.shape == (shown,)
    assert np.shape(machine.n_iter_) == ((columns,) if Machine is OneVsRestSVC else ())
    assert machine.n_kernel_evaluations_ == 0
    assert machine.n_features_in_ == X.shape[1]
    np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
    np.testing.assert_array_equal(machine.n_support_, np.bincount(y[machine.support_], minlength=k))
    values = X @ machine.coef_.T + machine.intercept_
    expected = values[:, 0] if k == 2 else values
    assert machine.decision_function(X).shape == expected.shape
    np.testing.assert_allclose(machine.decision_function(X), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(machine.predict(X), (expected > 0) if k == 2 else expected.argmax(axis=1))


@pytest.mark.parametrize("names_of_classes", [["versicolor", "virginica"], [False, True], [-1, 1]])
@every_machine
@every_bias
def test_of_two_classes_the_second_is_positive(Machine, bias, names_of_classes):
    X, y = iris()
    X, labels = X[y > 0], np.array(names_of_classes)[y[y > 0] - 1]
    machine = converged(sequential(Machine, bias=bias, tol=1e-4), X, labels)
    np.testing.assert_array_equal(machine.classes_, np.unique(labels))
    np.testing.assert_array_equal(machine.predict(X) == names_of_classes[1], machine.decision_function(X) > 0)
    assert machine.score(X, labels) > (0.9 if bias else 0.7)
    assert_honest(machine, X, labels)


def test_with_two_classes_the_machines_are_one():
    X, y = random_classes(2, n=60, n_features=6, seed=3)
    binary = converged(sequential(OneVsRestSVC, C=0.5, tol=EXACT), X, y)
    sums = converged(sequential(WestonWatkinsSVC, C=0.5, bias="free", margin=2.0, tol=EXACT), X, y)
    maxima = converged(sequential(CrammerSingerSVC, C=0.25, bias="free", tol=EXACT), X, y)
    assert sums.dual_objective_ == pytest.approx(2 * binary.dual_objective_, rel=1e-8)
    assert maxima.dual_objective_ == pytest.approx(binary.dual_objective_ / 2, rel=1e-8)
    expected = binary.decision_function(X)
    np.testing.assert_allclose(sums.decision_function(X), expected, atol=1e-3)
    np.testing.assert_allclose(2 * maxima.decision_function(X), expected, atol=1e-3)


@every_machine
@every_bias
def test_more_classes_than_are_read_at_once(Machine, bias):
    for k in (33, 64, 65):
        X, y = many_classes(k, n_features=10, seed=k)
        machine = converged(sequential(Machine, C=0.05, bias=bias, tol=9e-6), X, y)  # in double
        assert_honest(machine, X, y)
        assert machine.coef_.shape == (k, 10)
    if Machine in TOGETHER or bias == "free":
        other = clone(machine).set_params(solver="decomposition", tol=1e-5).fit(X, y)
        assert machine.dual_objective_ == pytest.approx(other.dual_objective_, rel=2e-5)


@every_machine
@every_bias
def test_three_hundred_classes(Machine, bias):
    X, y = many_classes(300)
    machine = converged(sequential(Machine, C=0.1, bias=bias, tol=2e-2), X, y)  # in single precision
    assert_honest(machine, X, y)
    if Machine in TOGETHER:
        assert machine.score(X, y) > 0.99
    assert machine.n_support_.shape == (300,)
    if bias == "regularized":
        exact = converged(clone(machine).set_params(tol=9e-6), sparse.csr_matrix(X), y)  # in double
        assert_honest(exact, X, y)
        assert machine.dual_objective_ <= exact.primal_objective_
        assert exact.dual_objective_ <= machine.primal_objective_


@every_machine
@pytest.mark.parametrize("bias", [None, "free"])
def test_coefficients_too_many_for_a_dense_matrix_are_sparse(monkeypatch, Machine, bias):
    X, y = random_classes(5, n=60, seed=1)
    expected = converged(sequential(Machine, C=0.1, bias=bias, tol=1e-6, warm_start=True), X, y)
    monkeypatch.setattr(_linear, "_DENSE", 10)
    machine = converged(clone(expected), X, y)
    assert sparse.issparse(machine.dual_coef_)
    np.testing.assert_array_equal(machine.dual_coef_.toarray(), expected.dual_coef_)
    np.testing.assert_array_equal(machine.coef_, expected.coef_)
    np.testing.assert_array_equal(machine.decision_function(X), expected.decision_function(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).predict(X), expected.predict(X))
    assert_honest(machine, X, y)
    again = converged(machine, X, y)  # a warm start
    assert np.max(again.n_iter_) <= np.max(expected.n_iter_)
    assert again.dual_objective_ == pytest.approx(expected.dual_objective_, rel=2e-6)


def test_a_free_bias_does_not_stall_on_word_counts():
    """Documents of very different lengths: a weight of the bias as large as the longest made every step a tiny one."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=1500)
    rates = rng.gamma(0.05, size=(4, 2000)) + 0.5 * rng.gamma(0.05, size=2000)
    lengths = np.exp(rng.normal(3.0, 1.2, size=len(y)))
    counts = rng.poisson(lengths[:, None] * (rates / rates.sum(axis=1, keepdims=True))[y])
    X = sparse.csr_matrix(counts.astype(np.float64))
    machine = OneVsRestSVC(kernel="linear", solver="sequential-dual", max_iter=200 * len(y)).fit(X, y)
    assert machine.converged_
    assert certify(machine, X, y).duality_gap <= 1.01e-3
