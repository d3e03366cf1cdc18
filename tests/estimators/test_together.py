"""WestonWatkinsSVC and CrammerSingerSVC: the optimum of all classes together, and what it is equal to."""

import time
import warnings

import numpy as np
import pytest
from reference.compare import LOSSES, audit, coefficients, offsets_are_unique, optimum, oracle, training_problem
from reference.composition import upper_bounds
from reference.data import digits, iris, overlapping, random_classes, separable, wine
from reference.kernels import kernel_matrix
from reference.linear import class_weights
from reference.together import hsu_lin_primal, losses, objective_of_scores
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, certify

MACHINES = [WestonWatkinsSVC, CrammerSingerSVC]
BIASES = [None, "regularized", "free"]
KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "rbf": {"kernel": "rbf"},
}
every_machine = pytest.mark.parametrize("Machine", MACHINES)
every_bias = pytest.mark.parametrize("bias", BIASES)


def all_scores(machine, X):
    """Return the scores of all classes, also when there are two."""
    values = machine.decision_function(X)
    return np.column_stack([-values, values]) if values.ndim == 1 else values


def margins(machine, X, y):
    """Return the score of the own class minus the best of the others, for each row."""
    values = all_scores(machine, X)
    own = np.searchsorted(machine.classes_, y)
    rows = np.arange(len(y))
    right = values[rows, own]
    values[rows, own] = -np.inf
    return right - values.max(axis=1)


def certified_gap(machine, bound):
    """Return the largest gap that is possible when no condition is violated by more than ``tol``."""
    hinges = len(machine.classes_) - 1 if isinstance(machine, WestonWatkinsSVC) else 1
    return machine.tol * hinges * np.sum(bound)


def assert_optimal(machine, best, K, bound, X):
    """Compare with the reference what is unique: objectives, and scores as far as the gap promises."""
    assert machine.converged_
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-6)
    assert machine.dual_objective_ <= machine.primal_objective_ * (1 + 1e-12)
    gap = machine.primal_objective_ - machine.dual_objective_
    assert gap <= certified_gap(machine, bound) + 1e-12 * best.dual
    assert machine.duality_gap_ == pytest.approx(gap / machine.primal_objective_, rel=1e-6, abs=1e-14)
    expected = best.all_scores(K)
    np.testing.assert_allclose(all_scores(machine, X), expected, atol=1e-5 * max(1.0, np.abs(expected).max()))


# The optimum


@every_machine
@every_bias
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_solution_is_the_optimum(Machine, bias, kernel, k):
    X, y = random_classes(k, n=40, seed=10 + k)
    for C in (0.1, 1.0, 5.0):
        machine = Machine(C=C, bias=bias, gamma=0.3, tol=1e-6, **KERNELS[kernel]).fit(X, y)
        K, bound = training_problem(machine, X, y)
        best = optimum(machine, K, y, bound)
        if offsets_are_unique(machine, y, bound):
            assert_optimal(machine, best, K, bound, X)
        else:
            assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-6)
        assert -1e-12 <= machine.duality_gap_ < 1e-5


@every_machine
@every_bias
@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 2: 0.25}, "balanced"])
@pytest.mark.parametrize("rank", [3, 60])
def test_weighted_solution_on_a_precomputed_kernel_is_the_optimum(Machine, bias, class_weight, rank):
    rng = np.random.default_rng(rank)
    A = rng.normal(size=(36, rank)) / np.sqrt(rank)
    K = A @ A.T
    y = rng.permutation(np.r_[np.arange(4), rng.integers(0, 4, 32)])
    weight = rng.uniform(0.1, 3.0, len(y))
    weight[[np.flatnonzero(y == c)[0] for c in (1, 3)]] = 0.0
    machine = Machine(C=1.5, kernel="precomputed", bias=bias, class_weight=class_weight, tol=1e-6)
    machine.fit(K, y, sample_weight=weight)
    bound = upper_bounds(y, 1.5, class_weight, weight)
    assert offsets_are_unique(machine, y, bound)
    assert_optimal(machine, optimum(machine, K, y, bound), K, bound, K)
    assert machine.duality_gap_ < 1e-5
    assert not np.isin(np.flatnonzero(weight == 0), machine.support_).any()


