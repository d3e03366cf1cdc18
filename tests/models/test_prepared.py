"""A model that is prepared once scores as plain products do, and decides as if every row were alone."""

import numpy as np
import pytest
from reference.data import random_classes
from reference.kernels import kernel_matrix
from scipy import sparse

from polymargin import OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC
from polymargin.decision import adag, dag
from polymargin.kernels.kernel import Kernel
from polymargin.kernels.ordered import kernel_sizes
from polymargin.models.prepared import ErrorBound, prepare, score_masses

KERNELS = {
    "linear": Kernel("linear", 0.0, 0.0, 0),
    "poly": Kernel("poly", 0.3, 1.0, 3),
    "rbf": Kernel("rbf", 0.3, 0.0, 0),
    "sigmoid": Kernel("sigmoid", 0.05, 0.2, 0),
}
BLOCKS = [((0, 40), [0, 2]), ((40, 90), [1]), ((0, 90), [2, 0])]
CONTAINERS = {"dense": np.ascontiguousarray, "sparse": sparse.csr_array}


def problem(n_vectors=90, seed=0):
    rng = np.random.default_rng(seed)
    X, vectors = rng.normal(size=(50, 7)), rng.normal(size=(n_vectors, 7))
    return X, vectors, rng.normal(size=(2, n_vectors)), rng.normal(size=3)


def plain_scores(kernel, X, vectors, coefficients, intercepts):
    K = kernel_matrix(X, vectors, kernel.kind, gamma=kernel.gamma, coef0=kernel.coef0, degree=kernel.degree)
    scores = np.tile(intercepts, (len(X), 1))
    for (begin, end), columns in BLOCKS:
        for row, column in enumerate(columns):
            scores[:, column] += K[:, begin:end] @ coefficients[row, begin:end]
    return scores


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("of_rows", CONTAINERS)
@pytest.mark.parametrize("of_vectors", CONTAINERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_and_sizes(kernel, of_rows, of_vectors, dtype):
    X, vectors, coefficients, intercepts = problem()
    X, vectors = X.astype(dtype).astype(float), vectors.astype(dtype).astype(float)
    prepared = prepare(kernel, CONTAINERS[of_vectors](vectors.astype(dtype)), coefficients, BLOCKS, intercepts)
    expected = plain_scores(kernel, X, vectors, coefficients, intercepts)
    for rows in ([3], [1, 2], range(50)):
        scores, sizes = prepared.scores(CONTAINERS[of_rows](X[rows].astype(dtype)), threads=2)
        np.testing.assert_allclose(scores, expected[rows], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(sizes, kernel_sizes(kernel, X[rows], vectors), rtol=1e-10)


def test_no_rows_and_no_vectors():
    _, vectors, coefficients, intercepts = problem()
    prepared = prepare(KERNELS["rbf"], vectors, coefficients, BLOCKS, intercepts)
    scores, sizes = prepared.scores(np.empty((0, 7)))
    assert scores.shape == (0, 3)
    assert sizes.shape == (0,)
    none = prepare(KERNELS["rbf"], np.empty((0, 7)), np.empty((2, 0)), [((0, 0), [0, 1])], np.array([1.0, 2.0]))
    np.testing.assert_array_equal(none.scores(np.ones((2, 7)))[0], [[1.0, 2.0], [1.0, 2.0]])


@pytest.mark.parametrize(
    "blocks", [[((0, 91), [0])], [((-1, 5), [0])], [((5, 4), [0])], [((0, 9), [3])], [((0, 9), [0, 1, 2])]]
)
def test_blocks_that_do_not_fit_are_refused(blocks):
    _, vectors, coefficients, intercepts = problem()
    with pytest.raises(ValueError, match="block"):
        prepare(KERNELS["rbf"], vectors, coefficients, blocks, intercepts)


def test_masses():
    _, _, coefficients, _ = problem()
    masses = [score_masses(coefficients, BLOCKS, 3, power) for power in (1, 2)]
    one = np.concatenate([coefficients[0, 40:]])
    np.testing.assert_allclose([masses[0][1], masses[1][1]], [np.abs(one[:50]).sum(), np.linalg.norm(one[:50])])


@pytest.mark.parametrize("decision", ["dag", "adag"])
@pytest.mark.parametrize("k", [3, 4, 7])
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_elimination_asks_what_the_rule_says(decision, k, container):
    X, y = random_classes(k, n=40 * k)
    machine = OneVsOneSVC(C=3.0, gamma=0.5, decision=decision).fit(container(X), y)
    values = machine.pairwise_decision_function(container(X))
    rule = {"dag": dag, "adag": adag}[decision]
    expected = machine.classes_[rule(lambda p, rows: values[rows, p], len(X), k)]
    np.testing.assert_array_equal(machine.predict(container(X)), expected)
    for row in range(0, len(X), 7):
        assert machine.predict(container(X[[row]])) == expected[row]
        assert machine.predict(X[[row]]) == expected[row]


def test_rows_in_doubt_are_named_at_the_last_bound():
    X, y = random_classes(4, n=120)
    machine = OneVsOneSVC(decision="dag").fit(X, y)
    scorer = machine.model_.scorer
    offsets, masses = np.zeros(6), np.ones(6)
    sure, doubt = ErrorBound(0.0, masses, offsets, np.inf), ErrorBound(1e9, masses, offsets, np.inf)
    classes, rows = scorer.eliminate(X, "dag", [doubt, sure])
    np.testing.assert_array_equal(machine.classes_[classes], machine.predict(X))
    assert len(rows) == 0
    assert len(scorer.eliminate(X, "dag", [sure, doubt])[1]) == 0
    np.testing.assert_array_equal(scorer.eliminate(X, "dag", [doubt, doubt])[1], np.arange(len(X)))


@pytest.mark.parametrize("machine", [OneVsOneSVC(), OneVsOneSVC(decision="adag"), OneVsRestSVC(), WestonWatkinsSVC()])
def test_what_is_prepared_is_that_of_the_last_fit(machine):
    X, y = random_classes(3, n=90)
    before = machine.fit(X, y).predict(X)
    after = machine.fit(X, (y + 1) % 3).predict(X)
    assert (before != after).any()
    np.testing.assert_array_equal(type(machine)(**machine.get_params()).fit(X, (y + 1) % 3).predict(X), after)


def test_an_attribute_that_is_set_is_seen():
    X, y = random_classes(3, n=90)
    machine = WestonWatkinsSVC().fit(X, y)
    machine.predict(X)
    machine.intercept_ = machine.intercept_ + np.array([0.0, 0.0, 1e3])
    np.testing.assert_array_equal(machine.predict(X), np.full(len(X), machine.classes_[2]))
    machine.dual_coef_ = machine.dual_coef_[:, :-1]
    with pytest.raises(ValueError, match="damaged: dual_coef_"):
        machine.predict(X)
