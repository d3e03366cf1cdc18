"""The Cholesky factor by blocks: that of LAPACK, whatever the number of threads, and only of definite matrices."""

import numpy as np
import pytest

from polymargin.support.factorisation import factorise, triangular_inverse


def definite(n):
    A = np.random.default_rng(n).normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


@pytest.mark.parametrize("n", [1, 7, 256, 257, 700])
def test_the_factor_and_its_inverse(n):
    M = definite(n)
    L = M.copy()
    factorise(L, 1)
    L = np.tril(L)
    np.testing.assert_allclose(L, np.linalg.cholesky(M), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(triangular_inverse(L) @ L, np.eye(n), atol=1e-10)


def test_threads_do_not_change_a_bit():
    one, two = definite(700), definite(700)
    factorise(one, 1)
    factorise(two, 2)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(triangular_inverse(np.tril(one), 1), triangular_inverse(np.tril(one), 2))


@pytest.mark.parametrize("allowed", [0, 2])
def test_whoever_waits_is_asked_before_every_block(allowed):
    asked = []

    def go_on():
        asked.append(1)
        return len(asked) <= allowed

    assert not factorise(definite(700), 1, go_on)
    assert len(asked) == allowed + 1


@pytest.mark.parametrize("threads", [1, 2])
def test_whoever_waits_is_asked_before_every_product(threads):
    asked = []
    assert factorise(definite(1024), threads, lambda: not asked.append(1), block=256)
    assert len(asked) == 4 + (3 + 2 + 1)  # blocks of columns, and what is right of each


def test_a_no_between_products_is_not_forgotten():
    answers = iter([True, True, False])
    assert not factorise(definite(700), 1, lambda: next(answers, True))


def test_what_is_not_definite_is_refused():
    M = definite(400)
    M[300, 300] = -1.0
    with pytest.raises(np.linalg.LinAlgError):
        factorise(M, 1)
