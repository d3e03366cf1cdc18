"""The linear programming machine: the optimum of the whole program, and bounds that hold whenever a fit ends."""

import warnings

import numpy as np
import pytest
from reference.compare import assert_optimal, audit, multipliers, oracle
from reference.data import digits, iris, overlapping, random_classes, separable, wine
from reference.kernels import kernel_matrix
from reference.linear_program import linear_program
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from polymargin import LinearProgramSVC, WestonWatkinsSVC, certify
from polymargin.selection import regularization_path
from polymargin.solvers import LinearProgramSettings
from polymargin.solvers import linear_program as solver

KERNELS = {
    "rbf": {"gamma": 0.3},
    "narrow rbf": {"gamma": 3.0},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.02},
}
DATA = {
    "iris": lambda: tuple(a[::2] for a in iris()),
    "wine": lambda: tuple(a[::3] for a in wine()),
    "two classes": lambda: random_classes(2, n=50),
    "six classes": lambda: random_classes(6, n=60),
}


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, np.inf])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("data", DATA)
def test_the_optimum_of_the_whole_program(data, kernel, C):
    X, y = DATA[data]()
    machine = LinearProgramSVC(C, **KERNELS[kernel])
    best, _ = oracle(machine, X, y)
    if best is None:
        with pytest.raises(ValueError, match="cannot be separated"):
            machine.fit(X, y)
        return
    machine.fit(X, y)
    assert_optimal(machine, X, y, best.dual, rel=1e-7, infeasibility=1e-9)


@pytest.mark.parametrize("gamma", [1.0, 4.0, 8.0, 16.0, 22.6, 64.0])
@pytest.mark.parametrize("C", [1.0, np.inf])
def test_kernel_values_next_to_nothing(gamma, C):
    # HiGHS' own scaling makes it cycle on some of these.
    X, y = wine()
    low, high = X.min(axis=0), X.max(axis=0)
    X = 2 * (X - low) / (high - low) - 1
    for part in range(3):
        kept = np.arange(len(y)) % 10 != part
        machine = LinearProgramSVC(C, gamma=gamma, time_limit=20.0)
        best, _ = oracle(machine, X[kept], y[kept])
        machine.fit(X[kept], y[kept])
        assert machine.converged_
        assert machine.primal_objective_ == pytest.approx(best.dual, rel=1e-7)


def test_both_kinds_of_data_sets_are_among_those():
    hard = {
        (data, kernel): oracle(LinearProgramSVC(np.inf, **KERNELS[kernel]), *DATA[data]())[0] is None
        for data in DATA
        for kernel in KERNELS
    }
    assert 3 <= sum(hard.values()) <= len(hard) - 3


