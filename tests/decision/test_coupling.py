"""Sigmoids and coupling against general optimisers, and what both must keep whatever the numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import coupling as reference
from reference.composition import pairs

from polymargin.decision import Sigmoids, couple, coupling, fit_sigmoids


def values_of(seed, n=60, overlap=1.0, scale=1.0):
    """Return decision values that follow the labels, the more so the smaller ``overlap``, and weights."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < rng.uniform(0.2, 0.8)
    positive[:2] = True, False
    values = scale * (np.where(positive, 1.0, -1.0) + overlap * rng.normal(size=n))
    return values, positive, rng.uniform(0.1, 3.0, n)


def fit_one(values, positive, weight):
    A, B = fit_sigmoids(values, positive, weight, np.array([0, len(values)]))
    return A[0], B[0]


def random_pairwise(rng, n, k, least):
    """Return probabilities of pairs whose logits are uniform between those of ``least`` and 1 - ``least``."""
    most = np.log(1 / least - 1)
    return np.clip(1 / (1 + np.exp(rng.uniform(-most, most, (n, k * (k - 1) // 2)))), least, 1 - least)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("overlap", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_sigmoid_has_the_largest_likelihood(seed, overlap, scale):
    values, positive, weight = values_of(seed, overlap=overlap, scale=scale)
    A, B = fit_one(values, positive, weight)
    target = reference.targets(positive, weight)
    best = reference.sigmoid(values, positive, weight)
    found, optimum = (reference.likelihood(*ab, values, target, weight) for ab in ((A, B), best))
    assert found <= optimum * (1 + 1e-12)
    np.testing.assert_allclose([A * scale, B], [best[0] * scale, best[1]], rtol=1e-3, atol=1e-4)


def test_the_gradient_of_the_likelihood_vanishes():
    for seed in range(20):
        values, positive, weight = values_of(seed, overlap=0.7)
        A, B = fit_one(values, positive, weight)
        assert A < 0
        residual = weight * (reference.targets(positive, weight) - 1 / (1 + np.exp(A * values + B)))
        np.testing.assert_allclose([residual.sum(), residual @ values], 0.0, atol=1e-9)


def test_pairs_are_fitted_as_they_are_alone(monkeypatch):
    cases = [values_of(seed, n=20 + 17 * seed, overlap=0.1 + 0.2 * seed) for seed in range(12)]
    starts = np.concatenate([[0], np.cumsum([len(case[0]) for case in cases])])
    together = fit_sigmoids(*(np.concatenate(part) for part in zip(*cases, strict=True)), starts)
    np.testing.assert_allclose(np.transpose(together), [fit_one(*case) for case in cases], rtol=1e-9)
    monkeypatch.setattr(coupling, "_AT_ONCE", 100)  # a few pairs at a time, or one that is larger than that
    apart = fit_sigmoids(*(np.concatenate(part) for part in zip(*cases, strict=True)), starts)
    np.testing.assert_allclose(together, apart, rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_weight_two_is_an_example_twice(seed):
    values, positive, _ = values_of(seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(values))
    repeated = [np.repeat(part, weight) for part in (values, positive, np.ones(len(values)))]
    np.testing.assert_allclose(fit_one(values, positive, weight.astype(float)), fit_one(*repeated), rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_exchanged_classes_exchange_the_probabilities(seed):
    values, positive, weight = values_of(seed)
    A, B = fit_one(values, positive, weight)
    np.testing.assert_allclose(fit_one(-values, ~positive, weight), (A, -B), rtol=1e-7, atol=1e-9)


def test_values_that_contradict_the_labels_say_nothing():
    values, positive, weight = values_of(1, overlap=0.5)
    A, B = fit_one(-values, positive, weight)
    assert A == 0.0
    target = reference.targets(positive, weight)
    assert 1 / (1 + np.exp(B)) == pytest.approx(np.average(target, weights=weight))
    assert reference.sigmoid(-values, positive, weight)[0] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    "values",
    [np.zeros(4), np.full(4, 3.0), np.array([1e8, 1e8, -1e8, -1e8]), np.array([1e-12, 1e-12, -1e-12, -1e-12])],
    ids=["zero", "constant", "huge", "tiny"],
)
def test_values_of_any_size_are_fitted_with_finite_numbers(values):
    A, B = fit_one(values, np.array([True, True, False, False]), np.ones(4))
    assert np.isfinite([A, B]).all()
    assert A <= 0
    p = 1 / (1 + np.exp(A * values + B))
    # Two of each: the targets are 3/4 and 1/4, which two different values can meet.
    expected = [0.75, 0.75, 0.25, 0.25] if np.ptp(values) else np.full(4, 0.5)
    np.testing.assert_allclose(p, expected, atol=1e-6)


def test_one_example_of_each_class_is_enough():
    A, B = fit_one(np.array([1.0, -1.0]), np.array([True, False]), np.ones(2))
    np.testing.assert_allclose([A, B], [-np.log(2), 0.0], atol=1e-9)  # targets 2/3 and 1/3


@pytest.mark.parametrize("least", [0.1, 1e-3, 1e-7])
@pytest.mark.parametrize("k", [3, 4, 7])
def test_coupled_probabilities_disagree_least(k, least):
    pairwise = random_pairwise(np.random.default_rng(k), 12, k, least)
    for p, row in zip(couple(pairwise, k), pairwise, strict=True):
        best, R = reference.couple(row, k), reference.matrix(row, k)
        assert reference.disagreement(p, R) <= reference.disagreement(best, R) + 1e-15
        np.testing.assert_allclose(p, best, atol=1e-4)


@pytest.mark.parametrize("least", [0.1, 1e-3])
@pytest.mark.parametrize("k", [3, 5])
def test_coupled_probabilities_are_the_fixed_point_of_the_papers_algorithm(k, least):
    pairwise = random_pairwise(np.random.default_rng(k), 5, k, least)
    expected = [reference.fixed_point(row, k) for row in pairwise]
    np.testing.assert_allclose(couple(pairwise, k), expected, atol=1e-9)


@given(k=st.integers(3, 12), exponent=st.floats(0.5, 7), seed=st.integers(0, 2**32 - 1))
def test_coupled_probabilities_satisfy_the_optimality_conditions(k, exponent, seed):
    pairwise = random_pairwise(np.random.default_rng(seed), 8, k, 10.0**-exponent)
    for p, row in zip(couple(pairwise, k), pairwise, strict=True):
        assert p.min() >= 0
        assert p.sum() == pytest.approx(1, abs=1e-14)
        R = reference.matrix(row, k)
        Q = -R.T * R
        Q[np.diag_indices(k)] = (R**2).sum(axis=0)
        slope = Q @ p
        np.testing.assert_allclose(slope, slope.mean(), atol=1e-13)


@pytest.mark.parametrize("k", [2, 3, 6, 40])
def test_pairs_that_agree_are_believed(k):
    p = np.random.default_rng(k).dirichlet(np.ones(k), size=20)
    pairwise = np.column_stack([p[:, i] / (p[:, i] + p[:, j]) for i, j in pairs(k)])
    np.testing.assert_allclose(couple(pairwise, k), p, atol=1e-10)


def test_two_classes_have_the_probability_of_their_pair():
    r = np.array([[1e-7], [0.3], [0.5], [1 - 1e-7]])
    np.testing.assert_array_equal(couple(r, 2), np.column_stack([r, 1 - r]))


def test_pairs_that_know_nothing_leave_all_classes_alike():
    np.testing.assert_allclose(couple(np.full((3, 45), 0.5), 10), 0.1, atol=1e-15)


@pytest.mark.parametrize("k", [3, 5, 9])
def test_the_order_of_the_classes_does_not_matter(k):
    rng = np.random.default_rng(k)
    pairwise = random_pairwise(rng, 10, k, 1e-4)
    order = rng.permutation(k)
    shuffled = np.empty_like(pairwise)
    for n, row in enumerate(pairwise):
        R = reference.matrix(row, k)[np.ix_(order, order)]
        shuffled[n] = [R[i, j] for i, j in pairs(k)]
    np.testing.assert_allclose(couple(shuffled, k), couple(pairwise, k)[:, order], atol=1e-12)


def test_many_classes_are_coupled_a_few_rows_at_a_time(monkeypatch):
    pairwise = random_pairwise(np.random.default_rng(0), 7, 130, 1e-5)
    whole = couple(pairwise, 130)
    assert whole.shape == (7, 130)
    np.testing.assert_allclose(whole.sum(axis=1), 1)
    monkeypatch.setattr(coupling, "_AT_ONCE", 3 * 130**2)
    np.testing.assert_array_equal(couple(pairwise, 130), whole)
    assert couple(pairwise[:0], 130).shape == (0, 130)


def test_no_pair_is_quite_sure():
    sigmoids = Sigmoids(np.array([-1.0, -1.0]), np.array([0.0, 1.0]))
    p = sigmoids.probabilities(np.array([[1e6, -1e6], [0.0, 1.0]]))
    np.testing.assert_allclose(p, [[1 - 1e-7, 1e-7], [0.5, 0.5]], rtol=1e-12)


def test_log_odds_have_the_sign_of_the_decision_even_where_rounding_hides_it():
    sigmoids = Sigmoids(np.array([-1.0]), np.array([0.0]))
    values = np.concatenate([[0.0], np.geomspace(1e-18, 1e3, 200), -np.geomspace(1e-18, 1e3, 200)])
    odds = sigmoids.second_class_log_odds(values)
    p = couple(sigmoids.probabilities(values[:, None]), 2)
    np.testing.assert_array_equal(odds > 0, p.argmax(axis=1) == 1)
    np.testing.assert_allclose(odds, -values, atol=1e-15)
