"""Losses: their formulas, derivatives by differences, limits, and what their bounds rest on."""

import itertools

import numpy as np
import pytest
from reference.softmax import one_vs_rest_loss, soft_maximum, softmax_loss

from polymargin.solvers import OneVsRestLoss, SoftmaxLoss

GAMMAS = [0.0, 1e-12, 1e-3, 0.5, 1.0, 3.0, 50.0, np.inf]
SMOOTH = [OneVsRestLoss(), *map(SoftmaxLoss, GAMMAS[:-1])]


def name(loss):
    return f"{type(loss).__name__}({getattr(loss, 'aggregation', '')})"


def problem(k=4, n=30, seed=0, scale=2.0):
    rng = np.random.default_rng(seed)
    return scale * rng.normal(size=(n, k)), rng.integers(0, k, n)


@pytest.mark.parametrize("gamma", [0.0, 1e-3, 0.5, 1.0, 3.0, 50.0, np.inf])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_values_are_the_formula(gamma, k):
    scores, codes = problem(k)
    got = SoftmaxLoss(gamma).evaluate(scores, codes).values
    expected = [softmax_loss(s, y, gamma) for s, y in zip(scores, codes, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=1e-11)


def test_values_of_the_binary_problems_are_the_formula():
    scores, codes = problem()
    expected = [one_vs_rest_loss(s, y) for s, y in zip(scores, codes, strict=True)]
    np.testing.assert_allclose(OneVsRestLoss().evaluate(scores, codes).values, expected, rtol=1e-13)


@pytest.mark.parametrize("loss", SMOOTH, ids=name)
def test_slopes_are_differences(loss):
    scores, codes = problem()
    slopes = loss.evaluate(scores, codes).slopes
    h = 1e-5
    for u in range(scores.shape[1]):
        step = np.zeros(scores.shape[1])
        step[u] = h
        up, down = (loss.evaluate(scores + sign * step, codes).values for sign in (1, -1))
        np.testing.assert_allclose(slopes[:, u], (up - down) / (2 * h), atol=1e-6)


@pytest.mark.parametrize("loss", SMOOTH, ids=name)
def test_hessian_products_are_differences_of_slopes(loss):
    scores, codes = problem()
    direction = np.random.default_rng(1).normal(size=scores.shape)
    curvature = loss.evaluate(scores, codes).curvature
    h = 1e-6
    up, down = (loss.evaluate(scores + sign * h * direction, codes).slopes for sign in (1, -1))
    got = loss.product(curvature, codes, direction)
    np.testing.assert_allclose(got, (up - down) / (2 * h), atol=1e-6 * max(1.0, np.abs(got).max()))


def test_one_is_multinomial_logistic_regression():
    scores, codes = problem()
    own = scores[np.arange(len(codes)), codes]
    expected = np.log(np.exp(scores - own[:, None]).sum(axis=1))
    np.testing.assert_allclose(SoftmaxLoss(1.0).evaluate(scores, codes).values, expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0])
