"""Probabilities from scores: against scikit-learn's, by definition, and at the edges."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.isotonic import IsotonicRegression

from polymargin.decision import Calibration, fitted_calibration, inverse_temperature

METHODS = ("sigmoid", "isotonic", "temperature")


def examples(k, n=300, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    scores = rng.normal(size=(n, k)) + 1.5 * np.eye(k)[labels]
    scores = scores[:, [1]] - scores[:, [0]] if k == 2 else scores
    return scores, labels, rng.integers(1, 4, n).astype(float)


def probabilities(calibration, scores):
    return softmax(calibration.log_weights(scores), axis=1)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_temperature_minimises_the_log_loss(k):
    scores, labels, weights = examples(k)
    both = np.column_stack([-scores, scores]) if k == 2 else scores

    def loss(log_b):
        return -weights @ log_softmax(np.exp(log_b) * both, axis=1)[np.arange(len(labels)), labels]

    best = minimize_scalar(loss, bounds=(-5, 5), options={"xatol": 1e-12})
    assert inverse_temperature(both, labels, weights) == pytest.approx(np.exp(best.x), rel=1e-6)
    fitted = fitted_calibration("temperature", scores, labels, weights)
    np.testing.assert_allclose(probabilities(fitted, scores), softmax(np.exp(best.x) * both, axis=1), atol=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_temperature_has_the_unit_of_the_scores(scale):
    scores, labels, weights = examples(4)
    plain = inverse_temperature(scores, labels, weights)
    assert scale * inverse_temperature(scale * scores, labels, weights) == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize(("sign", "sure"), [(1.0, True), (-1.0, False)])
def test_scores_that_are_always_right_or_wrong_have_a_finite_temperature(sign, sure):
    labels = np.arange(30) % 3
    scores = sign * np.eye(3)[labels]
    p = probabilities(fitted_calibration("temperature", scores, labels, np.ones(30)), scores)
    own = p[np.arange(30), labels]
    assert (own > 0.999).all() if sure else np.allclose(p, 1 / 3, atol=1e-3)


def test_scores_that_say_nothing_leave_equal_probabilities():
    labels = np.arange(30) % 3
    scores = np.ones((30, 3))
    p = probabilities(fitted_calibration("temperature", scores, labels, np.ones(30)), scores)
    np.testing.assert_allclose(p, 1 / 3)


@pytest.mark.parametrize("k", [2, 3])
def test_isotonic_is_scikit_learns(k):
    scores, labels, weights = examples(k)
    scores = scores.round(1)  # with many that are equal
    fitted = fitted_calibration("isotonic", scores, labels, weights)
    queries = np.linspace(-4, 6, 500)[:, None] * np.ones(scores.shape[1])
    own = range(1, 2) if k == 2 else range(k)
    shares = [
        IsotonicRegression(out_of_bounds="clip").fit(scores[:, m], labels == c, weights).predict(queries[:, m])
        for m, c in enumerate(own)
    ]
    shares = np.column_stack([1 - shares[0], shares[0]] if k == 2 else shares)
    total = shares.sum(axis=1, keepdims=True)
    expected = np.where(total > 0, shares / np.where(total > 0, total, 1), 1 / k)
    np.testing.assert_allclose(probabilities(fitted, queries), expected, atol=1e-12)


def test_isotonic_keeps_no_more_than_the_ends_of_steps():
    scores, labels, weights = examples(3, n=2000)
    fitted = fitted_calibration("isotonic", scores, labels, weights)
    assert len(fitted.knots) < 400


@pytest.mark.parametrize("k", [2, 3, 5])
def test_sigmoids_solve_their_optimality_conditions(k):
    scores, labels, weights = examples(k)
    fitted = fitted_calibration("sigmoid", scores, labels, weights)
    for m, c in enumerate(range(1, 2) if k == 2 else range(k)):
        own = labels == c
        high, low = (weights[own].sum() + 1) / (weights[own].sum() + 2), 1 / (weights[~own].sum() + 2)
        p = expit(-(fitted.slopes[m] * scores[:, m] + fitted.offsets[m]))
        residual = weights * (np.where(own, high, low) - p)
        assert abs(residual.sum()) < 1e-8 * weights.sum()
        assert abs(residual @ scores[:, m]) < 1e-8 * weights.sum()
        assert fitted.slopes[m] < 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [2, 4])
def test_weight_two_is_an_example_twice(method, k):
    scores, labels, weights = examples(k)
    twice = np.repeat(np.arange(len(labels)), weights.astype(int))
    weighted = fitted_calibration(method, scores, labels, weights)
    repeated = fitted_calibration(method, scores[twice], labels[twice], np.ones(len(twice)))
    np.testing.assert_allclose(probabilities(weighted, scores), probabilities(repeated, scores), atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [2, 4])
def test_logarithms_are_finite_and_rise_with_the_score(method, k):
    scores, labels, weights = examples(k)
    fitted = fitted_calibration(method, scores, labels, weights)
    queries = np.linspace(-1e6, 1e6, 1001)[:, None] * np.ones(scores.shape[1])
    logarithms = fitted.log_weights(queries)
    assert logarithms.shape == (1001, k)
    assert np.isfinite(logarithms).all()
    assert (np.diff(logarithms[:, 1:], axis=0) >= 0).all()


def test_there_is_no_method_of_an_empty_one():
    assert Calibration().method is None
    for method in METHODS:
        assert fitted_calibration(method, *examples(3)).method == method
