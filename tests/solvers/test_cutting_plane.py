"""The cutting-plane method of the linear all-together machines: the optimum, certified bounds, kept limits."""

import time
from dataclasses import dataclass, replace

import numpy as np
import pytest
from reference import together
from reference.data import digits, iris, random_classes
from scipy import sparse

from polymargin.losses import CrammerSinger, WestonWatkins
from polymargin.solvers import CuttingPlaneSettings, Limits, reduced_dual, solve_cutting_plane
from polymargin.solvers.cutting_plane import _Risk
from polymargin.solvers.reduced_dual import ReducedDualSettings, solve_reduced_dual

LOSSES = {"crammer-singer": 1.0, "weston-watkins": 2.0}
BIASES = [None, "regularized"]
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_bias = pytest.mark.parametrize("bias", BIASES)
EXACT = 1e-8


@dataclass(frozen=True)
class AnyMarginCrammerSinger(CrammerSinger):
    """The loss with another margin."""

    margin: float = 1.0


def loss_of(name, margin=None):
    """Return a loss by its name."""
    kind = {"crammer-singer": AnyMarginCrammerSinger, "weston-watkins": WestonWatkins}[name]
    return kind(LOSSES[name] if margin is None else margin)


def solve(X, y, cost_bounds, loss, bias=None, *, margin=None, settings=None, **limits):
    """Solve with defaults of its own: exactly, without limits; weights are returned for each class."""
    cost_bounds = np.broadcast_to(np.asarray(cost_bounds, dtype=np.float64), (len(y),))
    limits = Limits(**{"tolerance": EXACT} | limits)
    loss = loss_of(loss, margin) if isinstance(loss, str) else loss
    result = solve_cutting_plane(X, y, cost_bounds, int(y.max()) + 1, loss, bias, limits, settings)
    return replace(result, weights=result.weights.T)


def problem(k=4, n=40, seed=1, C=1.0):
    """Return examples, classes, and a cost for each example."""
    X, y = random_classes(k, n=n, seed=seed)
    return X, y, C * np.random.default_rng(seed).uniform(0.2, 2.0, n)