def test_tiny_and_huge_aggregations_are_the_sum_and_the_maximum(scale):
    scores, codes = problem(scale=scale)
    zero, one = SoftmaxLoss(0.0).evaluate(scores, codes), SoftmaxLoss(np.inf).evaluate(scores, codes)
    for gamma in (1e-300, 1e-80, 1e-15):
        tiny = SoftmaxLoss(gamma).evaluate(scores, codes)
        np.testing.assert_allclose(tiny.values, zero.values, rtol=1e-11)
        np.testing.assert_allclose(tiny.slopes, zero.slopes, atol=1e-11)
    for gamma in (1e15, 1e300):
        huge = SoftmaxLoss(gamma).evaluate(scores, codes)
        np.testing.assert_allclose(huge.values, one.values, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(huge.slopes, one.slopes, atol=1e-11)


def test_it_falls_as_the_aggregation_grows():
    scores, codes = problem(scale=5.0)
    series = [SoftmaxLoss(gamma).evaluate(scores, codes).values for gamma in GAMMAS]
    for larger, smaller in itertools.pairwise(series):
        assert (smaller <= larger * (1 + 1e-12)).all()


@pytest.mark.parametrize("gamma", GAMMAS)
def test_extreme_scores_give_finite_numbers(gamma):
    scores = np.array([[1e3, -1e3, 0.0], [-1e3, 1e3, 1e3], [1e8, 0.0, 0.0], [0.0, 1e8, 1e8], [0.0, 0.0, 0.0]])
    with np.errstate(all="raise", under="ignore"):
        values, slopes, _ = SoftmaxLoss(gamma).evaluate(scores, np.zeros(5, dtype=int))
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    assert np.isfinite(slopes).all()
    np.testing.assert_allclose(slopes.sum(axis=1), 0.0, atol=1e-12)


def curvature_matrices(gamma, scores, codes):
    """Return the Hessian of each example."""
    loss, k = SoftmaxLoss(gamma), scores.shape[1]
    curvature = loss.evaluate(scores, codes).curvature
    columns = [loss.product(curvature, codes, np.tile(np.eye(k)[u], (len(codes), 1))) for u in range(k)]
    return np.stack(columns, axis=2)


def test_convex_where_it_says_so_and_not_between():
    scores, codes = problem(k=4, n=2000, scale=6.0)
    for gamma in (0.0, 1.0, 1.5, 10.0):
        assert SoftmaxLoss(gamma).convex
        assert np.linalg.eigvalsh(curvature_matrices(gamma, scores, codes)).min() > -1e-12
    for gamma in (0.1, 0.5, 0.9):
        assert not SoftmaxLoss(gamma).convex
        assert np.linalg.eigvalsh(curvature_matrices(gamma, scores, codes)).min() < -1e-4


@pytest.mark.parametrize("gamma", [*GAMMAS, 1e4])
@pytest.mark.parametrize("softer", [None, 2.0, 64.0])
def test_the_minorant_is_below_the_loss_everywhere(gamma, softer):
    loss = SoftmaxLoss(gamma)
    scores, codes = problem(n=200)
    values, slopes = loss.minorant(scores, codes, None if softer is None else SoftmaxLoss(softer))
    assert (values <= loss.evaluate(scores, codes).values * (1 + 1e-12)).all()
    for seed in range(20):  # convex and below: its tangents are below the loss everywhere
        other, _ = problem(n=200, seed=seed, scale=6.0)
        tangent = values + (slopes * (other - scores)).sum(axis=1)
        assert (tangent <= loss.evaluate(other, codes).values + 1e-9).all()


@pytest.mark.parametrize("loss", [SoftmaxLoss(1.0), OneVsRestLoss()], ids=name)
def test_balance_cancels_the_sums_with_slopes_that_the_loss_can_have(loss):
    k = 4
    totals = np.array([3.0, 0.5, 8.0, 1.0])
    rng = np.random.default_rng(3)
    for scale in (1e-9, 0.1, 10.0):
        sums = scale * rng.normal(size=k)
        sums -= sums.mean() if loss.relative else 0.0
        share, F = loss.balance(sums, totals)
        assert 0 < share < 1
        np.testing.assert_allclose((1 - share) * sums + share * (totals @ F), 0.0, atol=1e-14 * max(1.0, scale))
        # The conjugate is at most 0 there: s.F - L(s) <= 0 for all scores s.
        scores = 20 * rng.normal(size=(500, k))
        for y in range(k):
            values = loss.evaluate(scores, np.full(500, y)).values
            assert (scores @ F[y] - values <= 1e-9).all()


@pytest.mark.parametrize("gamma", [0.3, 1.0, 7.0])
def test_soft_maximum_of_one_number_is_the_number(gamma):
    assert soft_maximum([0.7], gamma) == pytest.approx(0.7)
    scores, codes = problem(k=2)
    np.testing.assert_allclose(
        SoftmaxLoss(gamma).evaluate(scores, codes).values, SoftmaxLoss(0.0).evaluate(scores, codes).values, rtol=1e-12
    )
