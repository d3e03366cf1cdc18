"""The objective on features: derivatives by differences, and bounds that hold."""

import numpy as np
import pytest
from reference.data import overlapping
from reference.softmax import objective as plain_objective
from reference.softmax import softmax_loss
from scipy import sparse

from polymargin.solvers import Limits, Objective, OneVsRestLoss, SoftmaxLoss, class_factor, minimize
from polymargin.support.blocks import row_blocks

LOSSES = {
    "sum": SoftmaxLoss(0.0),
    "half": SoftmaxLoss(0.5),
    "one": SoftmaxLoss(1.0),
    "ten": SoftmaxLoss(10.0),
    "one-vs-rest": OneVsRestLoss(),
}
CLASS_KERNEL = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.5]])


def make(loss, free_bias=True, n=60, factor=None, container=np.asarray, blocks=None):
    X, y = overlapping(n=n, n_features=6, n_classes=3)
    costs = np.random.default_rng(1).uniform(0.5, 2.0, n)
    factor = np.eye(3) if factor is None else factor
    if blocks is None:
        with row_blocks(1) as blocks:
            pass
    return Objective(container(X), y, costs, loss, factor, free_bias, blocks)


def solve(objective, **options):
    return minimize(objective, np.zeros(objective.size), Limits(**{"tolerance": 1e-10} | options))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("free_bias", [True, False])
@pytest.mark.parametrize("factor", [None, class_factor(CLASS_KERNEL, 3)], ids=["identity", "class kernel"])
def test_gradient_and_hessian_are_differences(loss, free_bias, factor):
    objective = make(LOSSES[loss], free_bias, factor=factor)
    rng = np.random.default_rng(0)
    point = 0.3 * rng.normal(size=objective.size)
    value, gradient = objective.value_and_gradient(point)
    h = 1e-5
    steps = h * np.eye(objective.size)
    up = np.array([objective.value_and_gradient(point + step)[0] for step in steps])
    down = np.array([objective.value_and_gradient(point - step)[0] for step in steps])
    np.testing.assert_allclose(gradient, (up - down) / (2 * h), atol=1e-6 * value)
    direction = rng.normal(size=objective.size)
    ahead, behind = (objective.value_and_gradient(point + sign * h * direction)[1] for sign in (1, -1))
    product = objective.hessian_product(point, direction)
    np.testing.assert_allclose(product, (ahead - behind) / (2 * h), atol=1e-6 * np.abs(product).max())