@pytest.mark.parametrize("margin", [0.01, 0.5, 1.0, 3.0])
@every_bias
def test_any_margin(bias, margin):
    X, y = random_classes(3, n=40, seed=4)
    machine = WestonWatkinsSVC(bias=bias, margin=margin, gamma=0.3, tol=1e-6 * margin).fit(X, y)
    K, bound = training_problem(machine, X, y)
    best = optimum(machine, K, y, bound)
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-6)
    assert machine.primal_objective_ - machine.dual_objective_ <= certified_gap(machine, bound)
    np.testing.assert_allclose(all_scores(machine, X), best.all_scores(K), atol=1e-5 * margin)


@every_machine
@every_bias
@pytest.mark.parametrize("tol", [0.5, 1e-1, 1e-3, 1e-6])
def test_reported_objectives_are_those_of_the_attributes(Machine, bias, tol):
    X, y = random_classes(4, n=100, seed=5)
    for kernel in KERNELS.values():
        machine = Machine(C=2.0, bias=bias, tol=tol, **kernel).fit(X, y)
        checked = audit(machine, X, y)
        assert checked.infeasibility < 1e-12
        assert checked.dual <= checked.primal * (1 + 1e-12)
        assert machine.dual_objective_ <= machine.primal_objective_ * (1 + 1e-12)
        assert machine.dual_objective_ == pytest.approx(checked.dual, rel=1e-5)
        assert machine.primal_objective_ == pytest.approx(checked.primal, rel=1e-5)
        gap = machine.primal_objective_ - machine.dual_objective_
        assert gap <= certified_gap(machine, upper_bounds(y, 2.0))


def test_dual_never_exceeds_primal_even_by_rounding():
    for seed in range(20):
        X, y = random_classes(3, n=40, seed=seed)
        for Machine in MACHINES:
            for bias in BIASES:
                machine = Machine(C=0.5, bias=bias, tol=1e-6).fit(X, y)
                assert machine.dual_objective_ <= machine.primal_objective_
                assert machine.duality_gap_ >= 0


@every_machine
@every_bias
@pytest.mark.parametrize("max_iter", [0, 1, 5, 50])
def test_a_stopped_fit_is_feasible_and_bounds_the_optimum(Machine, bias, max_iter):
    X, y = random_classes(3, n=40, seed=2)
    machine = Machine(C=5.0, bias=bias, max_iter=max_iter, tol=1e-6)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        machine.fit(X, y)
    assert machine.stop_reason_ == "max_iter"
    assert machine.n_iter_ <= max_iter
    best, _ = oracle(machine, X, y)
    checked = audit(machine, X, y)
    assert checked.infeasibility < 1e-12
    assert checked.dual <= best.dual * (1 + 1e-9) <= checked.primal * (1 + 2e-9)
    assert machine.dual_objective_ == pytest.approx(checked.dual, rel=1e-6, abs=1e-9)
    assert machine.primal_objective_ == pytest.approx(checked.primal, rel=1e-6)
    assert machine.predict(X).shape == y.shape


@every_machine
def test_on_larger_data_the_gap_certifies_the_answer(Machine):
    X, y = digits(900)
    machine = Machine(C=2.0, tol=1e-4).fit(X, y)
    checked = audit(machine, X, y)
    assert checked.infeasibility < 1e-12
    assert checked.primal - checked.dual < 1e-3 * checked.primal
    assert machine.duality_gap_ == pytest.approx((checked.primal - checked.dual) / checked.primal, abs=1e-5)
    assert machine.score(X, y) > 0.99


# What the scores are


@every_machine
@every_bias
def test_dual_coef_gives_the_decision_function(Machine, bias):
    X, y = wine()
    machine = Machine(gamma=0.1, bias=bias).fit(X, y)
    expected = kernel_matrix(X, machine.support_vectors_, gamma=0.1) @ machine.dual_coef_.T + machine.intercept_
    np.testing.assert_allclose(machine.decision_function(X), expected, atol=1e-5)
    np.testing.assert_array_equal(machine.classes_[expected.argmax(axis=1)], machine.predict(X))


