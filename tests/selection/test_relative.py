"""Widths and costs relative to the data."""

import numpy as np
import pytest
from reference.data import iris
from reference.kernels import kernel_matrix
from scipy import sparse
from sklearn.model_selection import GridSearchCV

from polymargin import SoftmaxSVC
from polymargin.selection import default_cost, default_width, zien_grid


def test_width_is_a_quantile_of_the_distances():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])  # distances 1, 2, 3, 4, 6, 7
    assert default_width(X, 2) == 4.0
    assert default_width(X, 3) == 3.0
    assert default_width(sparse.csr_matrix(X), 6) == 2.0
    assert default_width(np.array([[0.0], [0.0], [0.0], [5.0]]), 4) == 5.0
    assert default_width(np.ones((3, 2)), 2) == 1.0


def test_width_scales_with_the_data_and_a_large_sample_is_enough():
    X = np.random.default_rng(0).normal(size=(5000, 3))
    assert default_width(10 * X, 3) == pytest.approx(10 * default_width(X, 3))
    assert default_width(X, 3) == pytest.approx(default_width(X[:1500], 3), rel=0.05)


def test_cost_is_the_inverse_variance_in_the_space_of_the_kernel():
    X, _ = iris()
    K = kernel_matrix(X, X, "rbf", gamma=0.3)
    variance = np.trace(K) / len(X) - K.mean()
    assert default_cost(X, 0.3) == pytest.approx(1 / variance, rel=1e-12)
    assert default_cost(np.ones((3, 2)), 1.0) == 1.0


def test_grid_has_five_costs_for_each_of_five_widths():
    X, y = iris()
    grid = zien_grid(X, y)
    assert len(grid) == 5
    ratios = np.sqrt(grid[0]["gamma"][0] / np.array([part["gamma"][0] for part in grid]))
    np.testing.assert_allclose(ratios, [1, 2, 4, 8, 16])
    for part in grid:
        np.testing.assert_allclose(np.array(part["C"]) / default_cost(X, part["gamma"][0]), 10.0 ** np.arange(5))
    search = GridSearchCV(SoftmaxSVC(basis="cholesky", rank=30), grid, cv=3).fit(X, y)
    assert len(search.cv_results_["params"]) == 25
    assert search.best_score_ > 0.95


@pytest.mark.parametrize("call", [lambda X: default_width(X, 0), lambda X: default_width(X[:1], 3)])
def test_bad_input_is_refused(call):
    with pytest.raises(ValueError, match=r"\w"):
        call(iris()[0])