def test_value_is_the_formula_in_coefficients():
    X, y = overlapping(n=40, n_features=6, n_classes=3)
    rng = np.random.default_rng(0)
    alpha, b, costs = rng.normal(size=(40, 3)), rng.normal(size=3), rng.uniform(0.5, 2.0, 40)
    with row_blocks(1) as blocks:
        objective = Objective(X, y, costs, SoftmaxLoss(2.0), class_factor(CLASS_KERNEL, 3), True, blocks)
    V = X.T @ alpha @ objective.factor
    expected = plain_objective(X @ X.T, y, alpha, b, costs, lambda s, c: softmax_loss(s, c, 2.0), CLASS_KERNEL)
    assert objective.value_and_gradient(objective.join(V, b))[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("free_bias", [True, False])
def test_the_bound_holds_wherever_it_is_computed(loss, free_bias):
    objective = make(LOSSES[loss], free_bias)
    best = solve(objective)
    assert best.status == "converged"
    rng = np.random.default_rng(0)
    for scale in (0.0, 1e-6, 1e-3, 0.1, 1.0, 10.0):
        point = best.point + scale * rng.normal(size=objective.size)
        assert objective.bound(point) <= best.primal * (1 + 1e-12)
    if LOSSES[loss].convex:
        assert objective.bound(best.point) == pytest.approx(best.primal, rel=1e-9)


def on_a_triangle(container=np.asarray, n=700, r=600, threads=1):
    """An objective whose first rows have few features, in several blocks, and a point."""
    rng = np.random.default_rng(0)
    Z, y = np.tril(rng.normal(size=(n, r))) / np.sqrt(r), rng.integers(3, size=n)
    with row_blocks(threads) as blocks:
        objective = Objective(container(Z), y, rng.uniform(0.5, 2.0, n), SoftmaxLoss(1.0), np.eye(3), True, blocks)
    return objective, rng.normal(size=objective.size)


def test_the_zeros_of_a_triangular_basis_change_nothing():
    (triangular, point), (plain, _) = on_a_triangle(), on_a_triangle(sparse.csr_matrix)
    value, gradient = plain.value_and_gradient(point)
    assert triangular.value_and_gradient(point)[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(triangular.value_and_gradient(point)[1], gradient, atol=1e-12 * np.abs(gradient).max())
    product = plain.hessian_product(point, gradient)
    np.testing.assert_allclose(triangular.hessian_product(point, gradient), product, atol=1e-12 * np.abs(product).max())


def test_the_preconditioner_is_the_inverse_of_a_hessian_with_one_curvature():
    objective, point = on_a_triangle()
    h, (V, b) = objective.mean_curvature(point), objective.split(point)
    beta = 1.0  # of the identity
    expected = np.linalg.solve(np.eye(600) + beta * objective.Z.T @ (h[:, None] * objective.Z), V)
    found = objective.preconditioner(point, lambda: True)(point)
    np.testing.assert_allclose(objective.split(found)[0], expected, atol=1e-10)
    np.testing.assert_allclose(objective.split(found)[1], b / h.sum(), rtol=1e-12)


@pytest.mark.parametrize("asked", [0, 1, 3])
def test_the_preconditioner_ends_when_it_is_told_to(asked):
    objective, point = on_a_triangle()
    answers = iter([True] * asked + [False] * 100)
    assert objective.preconditioner(point, lambda: next(answers)) is None


def test_without_a_bias_the_bound_is_half_the_squared_gradient_below():
    objective = make(SoftmaxLoss(1.0), free_bias=False)
    point = np.random.default_rng(0).normal(size=objective.size)
    value, gradient = objective.value_and_gradient(point)
    assert objective.bound(point) == pytest.approx(value - 0.5 * gradient @ gradient, rel=1e-12)


@pytest.mark.parametrize("gamma", [30.0, 1e4, 1e12, np.inf])
def test_kinks_are_approached_by_softer_losses(gamma):
    objective = make(SoftmaxLoss(gamma), n=200)
    outcome = solve(objective, tolerance=1e-5)
    assert outcome.status == "converged"
    assert 0 <= outcome.primal - outcome.dual <= 1e-5 * outcome.primal
    assert objective.value_and_gradient(outcome.point)[0] == pytest.approx(outcome.primal, rel=1e-13)


def test_sparse_features_are_dense_ones():
    dense, csr = make(SoftmaxLoss(1.0)), make(SoftmaxLoss(1.0), container=sparse.csr_array)
    point = np.random.default_rng(0).normal(size=dense.size)
    np.testing.assert_allclose(dense.value_and_gradient(point)[1], csr.value_and_gradient(point)[1], atol=1e-12)
    assert dense.bound(point) == pytest.approx(csr.bound(point), rel=1e-12)


def test_threads_change_no_bit():
    results = []
    for n_jobs in (1, 2, 4):
        with row_blocks(n_jobs) as blocks:
            objective = make(SoftmaxLoss(1.0), n=9000, blocks=blocks)  # several blocks
            outcome = solve(objective, tolerance=1e-6)
        results.append((outcome.point.tobytes(), outcome.primal, outcome.dual))
    assert results[0] == results[1] == results[2]


def test_limits_end_the_search_and_keep_the_best_point():
    objective = make(SoftmaxLoss(1.0), n=300)
    for options, status in (({"max_iterations": 1}, "max_iter"), ({"time_limit": 0.0}, "time_limit")):
        outcome = solve(objective, **options)
        assert outcome.status == status
        assert outcome.dual <= outcome.primal <= objective.value_and_gradient(np.zeros(objective.size))[0]
    calls = []
    stopped = solve(objective, progress=lambda *state: calls.append(state) or len(calls) < 3)
    assert stopped.status == "stopped"
    assert len(calls) == 3
