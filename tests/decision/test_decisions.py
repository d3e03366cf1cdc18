"""Votes, DAG and ADAG against loops over rows.

Ties: a class needs most votes; among equals the smallest index wins. The DAG and the ADAG have no
ties, only an order of play.
"""

from itertools import product

import numpy as np
import pytest
from reference.composition import pairs
from reference.data import digits, random_classes
from reference.decisions import decide, vote_counts
from scipy import sparse

from polymargin import OneVsOneSVC
from polymargin.decision import is_decided, votes

KINDS = ["votes", "dag", "adag"]


def fit(kind, k, seed=0, **parameters):
    """Fit on weak structure; return the machine and fresh rows to decide."""
    X, y = random_classes(k, n=25 * k, seed=seed)
    machine = OneVsOneSVC(decision=kind, **parameters).fit(X, y)
    return machine, 1.5 * np.random.default_rng(seed + 100).normal(size=(1500, X.shape[1]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", range(2, 10))
@pytest.mark.parametrize("seed", [0, 1])
def test_prediction_is_the_reference_decision(kind, k, seed):
    machine, X = fit(kind, k, seed)
    values = machine.pairwise_decision_function(X)
    sure = (np.abs(values) > 1e-9).all(axis=1)
    assert sure.mean() > 0.99
    np.testing.assert_array_equal(machine.predict(X)[sure], decide(kind, values, k)[sure])


@pytest.mark.parametrize("k", [3, 4, 5, 8])
def test_tied_votes_go_to_the_smallest_class(k):
    machine, X = fit("votes", k, seed=3)
    counts = vote_counts(machine.pairwise_decision_function(X), k)
    tied = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1
    assert tied.sum() >= 5, "the data have no ties to test"
    np.testing.assert_array_equal(machine.predict(X)[tied], counts[tied].argmax(axis=1))


@pytest.mark.parametrize("k", [5, 8])
def test_the_kinds_are_not_all_the_same(k):
    predictions = {}
    for kind in KINDS:
        machine, X = fit(kind, k, seed=3)
        predictions[kind] = machine.predict(X)
    assert (predictions["votes"] != predictions["dag"]).any()
    assert (predictions["dag"] != predictions["adag"]).any()
    assert (predictions["votes"] != predictions["adag"]).any()


@pytest.mark.parametrize("k", [2, 3, 6])
def test_the_kind_of_decision_does_not_change_the_fit(k):
    machines = [fit(kind, k)[0] for kind in KINDS]
    _, X = fit("votes", k)
    for machine in machines[1:]:
        np.testing.assert_array_equal(machine.dual_coef_, machines[0].dual_coef_)
        np.testing.assert_array_equal(machine.intercept_, machines[0].intercept_)
        np.testing.assert_array_equal(machine.pairwise_decision_function(X), machines[0].pairwise_decision_function(X))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_every_kernel_and_container_is_decided_alike(kind, container, kernel):
    X, y = digits()
    machine = OneVsOneSVC(C=0.02, kernel=kernel, decision=kind).fit(container(X[:300]), y[:300])
    rows = container(X[300:900])
    values = machine.pairwise_decision_function(rows)
    sure = (np.abs(values) > 1e-6).all(axis=1)
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(machine.predict(rows)[sure], decide(kind, values, 10)[sure])


@pytest.mark.parametrize("kind", KINDS)
def test_precomputed_kernel_is_decided_alike(kind):
    X, y = random_classes(6, n=120, seed=4)
    K = np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    machine = OneVsOneSVC(kernel="precomputed", decision=kind).fit(K, y)
    np.testing.assert_array_equal(machine.predict(K), decide(kind, machine.pairwise_decision_function(K), 6))


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_labels_not_indices(kind):
    X, y = random_classes(5, n=100, seed=6)
    names = np.array(["ant", "bee", "cat", "dog", "eel"])
    machine = OneVsOneSVC(decision=kind).fit(X, names[y])
    expected = names[decide(kind, machine.pairwise_decision_function(X), 5)]
    np.testing.assert_array_equal(machine.predict(X), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_decided_alone_as_it_is_among_others(kind):
    machine, X = fit(kind, 7, seed=5)
    alone = np.concatenate([machine.predict(X[i : i + 1]) for i in range(0, 200, 4)])
    np.testing.assert_array_equal(alone, machine.predict(X)[:200:4])


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_that_beats_all_others_wins_under_every_rule(kind):
    machine, X = fit(kind, 6, seed=7)
    values = machine.pairwise_decision_function(X)
    counts = vote_counts(values, 6)
    unbeaten = counts.max(axis=1) == len(pairs(6)) * 2 // 6
    assert unbeaten.sum() > 50
    np.testing.assert_array_equal(machine.predict(X)[unbeaten], counts[unbeaten].argmax(axis=1))


@pytest.mark.parametrize("k", [3, 4, 6])
def test_a_row_is_decided_if_no_open_pair_can_change_the_winner(k):
    rng = np.random.default_rng(k)
    pairs = k * (k - 1) // 2
    values, unsure = rng.normal(size=(300, pairs)), rng.random((300, pairs)) < 0.15
    found, clear = is_decided(values, unsure, k), []
    for row, open_pairs, decided in zip(values, unsure, found, strict=True):
        places = np.flatnonzero(open_pairs)
        ways = np.repeat(row[None, :], 2 ** len(places), axis=0)
        ways[:, places] = np.array(list(product([-1.0, 1.0], repeat=len(places)))).reshape(len(ways), len(places))
        winners = {int(winner) for order in (np.arange(k), np.arange(k)[::-1]) for winner in votes(ways, k, order)}
        clear.append(len(winners) == 1)
        assert clear[-1] or not decided
    assert 0.1 < found.mean() < 0.9
    assert found.sum() > 0.7 * np.sum(clear)