def assert_certified(result, X, y, cost_bounds, loss, bias, margin=None):
    """Check that weights, coefficients and objectives of a result belong together."""
    margin = LOSSES[loss] if margin is None else margin
    K, B = X @ X.T, result.coefficients
    assert isinstance(B, sparse.csr_array)
    assert B.shape == (len(y), y.max() + 1)
    B = B.toarray()
    scale = max(1.0, np.abs(result.weights).max())
    np.testing.assert_allclose(result.weights, (X.T @ B).T, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(result.intercept, B.sum(axis=0) if bias else 0.0, rtol=0, atol=1e-12 * scale)
    b = result.intercept
    assert together.infeasibility(y, B, b, cost_bounds, loss=loss, bias=bias) < 1e-12
    dual = together.dual_objective(K, y, B, margin=margin, bias=bias)
    primal = together.primal_objective(K, y, B, b, cost_bounds, loss=loss, margin=margin, bias=bias)
    assert result.dual == pytest.approx(dual, rel=1e-11, abs=1e-11)
    assert result.primal == pytest.approx(primal, rel=1e-11, abs=1e-11)
    assert result.dual <= result.primal
    assert result.best_primal <= result.primal
    assert result.gap == pytest.approx((primal - dual) / max(primal, 1e-300), rel=1e-3, abs=1e-11)


# The optimum


@every_loss
@every_bias
@pytest.mark.parametrize(("storage", "C"), [(np.asarray, 0.1), (sparse.csr_array, 1.0), (sparse.csr_matrix, 5.0)])
def test_solution_is_the_optimum(loss, bias, storage, C):
    X, y, cost_bounds = problem(C=C)
    best = together.solve_together(X @ X.T, y, cost_bounds, loss=loss, bias=bias, margin=LOSSES[loss])
    result = solve(storage(X), y, cost_bounds, loss, bias)
    assert result.status == "converged"
    assert result.gap <= EXACT
    assert result.fallbacks == 0
    assert result.primal == pytest.approx(best.dual, rel=2 * EXACT)
    assert result.dual == pytest.approx(best.dual, rel=2 * EXACT)
    far = np.sqrt(2 * EXACT * best.dual)  # strong convexity: 1/2 |W - W*|^2 is at most the gap
    np.testing.assert_allclose(result.weights, (X.T @ best.B).T, rtol=0, atol=far)
    np.testing.assert_allclose(result.intercept, best.b, rtol=0, atol=far)
    assert_certified(result, X, y, cost_bounds, loss, bias)


@every_loss
@pytest.mark.parametrize(("k", "margin"), [(2, 1.0), (3, 0.3), (5, 4.0)])
def test_any_number_of_classes_and_any_margin(loss, k, margin):
    X, y, cost_bounds = problem(k)
    best = together.solve_together(X @ X.T, y, cost_bounds, loss=loss, margin=margin)
    result = solve(X, y, cost_bounds, loss, margin=margin)
    assert result.dual == pytest.approx(best.dual, rel=2 * EXACT)
    assert_certified(result, X, y, cost_bounds, loss, None, margin)


@every_loss
@every_bias
def test_digits(loss, bias):
    X, y = digits(300)
    result = solve(X, y, 0.1, loss, bias, tolerance=1e-2)
    assert result.status == "converged"
    assert result.gap <= 1e-2
    assert_certified(result, X, y, np.full(len(y), 0.1), loss, bias)
    assert np.mean(np.argmax(X @ result.weights.T + result.intercept, axis=1) == y) > 0.97


@every_loss
def test_float32_is_computed_in_float64(loss):
    X, y, cost_bounds = problem()
    X = X.astype(np.float32)
    for storage in (np.asarray, sparse.csr_array):
        single = solve(storage(X), y, cost_bounds, loss, "regularized", max_iterations=10)
        double = solve(storage(X.astype(np.float64)), y, cost_bounds, loss, "regularized", max_iterations=10)
        np.testing.assert_array_equal(single.weights, double.weights)
        assert single.weights.dtype == np.float64
        assert single.primal == double.primal


@every_loss
def test_input_stays_as_it_is(loss):
    X, y, cost_bounds = problem()
    for data in (X, sparse.csr_matrix(X)):
        before, costs = data.copy(), cost_bounds.copy()
        solve(data, y, cost_bounds, loss, max_iterations=5)
        assert abs(data - before).max() == 0
        np.testing.assert_array_equal(cost_bounds, costs)


@every_loss
@every_bias
def test_keeping_planes_or_not_in_blocks_or_not(loss, bias):
    X, y, cost_bounds = problem()
    results = []
    for size in (2**40, 0):  # keep the weights of planes, or products of them from the data
        for block in (3, 50, 10**6):  # a row, some rows, all rows at a time
            settings = CuttingPlaneSettings(always_kept_bytes=size, never_kept_bytes=size, block_scores=block)
            for data in (X, sparse.csr_array(X)):
                results.append(solve(data, y, cost_bounds, loss, bias, max_iterations=8, settings=settings))
                assert_certified(results[-1], X, y, cost_bounds, loss, bias)
    np.testing.assert_allclose([r.dual for r in results], results[0].dual, rtol=1e-9)


@every_loss
def test_products_with_sparse_and_dense_coefficients_are_equal(loss):
    X, y, cost_bounds = problem()
    weights = []
    for share in (0.0, 2.0):
        settings = CuttingPlaneSettings(sparse_share_for_sparse=share, sparse_share_for_dense=share)
        for data in (X, sparse.csr_array(X)):
            weights.append(solve(data, y, cost_bounds, loss, max_iterations=5, settings=settings).weights)
    for other in weights[1:]:
        np.testing.assert_allclose(other, weights[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("size", [30, 1000])
def test_coefficients_of_a_mixture_of_few_or_many_pairs(size):
    rng = np.random.default_rng(size)
    X, y = random_classes(20, n=200)
    cost_bounds = rng.uniform(0.2, 2.0, len(y))
    wrong = np.flatnonzero((np.arange(20) != y[:, None]).ravel())
    risk = _Risk(X, y, cost_bounds, 20, WestonWatkins(), None, CuttingPlaneSettings())
    planes = [risk.plane(np.sort(rng.permutation(wrong)[:size]), [])[0] for _ in range(3)]
    expected = np.zeros((200, 20))
    for plane, weight in zip(planes, [0.5, 0.0, 0.2], strict=True):
        for i, m in zip(*np.divmod(plane.pairs, 20), strict=True):
            expected[i, m] -= weight * cost_bounds[i]
            expected[i, y[i]] += weight * cost_bounds[i]
    B = risk.coefficients(planes, np.array([0.5, 0.0, 0.2]))
    np.testing.assert_allclose(B.toarray(), expected, rtol=0, atol=1e-14)


@every_loss
def test_dropping_planes_early_leads_to_the_same_optimum(loss):
    X, y, cost_bounds = problem()
    usual = solve(X, y, cost_bounds, loss)
    early = solve(X, y, cost_bounds, loss, settings=CuttingPlaneSettings(max_idle=3))
    assert early.status == "converged"
    assert early.dual == pytest.approx(usual.dual, rel=2 * EXACT)
    assert_certified(early, X, y, cost_bounds, loss, None)


class TwoWorst(WestonWatkins):
    """A loss that the package does not have: the two largest hinges."""

    def active_hinges(self, hinges):
        threshold = np.sort(hinges, axis=1)[:, -2:-1]
        return np.flatnonzero((hinges >= threshold) & (hinges > 0))


def test_a_loss_of_ones_own():
    X, y, cost_bounds = problem()
    result = solve(X, y, cost_bounds, TwoWorst())
    assert result.status == "converged"
    assert result.gap <= EXACT
    scores = X @ result.weights.T
    leads = np.array([np.sort(s[c] - np.delete(s, c)) for s, c in zip(scores, y, strict=True)])
    primal = 0.5 * np.sum(result.weights**2) + cost_bounds @ np.maximum(2.0 - leads[:, :2], 0.0).sum(axis=1)
    assert result.primal == pytest.approx(primal, rel=1e-11)
    B = result.coefficients.toarray()
    own = B[np.arange(len(y)), y]
    assert np.all(own <= 2 * cost_bounds + 1e-12)
    assert result.dual == pytest.approx(2 * own.sum() - 0.5 * np.sum(result.weights**2), rel=1e-11)


# Bounds


@every_loss
@every_bias
def test_weak_duality_in_every_iteration(loss, bias):
    X, y, cost_bounds = problem(C=3.0)
    best = together.solve_together(X @ X.T, y, cost_bounds, loss=loss, bias=bias, margin=LOSSES[loss]).dual
    points = []

    def progress(done, total, iterations, gap, result):
        points.append(result())
        return True

    result = solve(X, y, cost_bounds, loss, bias, progress=progress)
    points.append(result)
    primal, dual, best_primal = np.array([(point.primal, point.dual, point.best_primal) for point in points]).T
    assert [point.iterations for point in points] == list(range(result.iterations + 1))
    assert np.all(dual <= best * (1 + 1e-9))
    assert np.all(primal >= best * (1 - 1e-9))
    np.testing.assert_array_equal(best_primal, np.minimum.accumulate(primal))
    assert np.all(np.diff(dual) >= -1e-12 * best)
    assert (primal[0], dual[0]) == (pytest.approx(cost_bounds.sum() * LOSSES[loss] * (1 if loss[0] == "c" else 3)), 0.0)
    for point in points[:: len(points) // 10]:
        assert_certified(
            replace(point, weights=point.weights if point is result else point.weights.T), X, y, cost_bounds, loss, bias
        )


@every_loss
@every_bias
@pytest.mark.parametrize("most", [0, 1, 10])
def test_stopped_early_it_still_has_its_certificate(loss, bias, most):
    X, y, cost_bounds = problem(C=5.0)
    best = together.solve_together(X @ X.T, y, cost_bounds, loss=loss, bias=bias, margin=LOSSES[loss])
    result = solve(X, y, cost_bounds, loss, bias, max_iterations=most)
    assert (result.status, result.iterations) == ("max_iter", most)
    assert result.gap > EXACT
    assert result.dual <= best.dual * (1 + 1e-9) <= result.primal * (1 + 2e-9)
    assert_certified(result, X, y, cost_bounds, loss, bias)


def test_time_limit():
    X, y = digits(500)
    started = time.perf_counter()
    result = solve(X, y, 10.0, "crammer-singer", time_limit=0.1)
    assert time.perf_counter() - started < 3.0
    assert result.status == "time_limit"
    assert result.iterations > 0
    assert_certified(result, X, y, np.full(len(y), 10.0), "crammer-singer", None)
    assert solve(X, y, 1.0, "crammer-singer", time_limit=0.0).iterations == 0


def test_progress_can_stop_and_sees_the_gap():
    X, y, cost_bounds = problem()
    calls = []

    def progress(done, total, iterations, gap, result):
        calls.append((done, total, iterations, gap))
        return iterations < 7

    result = solve(X, y, cost_bounds, "weston-watkins", progress=progress)
    assert (result.status, result.iterations) == ("stopped", 7)
    assert [call[:3] for call in calls] == [(0, 1, t) for t in range(8)]
    assert calls[0][3] == 1.0
    assert calls[-1][3] == result.gap
    assert_certified(result, X, y, cost_bounds, "weston-watkins", None)


def test_an_interrupt_goes_through():
    X, y, cost_bounds = problem()

    def progress(done, total, iterations, gap, result):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(X, y, cost_bounds, "crammer-singer", progress=progress)


# Data that are special


@every_loss
@every_bias
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_rows_and_features_of_zeros_and_examples_without_cost(loss, bias, storage):
    X, y, cost_bounds = problem()
    X[3] = 0.0
    X[:, 1] = 0.0
    cost_bounds[[5, 6]] = 0.0
    result = solve(storage(X), y, cost_bounds, loss, bias)
    best = together.solve_together(X @ X.T, y, cost_bounds, loss=loss, bias=bias, margin=LOSSES[loss])
    assert result.status == "converged"
    assert result.dual == pytest.approx(best.dual, rel=2 * EXACT)
    assert not result.weights[:, 1].any()
    assert result.coefficients[[5, 6]].nnz == 0
    assert_certified(result, X, y, cost_bounds, loss, bias)


@every_loss
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_nothing_but_zeros(loss, storage):
    _, y, cost_bounds = problem(3)
    result = solve(storage(np.zeros((len(y), 2))), y, cost_bounds, loss)
    assert result.status == "converged"
    assert result.dual == pytest.approx(result.primal)
    assert not result.weights.any()
    assert solve(storage(np.ones((len(y), 2))), y, 0.0, loss).iterations == 0


@every_loss
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scaling_data_and_costs_changes_only_the_units(loss, scale):
    X, y, cost_bounds = problem()
    expected = solve(X, y, cost_bounds, loss)
    result = solve(scale * X, y, cost_bounds / scale**2, loss)
    assert result.status == "converged"
    assert result.dual == pytest.approx(expected.dual / scale**2, rel=2 * EXACT)
    np.testing.assert_allclose(result.weights * scale, expected.weights, rtol=0, atol=1e-3)


def test_data_too_large_for_float64_end_in_precision():
    X, y, cost_bounds = problem()
    with np.errstate(all="ignore"):
        result = solve(1e200 * X, y, cost_bounds, "crammer-singer")
    assert result.status == "precision"
    assert np.isfinite(result.primal)
    assert not result.weights.any()


def test_a_tolerance_below_rounding_ends_in_precision():
    X, y, cost_bounds = problem(C=10.0)
    result = solve(X, y, cost_bounds, "crammer-singer", tolerance=1e-18, time_limit=20.0)
    assert result.status in ("precision", "converged")
    assert result.gap < 1e-9
    assert_certified(result, X, y, cost_bounds, "crammer-singer", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bias": "free"}, "bias"),
        ({"cost_bounds": np.inf}, "finite C"),
    ],
)
def test_what_it_cannot_do_is_said(options, message):
    X, y, _ = problem()
    with pytest.raises(ValueError, match=message):
        solve(X, y, **{"cost_bounds": 1.0, "loss": "crammer-singer"} | options)


# The reduced dual, and a HiGHS that cannot be trusted


def reduced_problem(n, rank, seed):
    """Return a Gram matrix of norms that differ widely, and offsets."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, rank)) + 2.0
    V *= np.logspace(0, 3, n)[:, None]
    return V @ V.T, rng.uniform(1.0, 3.0, n) * np.sqrt((V**2).sum(axis=1))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "rank"), [(2, 5), (30, 5), (60, 100)])
def test_reduced_dual_satisfies_its_conditions(n, rank, seed):
    G, b = reduced_problem(n, rank, seed)
    gap = 1e-6 * b.max()
    weight, solved = solve_reduced_dual(G, b, np.zeros(n), gap=gap, time_limit=10.0, settings=ReducedDualSettings())
    assert solved
    assert np.all(weight >= 0)
    assert weight.sum() <= 1 + 1e-12
    slope = b - G @ weight  # the value is at most this much below the maximum
    assert max(0.0, slope.max()) - slope @ weight <= gap


@every_loss
def test_without_highs_exact_steps_go_on_for_a_while(monkeypatch, loss):
    X, y = iris()
    cost_bounds = np.full(len(y), 0.1)
    monkeypatch.setattr(reduced_dual, "solve_by_highs", lambda *args: None)
    result = solve(X, y, cost_bounds, loss)
    assert result.status == "precision"
    assert result.fallbacks == result.iterations - 1 == CuttingPlaneSettings().max_stalled
    assert_certified(result, X, y, cost_bounds, loss, None)
    slow = solve(X, y, cost_bounds, loss, tolerance=0.1, settings=CuttingPlaneSettings(max_stalled=10**6))
    assert slow.status == "converged"
    assert_certified(slow, X, y, cost_bounds, loss, None)


@every_loss
@pytest.mark.parametrize("answer", [0.0, 1.0, 1e6])
def test_wrong_answers_of_highs_break_no_bound(monkeypatch, loss, answer):
    X, y, cost_bounds = problem()
    best = together.solve_together(X @ X.T, y, cost_bounds, loss=loss, margin=LOSSES[loss]).dual
    monkeypatch.setattr(reduced_dual, "solve_by_highs", lambda H, cost, *args: np.full(len(cost), answer))
    duals = []

    def progress(done, total, iterations, gap, result):
        duals.append(result().dual)
        return True

    result = solve(X, y, cost_bounds, loss, max_iterations=30, progress=progress)
    if result.status == "max_iter":  # else the last point was reported
        duals.append(result.dual)
    assert np.all(np.diff(duals) > 0)
    assert duals[-1] <= best
    assert result.fallbacks > 0
    assert_certified(result, X, y, cost_bounds, loss, None)
