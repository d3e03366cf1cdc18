"""Sessions of kernel values for solvers in Python, and what a kernel that is trained on again keeps."""

import numpy as np
import pytest
from reference.kernels import kernel_matrix
from scipy import sparse

from polymargin.kernels import Kernel, KernelSession, SharedKernel

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 6))
ORDER = RNG.permutation(40)[:30].astype(np.int64)
GAMMA = 0.2
LOPSIDED = kernel_matrix(X, X, gamma=GAMMA) + np.triu(RNG.normal(size=(40, 40)))


class Counted:
    """A kernel function that is not symmetric, and counts."""

    def __init__(self):
        self.values = 0

    def __call__(self, A, B):
        self.values += len(A) * len(B)
        return A @ (B + 1.0).T


def sessions(budget_bytes, rows=None):
    for name, data in (("rbf", X), ("laplacian", X), ("rbf", sparse.csr_array(X)), ("laplacian", sparse.csr_array(X))):
        kernel = Kernel(name, GAMMA, 0.0, 3)
        K = kernel_matrix(X, X, name, gamma=GAMMA)[np.ix_(ORDER, ORDER)]
        yield KernelSession(kernel, data, ORDER, budget_bytes, 1, rows=rows), K
    given = KernelSession(Kernel("precomputed", 0.0, 0.0, 3), LOPSIDED, ORDER, budget_bytes, 1, rows=rows)
    yield given, LOPSIDED[np.ix_(ORDER, ORDER)]
    called = KernelSession(Kernel(Counted(), 0.0, 0.0, 3), X, ORDER, budget_bytes, 1, rows=rows)
    yield called, (X @ (X + 1.0).T)[np.ix_(ORDER, ORDER)]


@pytest.mark.parametrize("budget", [0, 8 * 30 * 7, 10**6])
def test_blocks_and_products_are_those_of_the_matrix(budget):
    for session, K in sessions(budget):
        for _ in range(2):  # the second time some values are kept
            rows, columns = RNG.permutation(30)[:11], RNG.permutation(30)[:13]
            c, C = RNG.normal(size=13), RNG.normal(size=(13, 4))
            np.testing.assert_allclose(session.block(rows, columns), K[np.ix_(rows, columns)], atol=1e-12)
            assert session.block(rows, columns, np.float32).dtype == np.float32
            np.testing.assert_allclose(session.product(columns, c), K[:, columns] @ c, atol=1e-11)
            np.testing.assert_allclose(session.product(columns, C), K[:, columns] @ C, atol=1e-11)
            np.testing.assert_allclose(session.transposed_product(columns, C), K[columns].T @ C, atol=1e-11)
        none = np.empty(0, dtype=np.int64)
        np.testing.assert_array_equal(session.product(none, np.empty(0)), np.zeros(30))
        assert session.block(none, columns).shape == (0, 13)


@pytest.mark.parametrize("budget", [0, 8 * 9 * 7, 10**6])
def test_a_session_of_some_rows(budget):
    some = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23])
    for session, K in sessions(budget, rows=some):
        columns, c = RNG.permutation(30)[:13], RNG.normal(size=13)
        np.testing.assert_allclose(session.product(columns, c), K[np.ix_(some, columns)] @ c, atol=1e-11)
        rows = np.array([8, 0])
        np.testing.assert_allclose(session.block(rows, columns), K[np.ix_(some[rows], columns)], atol=1e-12)
        d = RNG.normal(size=2)
        np.testing.assert_allclose(session.transposed_product(rows, d), K[some[rows]].T @ d, atol=1e-11)


def test_a_column_is_computed_once_while_there_is_room():
    session = KernelSession(Kernel("rbf", GAMMA, 0.0, 3), X, ORDER, 8 * 30 * 7, 1)
    assert session.kept_bytes == 8 * 30 * 7
    first, second = np.arange(5), np.arange(3, 10)
    for _ in range(3):
        session.product(first, np.ones(5))
    assert session.evaluations == 30 * 5
    session.block(np.arange(30), second)  # two more are kept, three are not
    assert session.evaluations == 30 * 10
    session.block(np.arange(4), second)
    assert session.evaluations == 30 * 10 + 4 * 3


def test_a_function_is_called_once_if_the_budget_allows():
    kernel = Kernel(Counted(), 0.0, 0.0, 3)
    session = KernelSession(kernel, X, ORDER, 8 * 40 * 40, 1)
    session.product(np.arange(30), np.ones(30))
    session.transposed_product(np.arange(30), np.ones(30))
    assert kernel.kind.values == session.evaluations == 40 * 40
    kernel = Kernel(Counted(), 0.0, 0.0, 3)
    session = KernelSession(kernel, X, ORDER, 0, 1)
    session.block(np.arange(2), np.arange(3))
    assert kernel.kind.values == session.evaluations == 6


def test_a_precomputed_matrix_must_be_square():
    with pytest.raises(ValueError, match="square"):
        KernelSession(Kernel("precomputed", 0.0, 0.0, 3), X, np.arange(6), 0, 1)


def test_a_shared_kernel_keeps_one_session_and_one_set_of_features():
    kernel = SharedKernel("precomputed", 0.0, 0.0, 0, 1.0, 1e-3, X)
    K = kernel_matrix(X, X, gamma=GAMMA)
    other = np.arange(20)

    def session(order):
        return kernel.session(K, order, 1.0, 1e-3, 10**6, 1)

    first = session(ORDER)
    assert session(ORDER) is first
    assert session(other) is not first
    made = []
    for key in ("a", "a", "b", "a"):
        kernel.features(key, lambda key=key: made.append(key))
    assert made == ["a", "b", "a"]
    assert kernel.examples(K) is X
    assert not kernel.refine
    plain = Kernel("rbf", GAMMA, 0.0, 0)
    assert plain.features("a", list) == []
    assert plain.examples(K) is K
    assert plain.refine