@every_machine
@every_bias
@pytest.mark.parametrize("k", [2, 3])
def test_linear_weights_give_the_decision_function_and_sum_to_zero(Machine, bias, k):
    X, y = wine()
    X, y = X[y < k], y[y < k]
    machine = Machine(kernel="linear", bias=bias, tol=1e-5).fit(X, y)
    assert machine.coef_.shape == (1 if k == 2 else k, X.shape[1])
    W, b = class_weights(machine)
    np.testing.assert_allclose(X @ W.T + b, all_scores(machine, X), atol=1e-5)
    np.testing.assert_allclose(
        X @ machine.coef_.T + machine.intercept_, machine.decision_function(X).reshape(len(X), -1), atol=1e-5
    )
    np.testing.assert_allclose(W.sum(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(machine.dual_coef_.sum(axis=0), 0.0, atol=1e-12)


@every_machine
def test_of_two_classes_the_second_is_positive(Machine):
    X, y = iris()
    X, names = X[y > 0], np.array(["versicolor", "virginica"])[y[y > 0] - 1]
    machine = Machine().fit(X, names)
    assert machine.dual_coef_.shape == (2, len(machine.support_))
    assert machine.intercept_.shape == (1,)
    assert machine.decision_function(X).shape == (len(X),)
    np.testing.assert_array_equal(machine.predict(X) == "virginica", machine.decision_function(X) > 0)
    assert machine.score(X, names) > 0.9


@every_machine
@every_bias
@pytest.mark.parametrize("shift", [-3.7, 12.5])
def test_a_constant_in_all_scores_changes_nothing(Machine, bias, shift):
    X, y = iris()
    machine = Machine(bias=bias).fit(X, y)
    before, labels = machine.decision_function(X), machine.predict(X)
    machine.intercept_ = machine.intercept_ + shift
    after = machine.decision_function(X)
    np.testing.assert_allclose(after, before + shift, atol=1e-12)
    np.testing.assert_array_equal(machine.predict(X), labels)
    loss, margin = LOSSES[Machine.__name__], getattr(machine, "margin", 1.0)
    np.testing.assert_allclose(losses(after, y, loss, margin), losses(before, y, loss, margin), atol=1e-12)


# The bias


@every_machine
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_free_bias_balances_the_coefficients_of_each_class(Machine, tol, k):
    for seed in range(3):
        X, y = random_classes(k, n=12 * k, seed=seed)
        machine = Machine(C=10.0, bias="free", tol=tol).fit(X, y)
        np.testing.assert_allclose(machine.dual_coef_.sum(axis=1), 0.0, atol=1e-11)


@every_machine
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_free_intercepts_sum_to_zero(Machine, tol):
    for seed in (4, 9, 31, 34):  # where proximal steps that grow without end would multiply rounding
        X, y = random_classes(3, n=24, n_features=2, seed=seed)
        machine = Machine(C=0.3, kernel="linear", bias="free", tol=tol).fit(X, y)
        assert abs(machine.intercept_.sum()) < 1e-9


@every_machine
def test_a_regularised_bias_is_the_sum_of_the_coefficients_and_no_bias_is_zero(Machine):
    X, y = wine()
    regularised = Machine(bias="regularized").fit(X, y)
    np.testing.assert_allclose(regularised.intercept_, regularised.dual_coef_.sum(axis=1), atol=1e-12)
    assert np.abs(regularised.intercept_).max() > 1e-3
    np.testing.assert_array_equal(Machine(bias=None).fit(X, y).intercept_, 0.0)


@every_machine
def test_a_regularised_bias_is_a_constant_feature(Machine):
    X, y = random_classes(3, n=60, seed=8)
    with_bias = Machine(kernel="linear", bias="regularized", tol=1e-6).fit(X, y)
    wider = np.hstack([X, np.ones((len(X), 1))])
    without = Machine(kernel="linear", bias=None, tol=1e-6).fit(wider, y)
    np.testing.assert_allclose(with_bias.decision_function(X), without.decision_function(wider), atol=1e-4)
    assert with_bias.dual_objective_ == pytest.approx(without.dual_objective_, rel=1e-8)


@every_machine
def test_more_freedom_for_the_bias_is_a_smaller_objective(Machine):
    X, y = random_classes(3, n=60, seed=8)
    X = X + 1.0
    none, regularised, free = (
        Machine(kernel="linear", bias=bias, tol=1e-6).fit(X, y).dual_objective_ for bias in BIASES
    )
    assert free < regularised < none


# Equal machines


@pytest.mark.parametrize("kernel", KERNELS)
def test_weston_watkins_with_two_classes_is_the_binary_machine(kernel):
    X, y = iris()
    X, y = X[y > 0], y[y > 0]
    machine = WestonWatkinsSVC(C=2.0, bias="free", tol=1e-6, **KERNELS[kernel]).fit(X, y)
    binary = OneVsOneSVC(C=2.0, tol=1e-6, **KERNELS[kernel]).fit(X, y)
    theirs = SVC(C=2.0, tol=1e-8, **KERNELS[kernel]).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), binary.decision_function(X), atol=2e-5)
    np.testing.assert_allclose(machine.decision_function(X), theirs.decision_function(X), atol=2e-5)
    # Two vectors w and -w: twice the squared norm, and hinges that are twice as long.
    assert machine.dual_objective_ == pytest.approx(2 * binary.dual_objective_, rel=1e-6)
    # Margin 1 at C is half of margin 2 at 2C.
    half = WestonWatkinsSVC(C=1.0, margin=1.0, bias="free", tol=1e-6, **KERNELS[kernel]).fit(X, y)
    np.testing.assert_allclose(2 * half.decision_function(X), binary.decision_function(X), atol=2e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_crammer_singer_with_two_classes_is_half_the_binary_machine_at_twice_the_cost(kernel):
    X, y = iris()
    X, y = X[y > 0], y[y > 0]
    machine = CrammerSingerSVC(C=1.0, bias="free", tol=1e-6, **KERNELS[kernel]).fit(X, y)
    binary = OneVsOneSVC(C=2.0, tol=1e-6, **KERNELS[kernel]).fit(X, y)
    np.testing.assert_allclose(2 * machine.decision_function(X), binary.decision_function(X), atol=2e-5)
    assert machine.dual_objective_ == pytest.approx(binary.dual_objective_ / 2, rel=1e-6)


@every_bias
def test_with_two_classes_there_is_one_wrong_class_so_sum_and_maximum_agree(bias):
    X, y = random_classes(2, n=60, seed=3)
    sums = WestonWatkinsSVC(bias=bias, margin=1.0, tol=1e-6).fit(X, y)
    maxima = CrammerSingerSVC(bias=bias, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(sums.decision_function(X), maxima.decision_function(X), atol=1e-5)
    assert sums.dual_objective_ == pytest.approx(maxima.dual_objective_, rel=1e-9)


@every_bias
@pytest.mark.parametrize("factor", [0.5, 2.0, 7.0])
def test_margin_and_cost_scale_together(bias, factor):
    # w = f v turns |w|^2 / 2 + C sum max(0, f - ...) into f^2 (|v|^2 / 2 + C / f sum max(0, 1 - ...)).
    X, y = random_classes(4, n=60, seed=6)
    one = WestonWatkinsSVC(C=0.7, margin=1.0, bias=bias, tol=1e-6).fit(X, y)
    other = WestonWatkinsSVC(C=0.7 * factor, margin=factor, bias=bias, tol=1e-6 * factor).fit(X, y)
    np.testing.assert_allclose(other.decision_function(X), factor * one.decision_function(X), atol=2e-5 * factor)
    assert other.dual_objective_ == pytest.approx(factor**2 * one.dual_objective_, rel=1e-7)


@pytest.mark.parametrize(("k", "seed"), [(2, 0), (3, 1), (4, 2)])
@pytest.mark.parametrize("form", [4, 7, 8])
def test_the_three_primal_problems_of_hsu_and_lin_are_one(k, seed, form):
    X, y = random_classes(k, n=6 * k, n_features=2, seed=seed)
    C = 0.4
    factor = {4: 1, 7: k, 8: k + 2}[form]
    W, b, objective = hsu_lin_primal(X, y, factor * C, form)
    machine = WestonWatkinsSVC(C=C, kernel="linear", bias="free", tol=1e-6).fit(X, y)
    found, intercepts = class_weights(machine)
    np.testing.assert_allclose(found, W, atol=1e-5)
    assert machine.dual_objective_ == pytest.approx(objective / factor, rel=1e-6)
    assert offsets_are_unique(machine, y, upper_bounds(y, C))
    np.testing.assert_allclose(intercepts, b, atol=1e-4)


@pytest.mark.parametrize("C", [0.1, 1.0, np.inf])
def test_one_against_all_is_feasible_for_weston_watkins_and_never_better(C):
    X, y = separable(n=60, n_classes=3, seed=1)
    machine = WestonWatkinsSVC(C=C, kernel="linear", bias="free", tol=1e-5).fit(X, y)
    other = OneVsRestSVC(C=C, kernel="linear", tol=1e-5).fit(X, y)
    stretch = 1.001 if np.isinf(C) else 1.0  # over the tolerance, so that no margin is missed
    value = objective_of_scores(
        np.sum((stretch * other.coef_) ** 2),
        stretch * other.decision_function(X),
        y,
        np.full(len(y), C),
        "weston-watkins",
        2.0,
    )
    assert np.isfinite(value)
    assert value >= machine.dual_objective_
    # Their hinges add up to at least ours: the value is at most the sum of their objectives, each slack paid k times.
    assert value <= stretch**2 * 3 * other.primal_objective_


@every_bias
def test_hard_margins_of_both_machines_are_the_same_up_to_the_margin(bias):
    X, y = separable(n=45, n_classes=3)
    sums = WestonWatkinsSVC(C=np.inf, kernel="linear", bias=bias, tol=1e-6).fit(X, y)
    maxima = CrammerSingerSVC(C=np.inf, kernel="linear", bias=bias, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(sums.coef_, 2 * maxima.coef_, atol=1e-4)
    assert sums.dual_objective_ == pytest.approx(4 * maxima.dual_objective_, rel=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
def test_crammer_singer_agrees_with_liblinear(intercept):
    X, y = iris()
    ours = CrammerSingerSVC(C=0.5, kernel="linear", bias="regularized" if intercept else None, tol=1e-6).fit(X, y)
    theirs = LinearSVC(multi_class="crammer_singer", C=0.5, fit_intercept=intercept, tol=1e-9, max_iter=100_000)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


# Hard margins


@every_machine
@every_bias
@pytest.mark.parametrize("k", [2, 3, 5])
def test_hard_margin_separates(Machine, bias, k):
    X, y = separable(n=12 * k, n_classes=k)
    machine = Machine(C=np.inf, kernel="linear", bias=bias, tol=1e-4).fit(X, y)
    assert machine.converged_
    assert margins(machine, X, y).min() >= getattr(machine, "margin", 1.0) * (1 - 1e-3)
    assert machine.dual_objective_ <= machine.primal_objective_ * (1 + 1e-12)
    assert machine.primal_objective_ == pytest.approx(machine.dual_objective_, rel=1e-3)
    best, _ = oracle(machine, X, y)
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-4)


@every_machine
@every_bias
def test_a_hard_margin_is_the_limit_of_large_costs(Machine, bias):
    X, y = separable(n=45, n_classes=3)
    hard = Machine(C=np.inf, kernel="linear", bias=bias, tol=1e-5).fit(X, y)
    largest = np.abs(coefficients(hard, len(y))).max()
    soft = Machine(C=10 * largest, kernel="linear", bias=bias, tol=1e-5).fit(X, y)
    np.testing.assert_allclose(hard.decision_function(X), soft.decision_function(X), atol=1e-3)


INSEPARABLE = {
    "equal points": ([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [2.0, 1.0]], [0, 1, 1, 2], "linear"),
    "equal points, rbf": ([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [2.0, 1.0]], [0, 1, 1, 2], "rbf"),
    "two equal points alone": ([[1.0, 2.0], [1.0, 2.0]], [0, 1], "rbf"),
    "exclusive or": ([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]], [0, 0, 1, 1], "linear"),
    "exclusive or, and a third class far away": (
        [[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [9.0, 9.0], [9.0, 8.0]],
        [0, 0, 1, 1, 2, 2],
        "linear",
    ),
    "overlapping classes": (*overlapping(n=200, n_features=6, n_classes=3), "linear"),
}


@every_machine
@every_bias
@pytest.mark.parametrize("name", INSEPARABLE)
def test_a_hard_margin_that_does_not_exist_is_refused(Machine, bias, name):
    X, y, kernel = INSEPARABLE[name]
    machine = Machine(C=np.inf, kernel=kernel, bias=bias)
    with pytest.raises(ValueError, match="cannot be separated"):
        machine.fit(X, y)
    assert not hasattr(machine, "dual_coef_")
    machine.set_params(C=1.0).fit(X, y)
    before = dict(vars(machine)) | {"C": np.inf}
    begin = time.perf_counter()
    with pytest.raises(ValueError, match="cannot be separated"):
        machine.set_params(C=np.inf).fit(X, y)
    assert time.perf_counter() - begin < 5.0
    assert vars(machine).keys() == before.keys()
    assert all(vars(machine)[key] is before[key] for key in before)


@every_machine
def test_without_a_bias_points_on_one_ray_are_inseparable(Machine):
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match="cannot be separated"):
        Machine(C=np.inf, kernel="linear", bias=None).fit(X, y)
    machine = Machine(C=np.inf, kernel="linear", bias="free", tol=1e-5).fit(X, y)
    assert machine.score(X, y) == 1.0
    own = getattr(machine, "margin", 1.0)  # w = 1, -1 for a margin of 2, from -1 at 2 to 1 at 3
    np.testing.assert_allclose(machine.coef_, [[own]], atol=1e-3)
    np.testing.assert_allclose(machine.intercept_, [-2.5 * own], atol=1e-3)


# Warm starts


@every_machine
@pytest.mark.parametrize("bias", [None, "regularized", "free"])
def test_a_warm_start_at_the_solution_stays_there(Machine, bias):
    X, y = overlapping(n=300)
    machine = Machine(bias=bias, warm_start=True, tol=1e-4).fit(X, y)
    cold, first = machine.n_iter_, machine.decision_function(X)
    machine.fit(X, y)
    assert machine.n_iter_ < 0.2 * cold
    np.testing.assert_allclose(machine.decision_function(X), first, atol=1e-2)


@every_machine
@every_bias
@pytest.mark.parametrize("costs", [(0.1, 1.0, 10.0), (10.0, 1.0, 0.1)], ids=["up", "down"])
def test_warm_and_cold_starts_end_at_the_same_place(Machine, bias, costs):
    X, y = random_classes(3, n=60, seed=9)
    machine = Machine(bias=bias, gamma=0.3, warm_start=True, tol=1e-6)
    for C in costs:
        machine.set_params(C=C).fit(X, y)
        cold = Machine(C=C, bias=bias, gamma=0.3, tol=1e-6).fit(X, y)
        assert machine.dual_objective_ == pytest.approx(cold.dual_objective_, rel=1e-8)
        assert audit(machine, X, y).infeasibility < 1e-12
        if offsets_are_unique(cold, y, upper_bounds(y, C)):
            np.testing.assert_allclose(machine.decision_function(X), cold.decision_function(X), atol=1e-4)


@every_machine
def test_a_warm_start_takes_what_fits_of_the_last_solution(Machine):
    X, y = random_classes(4, n=80, seed=9)
    machine = Machine(gamma=0.3, warm_start=True, tol=1e-6).fit(X, y)
    for rows in (slice(0, 60), slice(None), slice(10, 70)):
        machine.fit(X[rows], y[rows])
        cold = Machine(gamma=0.3, tol=1e-6).fit(X[rows], y[rows])
        assert machine.dual_objective_ == pytest.approx(cold.dual_objective_, rel=1e-8)
    machine.fit(X, np.where(y == 3, 0, y))  # other classes: a cold start
    cold = Machine(gamma=0.3, tol=1e-6).fit(X, np.where(y == 3, 0, y))
    np.testing.assert_array_equal(machine.dual_coef_, cold.dual_coef_)
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 2.0)
    machine.fit(X, np.where(y == 3, 0, y), sample_weight=weight)
    cold.fit(X, np.where(y == 3, 0, y), sample_weight=weight)
    assert machine.dual_objective_ == pytest.approx(cold.dual_objective_, rel=1e-8)


@every_machine
def test_a_warm_start_after_a_limit_goes_on(Machine):
    X, y = overlapping(n=300)
    machine = Machine(warm_start=True, max_iter=100)
    values = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(200):
            values.append(machine.fit(X, y).dual_objective_)
            if machine.converged_:
                break
    assert machine.converged_
    assert (np.diff(values) >= -1e-9 * values[-1]).all()


# Resources


@every_machine
def test_a_budget_too_small_for_two_rows_is_refused(Machine):
    with pytest.raises(ValueError, match="cache_size"):
        Machine(cache_size=1e-4).fit(*overlapping(n=300))


@every_machine
@every_bias
def test_rows_that_do_not_all_fit_give_the_same_answer(Machine, bias):
    X, y = overlapping(n=300)
    whole = Machine(bias=bias, tol=1e-5).fit(X, y)
    few = Machine(bias=bias, tol=1e-5, cache_size=0.1).fit(X, y)
    assert few.n_kernel_evaluations_ > whole.n_kernel_evaluations_
    assert few.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-8)
    np.testing.assert_allclose(few.decision_function(X), whole.decision_function(X), atol=1e-3)