@pytest.mark.parametrize("C", [1.0, np.inf])
def test_many_small_rounds_lead_to_the_same_optimum(C, monkeypatch):
    X, y = digits(250)
    at_once = LinearProgramSVC(C).fit(X, y)
    few = LinearProgramSettings(max_pairs=0, max_columns=0, first_examples=1)
    monkeypatch.setattr(solver, "DEFAULT_SETTINGS", few)  # a fifth and a twenty-fifth of the examples are left
    slowly = LinearProgramSVC(C).fit(X, y)
    assert slowly.primal_objective_ == pytest.approx(at_once.primal_objective_, rel=1e-8)
    np.testing.assert_allclose(slowly.decision_function(X), at_once.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("C", [0.5, 50.0, np.inf])
@pytest.mark.parametrize("max_iter", [0, 1, 30, 60, 90, 120, 200])
def test_the_bounds_hold_whenever_the_fit_ends(C, max_iter):
    X, y = DATA["iris"]()
    machine = LinearProgramSVC(C, gamma=0.3, max_iter=max_iter)
    best, _ = oracle(machine, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    assert machine.n_iter_ <= max_iter
    assert machine.dual_objective_ <= best.dual * (1 + 1e-9)
    assert machine.primal_objective_ >= best.dual * (1 - 1e-9)
    assert machine.converged_ == (machine.duality_gap_ <= machine.tol)
    assert machine.stop_reason_ == ("converged" if machine.converged_ else "max_iter")
    checked = audit(machine, X, y)
    assert checked.infeasibility < 1e-9
    assert checked.dual == pytest.approx(machine.dual_objective_)
    assert checked.primal == pytest.approx(machine.primal_objective_)


def test_a_loose_tolerance_ends_earlier_and_is_kept():
    X, y = overlapping(n=200)
    exact, loose = (LinearProgramSVC(10.0, tol=tol).fit(X, y) for tol in (1e-3, 0.3))
    assert exact.duality_gap_ < 1e-8
    assert 1e-8 < loose.duality_gap_ <= 0.3
    assert loose.n_iter_ < exact.n_iter_
    assert loose.dual_objective_ <= exact.dual_objective_ <= loose.primal_objective_


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_hard_margin_is_kept_to_the_last_digit(kernel):
    X, y = separable(n=60)
    machine = LinearProgramSVC(np.inf, kernel=kernel).fit(X, y)
    scores = machine.decision_function(X)
    own = scores[np.arange(len(y)), y]
    scores[np.arange(len(y)), y] = -np.inf
    assert (own - scores.max(axis=1)).min() == pytest.approx(2.0, abs=1e-9)
    assert machine.primal_objective_ == pytest.approx(machine.dual_coef_.sum())


def test_a_large_cost_is_a_hard_margin_where_there_is_one():
    X, y = wine()
    soft, hard = (LinearProgramSVC(C, gamma=0.05).fit(X, y) for C in (1e6, np.inf))
    assert soft.primal_objective_ == pytest.approx(hard.primal_objective_, rel=1e-9)
    np.testing.assert_allclose(soft.decision_function(X), hard.decision_function(X), atol=1e-7)


def test_a_hard_margin_that_does_not_exist_leaves_the_machine_as_it_was():
    X, y = iris()
    machine = LinearProgramSVC(kernel="linear").fit(X, y)
    before = dict(vars(machine))
    machine.C = np.inf
    with pytest.raises(ValueError, match="cannot be separated") as caught:
        machine.fit(X, y)
    assert "finite C" in str(caught.value)
    assert {**before, "C": np.inf} == vars(machine)


@pytest.mark.parametrize("C", [1.0, np.inf])
def test_scores_are_made_of_the_examples_of_a_class(C):
    X, y = wine()
    machine = LinearProgramSVC(C, gamma=0.1).fit(X, y)
    K = kernel_matrix(X, X, "rbf", gamma=0.1)
    for n in range(3):
        of_class = machine.support_[y[machine.support_] == n]
        a = machine.dual_coef_[n, y[machine.support_] == n]
        assert (a > 0).all()
        expected = K[:, of_class] @ a + machine.intercept_[n]
        np.testing.assert_allclose(machine.decision_function(X)[:, n], expected, atol=1e-6)
    assert np.count_nonzero(machine.dual_coef_) == len(machine.support_)
    assert machine.intercept_.sum() == pytest.approx(0.0, abs=1e-12)


def test_the_score_of_two_classes_is_half_the_lead_of_the_second():
    X, y = random_classes(2, n=60)
    machine = LinearProgramSVC(gamma=0.2).fit(X, y)
    K = kernel_matrix(X, X[machine.support_], "rbf", gamma=0.2)
    scores = K @ machine.dual_coef_.T + machine.intercept_ * [-1.0, 1.0]
    np.testing.assert_allclose(machine.decision_function(X), (scores[:, 1] - scores[:, 0]) / 2, atol=1e-6)
    np.testing.assert_array_equal(machine.predict(X), scores.argmax(axis=1))


@pytest.mark.parametrize("C", [0.5, np.inf])
def test_weights_and_class_weights(C):
    X, y = DATA["wine"]()
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    machine = LinearProgramSVC(C, gamma=0.2, class_weight={0: 3.0, 2: 0.5})
    best, _ = oracle(machine, X, y, weight)
    machine.fit(X, y, sample_weight=weight)
    assert machine.primal_objective_ == pytest.approx(best.dual, rel=1e-7)


def test_a_kernel_need_be_neither_definite_nor_symmetric():
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3
    K = rng.normal(size=(45, 45)) + 0.3 * (y[:, None] == y)
    for C in (0.2, np.inf):
        machine = LinearProgramSVC(C, kernel="precomputed").fit(K, y)
        best = linear_program(K, y, np.full(45, C))
        assert machine.primal_objective_ == pytest.approx(best.dual, rel=1e-7)
        proof = certify(machine, K, y)
        assert proof.dual_objective == pytest.approx(best.dual, rel=1e-7)
        assert proof.infeasibility < 1e-9


def test_a_kernel_of_zeros_leaves_the_intercepts():
    y = np.array([0, 1, 1, 1, 2])
    machine = LinearProgramSVC(kernel="precomputed").fit(np.zeros((5, 5)), y)
    assert len(machine.support_) == 0
    assert machine.predict(np.zeros((2, 5))).tolist() == [1, 1]


def test_intercepts_are_in_the_middle_of_those_that_are_optimal():
    # So cheap that no coefficient pays: four examples of each class leave b_1 - b_0 anywhere in [-2, 2].
    X, y = random_classes(2, n=8)
    machine = LinearProgramSVC(1e-3).fit(X, y)
    assert len(machine.support_) == 0
    np.testing.assert_array_equal(machine.intercept_, [0.0])
    # One more of the second class, and all of the first are given up.
    machine.fit(np.vstack([X, X[:1]]), np.append(y, 1))
    np.testing.assert_allclose(machine.intercept_, [1.0])


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
def test_certify_recomputes_both_objectives(kernel, C, weighted):
    X, y = wine()
    weight = np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.0 + y) if weighted else None
    data = kernel_matrix(X, X, "rbf", gamma=0.05) if kernel == "precomputed" else sparse.csr_matrix(X)
    machine = LinearProgramSVC(C, kernel=kernel, gamma=0.05).fit(data, y, sample_weight=weight)
    proof = certify(machine, data, y, sample_weight=weight)
    assert proof.primal_objective == pytest.approx(machine.primal_objective_, rel=1e-9)
    assert proof.dual_objective == pytest.approx(machine.dual_objective_, rel=1e-9)
    assert proof.duality_gap < 1e-8
    assert proof.infeasibility < 1e-11


@pytest.mark.parametrize(
    "change",
    [lambda u: 1.01 * u, lambda u: -u, lambda u: u * np.linspace(0.9, 1.0, len(u))],
    ids=["too large", "negative", "not balanced"],
)
def test_certify_sees_multipliers_that_are_not_feasible(change):
    X, y = iris()
    machine = LinearProgramSVC(10.0).fit(X, y)
    machine.multipliers_ = change(machine.multipliers_)
    assert certify(machine, X, y).infeasibility > 1e-3


def test_certify_sees_coefficients_that_are_not_optimal():
    X, y = iris()
    machine = LinearProgramSVC(10.0).fit(X, y)
    machine.dual_coef_ = 1.1 * machine.dual_coef_
    assert certify(machine, X, y).duality_gap > 1e-3


def test_multipliers_are_those_of_the_constraints_that_bind():
    X, y = iris()
    machine = LinearProgramSVC(1.0, gamma=0.5).fit(X, y)
    scores = machine.decision_function(X)
    lead = scores[np.arange(len(y)), y][:, None] - scores
    u = multipliers(machine, len(y))
    others = np.arange(3) != y[:, None]
    assert (lead[others & (u > 1e-9)] <= 2 + 1e-5).all()
    assert (lead[others & (u < 1 - 1e-9)] >= 2 - 1e-5).all()
    assert not u[~others].any()


def test_a_warm_start_knows_what_matters():
    X, y = digits(400)
    machine = LinearProgramSVC(1.0, warm_start=True).fit(X, y)
    machine.set_params(C=1.1).fit(X, y)
    cold = LinearProgramSVC(1.1).fit(X, y)
    assert machine.primal_objective_ == pytest.approx(cold.primal_objective_, rel=1e-8)
    assert machine.n_iter_ < cold.n_iter_
    machine.fit(X[::2], y[::2])  # the rows are others now
    assert machine.primal_objective_ == pytest.approx(LinearProgramSVC(1.1).fit(X[::2], y[::2]).primal_objective_)


def test_a_series_of_costs():
    X, y = iris()
    costs = [0.1, 1.0, 10.0]
    for machine, C in zip(regularization_path(LinearProgramSVC(), X, y, costs), costs, strict=True):
        assert machine.primal_objective_ == pytest.approx(LinearProgramSVC(C).fit(X, y).primal_objective_, rel=1e-8)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_columns_that_find_no_room_are_computed_again(container):
    X, y = digits(300)
    ample = LinearProgramSVC().fit(container(X), y)
    narrow = LinearProgramSVC(cache_size=0.1).fit(container(X), y)  # 41 of 300 columns
    assert narrow.primal_objective_ == pytest.approx(ample.primal_objective_, rel=1e-8)
    np.testing.assert_allclose(narrow.decision_function(X), ample.decision_function(X), atol=1e-6)
    assert narrow.n_kernel_evaluations_ > ample.n_kernel_evaluations_
    assert ample.n_kernel_evaluations_ <= len(y) ** 2


@pytest.mark.parametrize("data", [iris, wine])
def test_fewer_coefficients_than_the_quadratic_machine(data):
    X, y = data()
    few = LinearProgramSVC(np.inf, gamma=0.3).fit(X, y)
    many = WestonWatkinsSVC(np.inf, gamma=0.3, bias="free").fit(X, y)
    assert few.score(X, y) == many.score(X, y) == 1.0
    assert len(few.support_) < len(many.support_)


def test_the_gap_that_a_solution_leaves_at_larger_costs():
    X, y = wine()
    machine = LinearProgramSVC(C=0.05, gamma=0.02).fit(X, y)
    growth = [1.0, 2.0, 10.0]
    gaps = [machine.formulation.gap_at_larger_costs(machine.model_, machine.outcome_, each) for each in growth]
    assert gaps[0] == pytest.approx(machine.duality_gap_, abs=1e-12)
    loss = machine.primal_objective_ - machine.dual_coef_.sum()
    assert loss > 0  # by the definition of the primal objective, it is what grows
    for each, gap in zip(growth, gaps, strict=True):
        primal = machine.dual_coef_.sum() + each * loss
        assert gap == pytest.approx((primal - machine.dual_objective_) / primal, abs=1e-12)
    hard = LinearProgramSVC(C=1e4, gamma=1.0).fit(X, y)
    assert hard.formulation.gap_at_larger_costs(hard.model_, hard.outcome_, 1e3) < 1e-8
