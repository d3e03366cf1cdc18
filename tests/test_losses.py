"""Losses of joint machines: by definition, their feasible sets, and the hinges that make a sub-gradient."""

import dataclasses

import numpy as np
import pytest
from reference import together

from polymargin.losses import CrammerSinger, OneVsRest, WestonWatkins

LOSSES = [WestonWatkins(), WestonWatkins(0.7), CrammerSinger()]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def problem(k=4, n=50, seed=0):
    """Return scores and labels; the last row is right by more than any margin."""
    rng = np.random.default_rng(seed)
    scores, labels = 2 * rng.normal(size=(n, k)), rng.integers(0, k, n)
    scores[-1] = 10.0 * (np.arange(k) == labels[-1])
    return scores, labels


def hinges_of(loss, scores, labels):
    own = np.arange(len(labels)), labels
    hinges = loss.margin - (scores[own][:, None] - scores)
    hinges[own] = 0.0
    return hinges


@every_loss
def test_values_are_the_definition(loss):
    scores, labels = problem()
    expected = together.losses(scores, labels, loss.name, loss.margin)
    np.testing.assert_allclose(loss.values(scores, labels), expected, rtol=1e-13, atol=1e-13)
    assert loss.values(scores, labels)[-1] == 0.0


@every_loss
def test_active_hinges_make_the_loss_and_a_sub_gradient(loss):
    scores, labels = problem()
    hinges = hinges_of(loss, scores, labels)
    active = loss.active_hinges(hinges)
    assert np.all(np.diff(active) > 0)
    rows, classes = np.divmod(active, scores.shape[1])
    values = np.bincount(rows, weights=hinges.ravel()[active], minlength=len(labels))
    np.testing.assert_allclose(values, loss.values(scores, labels), rtol=1e-13, atol=1e-13)
    slopes = np.zeros_like(scores)
    np.add.at(slopes, (rows, classes), 1.0)
    np.add.at(slopes, (rows, labels[rows]), -1.0)
    for seed in range(20):
        other = 3 * np.random.default_rng(seed).normal(size=scores.shape)
        tangent = values + (slopes * (other - scores)).sum(axis=1)
        assert np.all(tangent <= loss.values(other, labels) + 1e-12)
    assert loss.excess(-slopes, labels, np.ones(len(labels))) == 0.0  # a sub-gradient is a dual point


@every_loss
def test_excess_is_the_distance_from_the_feasible_set(loss):
    _, labels = problem(n=3)
    costs = np.array([1.0, 2.0, 0.5])
    B = np.zeros((3, 4))
    assert loss.excess(B, labels, costs) == 0.0
    wrong = (labels[1] + 1) % 4
    B[1, labels[1]], B[1, wrong] = 2.0, -2.0
    assert loss.excess(B, labels, costs) == 0.0
    B[1, labels[1]], B[1, wrong] = 2.25, -2.25
    assert loss.excess(B, labels, costs) == 0.25
    B[1, labels[1]], B[1, wrong] = -0.5, 0.5
    assert loss.excess(B, labels, costs) == 0.5


def test_feasible_sets_differ_where_two_classes_are_wrong():
    B, label, cost = np.array([[2.0, -1.0, -1.0]]), np.array([0]), np.array([1.0])
    assert WestonWatkins().excess(B, label, cost) == 0.0
    assert CrammerSinger().excess(B, label, cost) == 1.0


def test_losses_are_values():
    assert WestonWatkins(2.0) == WestonWatkins()
    assert WestonWatkins(1.0) != WestonWatkins()
    assert len({CrammerSinger(), CrammerSinger(), OneVsRest(), OneVsRest()}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        WestonWatkins().margin = 1.0
    assert [loss.on_simplex for loss in (WestonWatkins(), CrammerSinger(), OneVsRest())] == [False, True, False]