@every_machine
@every_bias
def test_many_classes(Machine, bias):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(60, 10))
    y = np.repeat(np.arange(60), 5)
    X = centres[y] + 0.3 * rng.normal(size=(len(y), 10))
    machine = Machine(C=3.0, bias=bias, gamma=0.2).fit(X, y)
    assert machine.converged_
    checked = audit(machine, X, y)
    assert checked.infeasibility < 1e-12
    assert checked.primal - checked.dual < 1e-2 * checked.primal
    assert machine.score(X, y) > 0.99


@every_machine
@every_bias
def test_wide_kernels_are_solved_in_few_steps_and_as_well(Machine, bias):
    """Where kernel rows are dear, that is where their matrix does not fit: else steps are as quick without a start."""
    X, y = random_classes(3, 2100, 3, seed=5)
    wide = Machine(C=10.0, gamma=0.005, bias=bias, cache_size=8).fit(X, y)
    in_steps = clone(wide).set_params(max_iter=10**9).fit(X, y)  # a limit, so steps alone
    assert wide.converged_
    assert in_steps.converged_
    # Exchanges bring a free bias there in fewer steps from anywhere.
    assert wide.n_iter_ < in_steps.n_iter_ / (2 if bias == "free" else 4)
    for machine in (wide, in_steps):
        certificate = certify(machine, X, y)
        assert certificate.duality_gap == pytest.approx(machine.duality_gap_, abs=1e-6)
        assert f"duality_gap={certificate.duality_gap!r}" in repr(certificate)
    assert wide.dual_objective_ == pytest.approx(in_steps.dual_objective_, rel=1e-3)
    assert np.mean(wide.predict(X) == in_steps.predict(X)) > 0.99


@every_machine
def test_a_fit_says_whether_interior_points_took_over(Machine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.argmax(X @ rng.normal(size=(3, 5)) + rng.normal(size=(150, 5)), axis=1)  # classes overlap
    assert Machine(C=1.0, gamma=0.1).fit(X, y).solver_used_ == "decomposition"
    large = Machine(C=1e4, gamma=0.1).fit(X, y)
    assert large.converged_
    assert large.solver_used_ == "interior-point"
    with pytest.warns(ConvergenceWarning):
        in_steps = Machine(C=1e4, gamma=0.1, max_iter=2000).fit(X, y)
    assert in_steps.solver_used_ == "decomposition"  # whoever limits the steps sees steps alone
