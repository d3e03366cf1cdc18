"""The solver of the linear program on plain arrays: optimum, bounds in every round, limits, settings."""

import numpy as np
import pytest
from reference.data import digits, iris, overlapping, random_classes
from reference.kernels import kernel_matrix
from reference.linear_program import dual_objective, infeasibility, linear_program, primal_objective

from polymargin.solvers import Limits, LinearProgramSettings, Start, WholeProgramSettings, solve_linear_program


class Matrix:
    """Kernel values that are all there: the protocol in three lines."""

    def __init__(self, K):
        self.K = K

    def block(self, rows, columns):
        return self.K[np.ix_(rows, columns)]

    def product(self, columns, coefficients):
        return self.K[:, columns] @ coefficients

    def transposed_product(self, rows, coefficients):
        return self.K[rows].T @ coefficients


def problem(data, C=1.0, gamma=0.1):
    """Return a kernel matrix, ascending labels, and costs."""
    X, y = data
    order = np.argsort(y, kind="stable")
    return kernel_matrix(X[order], X[order], "rbf", gamma=gamma), y[order], np.full(len(y), C)


def solve(K, y, costs, *, start=None, settings=None, budget_bytes=10**8, **limits):
    class_starts = np.searchsorted(y, np.arange(y.max() + 2))
    return solve_linear_program(Matrix(K), class_starts, costs, start, Limits(**limits), budget_bytes, settings)


def assert_certified(result, K, y, costs):
    """Check that points and objectives of a result belong together."""
    u = result.multipliers.toarray()
    assert result.primal == pytest.approx(primal_objective(K, y, result.coefficients, result.intercept, costs))
    assert result.dual == pytest.approx(dual_objective(u))
    assert result.dual <= result.primal
    assert result.gap == pytest.approx((result.primal - result.dual) / result.primal, abs=1e-14)
    assert result.intercept.sum() == pytest.approx(0.0, abs=1e-9)
    assert np.all(result.coefficients >= 0)
    assert infeasibility(K, y, u, costs) < 1e-6


SETTINGS = {
    "default": None,
    "small rounds": LinearProgramSettings(max_pairs=0, max_columns=0, first_examples=1),
    "low limits": LinearProgramSettings(first_limit=1e-3, limit_factor=2.0),
    "interior point": LinearProgramSettings(
        exact_examples=0, patience=0.0, whole=WholeProgramSettings(sparsity_loss=1e-9)
    ),
}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_settings_change_nothing_about_the_optimum(settings, C):
    K, y, costs = problem(random_classes(3, n=90), C)
    result = solve(K, y, costs, settings=SETTINGS[settings], tolerance=1e-7)
    assert result.status == "converged"
    assert result.primal == pytest.approx(linear_program(K, y, costs).dual, rel=1e-6)
    assert_certified(result, K, y, costs)


def test_every_round_narrows_the_bounds():
    bounds = []

    def progress(done, total, iterations, gap, result=None):
        if result is not None:
            bounds.append((result().dual, result().primal))
        return True

    last = solve(*problem(digits(300)), progress=progress)
    lower, upper = np.array([*bounds, (last.dual, last.primal)]).T
    assert len(lower) > 3
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) <= 1e-10 * upper[-1]).all()  # what the middle of the intercepts may cost
    assert (lower <= upper * (1 + 1e-12)).all()


def test_progress_may_stop_it():
    called = []

    def progress(done, total, iterations, gap, result=None):
        called.append((done, total, iterations, gap))
        return len(called) < 2

    K, y, costs = problem(digits(300))
    result = solve(K, y, costs, progress=progress)
    assert result.status == "stopped"
    assert len(called) == 2
    assert called[1] == (0, 1, result.iterations, pytest.approx(result.gap))
    assert_certified(result, K, y, costs)


@pytest.mark.parametrize("settings", ["default", "interior point"])
@pytest.mark.parametrize(
    ("limits", "status"), [({"max_iterations": 6}, "max_iter"), ({"time_limit": 0.0}, "time_limit")]
)
def test_limits_are_kept(settings, limits, status):
    K, y, costs = problem(overlapping(n=200), 5.0)
    result = solve(K, y, costs, settings=SETTINGS[settings], **limits)
    assert result.status == status
    assert result.iterations <= 6
    assert_certified(result, K, y, costs)


def test_a_start_saves_iterations():
    K, y, costs = problem(digits(300))
    cold = solve(K, y, costs)
    active = cold.multipliers.tocoo()
    start = Start(np.flatnonzero(cold.coefficients), active.row.astype(np.int64), active.col.astype(np.int64))
    warm = solve(K, y, 1.1 * costs, start=start)
    assert warm.iterations < solve(K, y, 1.1 * costs).iterations
    assert_certified(warm, K, y, 1.1 * costs)


def test_a_hard_margin_that_does_not_exist_is_unbounded():
    X, y = iris()
    assert solve(X @ X.T, y, np.full(len(y), np.inf)).status == "unbounded"


def test_memory_decides_about_the_interior_point_method():
    K, y, costs = problem(overlapping(n=150), 5.0)
    at_once = SETTINGS["interior point"]
    assert solve(K, y, costs, settings=at_once).solver == "interior-point"
    assert solve(K, y, costs, settings=at_once, budget_bytes=8 * 4 * 150**2 - 1).solver == "highs"
