"""The interior point method, which goes on with the linear program where classes overlap."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from reference.compare import assert_optimal, oracle
from reference.data import digits, iris, overlapping, random_classes, wine
from reference.kernels import gamma_value, kernel_matrix
from reference.linear_program import linear_program
from sklearn.exceptions import ConvergenceWarning

from polymargin import LinearProgramSVC, certify
from polymargin.solvers import Limits, LinearProgramSettings, WholeProgramSettings, solve_linear_program
from polymargin.solvers import linear_program as solver
from polymargin.solvers.linear_program_whole import WholeProgram

DATA = {
    "iris": iris,
    "wine": wine,
    "two classes": lambda: random_classes(2, n=80),
    "six classes": lambda: random_classes(6, n=120),
    "overlapping": lambda: overlapping(n=150),
}
KERNELS = {
    "rbf": {"gamma": 0.3},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1},
}

AT_ONCE = LinearProgramSettings(exact_examples=0, patience=0.0)


@pytest.fixture
def at_once(monkeypatch):
    """Small programs, too, go to the interior point method after one round."""
    monkeypatch.setattr(solver, "DEFAULT_SETTINGS", AT_ONCE)


@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("data", DATA)
def test_the_optimum_of_the_whole_program(data, kernel, C, at_once):
    X, y = DATA[data]()
    machine = LinearProgramSVC(C, **KERNELS[kernel])
    best, _ = oracle(machine, X, y)
    machine.fit(X, y)
    assert machine.solver_used_ in ("interior-point", "highs")  # one round may be enough
    assert_optimal(machine, X, y, best.dual, rel=5e-6, infeasibility=1e-6)


def test_coefficients_that_are_zero_in_the_solution_are_zero(monkeypatch):
    X, y = digits(300)
    vertex = LinearProgramSVC().fit(X, y)
    monkeypatch.setattr(solver, "DEFAULT_SETTINGS", AT_ONCE)
    machine = LinearProgramSVC().fit(X, y)
    assert (vertex.solver_used_, machine.solver_used_) == ("highs", "interior-point")
    assert len(machine.support_) <= 1.1 * len(vertex.support_)
    assert len(machine.support_) < len(y)


def test_patience_begins_anew_where_coefficients_come_back(monkeypatch):
    # So many are left out that some violate their constraints.
    whole = WholeProgramSettings(idle_shares=(1.0,), idle_loss=1e6)
    monkeypatch.setattr(solver, "DEFAULT_SETTINGS", replace(AT_ONCE, whole=whole))
    update, waited = WholeProgram._update_dual, []

    def watched(self):
        self._since, size = 3, len(self._constraints.columns)
        update(self)
        if len(self._constraints.columns) > size:
            waited.append(self._since)

    monkeypatch.setattr(WholeProgram, "_update_dual", watched)
    X, y = digits(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        LinearProgramSVC(max_iter=200).fit(X, y)
    assert waited
    assert not any(waited)


def test_weights_and_class_weights(at_once):
    X, y = wine()
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    machine = LinearProgramSVC(0.5, gamma=0.2, class_weight={0: 3.0, 2: 0.5})
    best, _ = oracle(machine, X, y, weight)
    machine.fit(X, y, sample_weight=weight)
    assert machine.primal_objective_ == pytest.approx(best.dual, rel=5e-6)


def test_a_kernel_need_be_neither_definite_nor_symmetric(at_once):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    K = rng.normal(size=(60, 60)) + 0.3 * (y[:, None] == y)
    machine = LinearProgramSVC(0.2, kernel="precomputed").fit(K, y)
    best = linear_program(K, y, np.full(60, 0.2))
    assert machine.primal_objective_ == pytest.approx(best.dual, rel=5e-6)
    proof = certify(machine, K, y)
    assert proof.dual_objective == pytest.approx(best.dual, rel=5e-6)


@pytest.mark.parametrize("max_iter", [0, 100, 150, 200])
def test_the_bounds_hold_whenever_the_fit_ends(max_iter, at_once):
    X, y = overlapping(n=200)
    machine = LinearProgramSVC(5.0, max_iter=max_iter, gamma=gamma_value("scale", X))
    best, _ = oracle(machine, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    assert machine.n_iter_ <= max_iter
    assert machine.dual_objective_ <= best.dual * (1 + 1e-8)
    assert machine.primal_objective_ >= best.dual * (1 - 1e-8)


def test_threads_do_not_change_a_bit(at_once):
    X, y = overlapping(n=300)
    one, two = (LinearProgramSVC(2.0, n_jobs=n).fit(X, y) for n in (1, 2))
    assert one.solver_used_ == "interior-point"
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


def test_overlapping_classes_get_it_and_others_do_not():
    X, y = random_classes(5, n=1500)  # of no structure at all
    hard = LinearProgramSVC(gamma=2.0).fit(X, y)
    assert hard.solver_used_ == "interior-point"
    assert hard.converged_
    X, y = digits(1500)
    assert LinearProgramSVC().fit(X, y).solver_used_ == "highs"


def test_without_room_for_its_matrices_generation_goes_on():
    X, y = random_classes(5, n=1100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = LinearProgramSVC(gamma=2.0, cache_size=5, time_limit=2.0).fit(X, y)
    assert machine.solver_used_ == "highs"


def test_a_time_limit_ends_it(at_once):
    X, y = overlapping(n=900)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        machine = LinearProgramSVC(time_limit=0.3, tol=1e-12).fit(X, y)
    assert machine.stop_reason_ == "time_limit"


@pytest.mark.parametrize("C", [100.0, 1e4])
def test_small_overlapping_programs_end_exactly_at_a_vertex(C):
    X, y = overlapping(n=180, n_features=8, n_classes=4)
    settings = LinearProgramSettings(patience=0.0)  # the interior point method at once, and its vertex to 1e-10
    K, labels = kernel(X, y)
    costs = np.full(len(y), C)
    result = solve(K, labels, costs, settings)
    assert (result.status, result.solver) == ("converged", "interior-point")
    assert result.gap <= 1e-10
    slow = solve(K, labels, costs, LinearProgramSettings(patience=np.inf))
    assert slow.solver == "highs"
    assert result.primal == pytest.approx(slow.primal, rel=1e-8)


def test_work_and_not_size_decides_who_goes_on():
    X, y = overlapping(n=180, n_features=8, n_classes=4)
    K, labels = kernel(X, y)
    costs = np.full(len(y), 1e4)
    assert solve(K, labels, costs, LinearProgramSettings(least_work=0.0)).solver == "interior-point"
    assert solve(K, labels, costs, LinearProgramSettings(least_work=1e15)).solver == "highs"


def kernel(X, y):
    order = np.argsort(y, kind="stable")
    return kernel_matrix(X[order], X[order], "rbf", gamma=0.3), y[order]


class Matrix:
    """Kernel values that are all there."""

    def __init__(self, K):
        self.K = K

    def block(self, rows, columns):
        return self.K[np.ix_(rows, columns)]

    def product(self, columns, coefficients):
        return self.K[:, columns] @ coefficients

    def transposed_product(self, rows, coefficients):
        return self.K[rows].T @ coefficients


def solve(K, labels, costs, settings):
    class_starts = np.searchsorted(labels, np.arange(labels.max() + 2))
    return solve_linear_program(Matrix(K), class_starts, costs, None, Limits(), 10**9, settings)


@pytest.mark.parametrize("gamma", [0.02, 0.3])
def test_large_costs_reach_the_tolerance(gamma):
    X, y = overlapping(n=400, n_features=8, n_classes=4)
    order = np.argsort(y, kind="stable")
    K, labels = kernel_matrix(X[order], X[order], "rbf", gamma=gamma), y[order]
    result = solve(K, labels, np.full(len(y), 1e4), AT_ONCE)
    assert (result.status, result.solver) == ("converged", "interior-point")
    assert result.gap <= 1e-3
