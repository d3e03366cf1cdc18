"""Searches over several kernels: every order and mix of those that share a matrix of products and those that do not."""

from itertools import permutations

import numpy as np
import pytest
from reference.data import overlapping
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import (
    CrammerSingerSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    SoftmaxSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)
from polymargin.selection import KernelSearchCV
from polymargin.selection import kernel_matrices as _family

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
KERNELS = ["linear", "rbf", "poly", "sigmoid", polynomial_kernel]
WIDTHS = [0.001, 0.0005]  # so small that the sigmoid kernel has one optimum too
MACHINES = [
    OneVsOneSVC(),
    OneVsOneSVC(decision="coupling"),
    OneVsRestSVC(),
    WestonWatkinsSVC(),
    CrammerSingerSVC(),
    LinearProgramSVC(),
    SoftmaxSVC(),
    UncertaintySVC(min_distance=float("inf")),
]


def assert_scores_of_plain_search(estimator, grid, X, y):
    ours = KernelSearchCV(estimator, grid, cv=FOLDS).fit(X, y)
    theirs = GridSearchCV(estimator, grid, cv=FOLDS).fit(X, y)
    assert ours.shared_
    for fold in range(FOLDS.n_splits):
        name = f"split{fold}_test_score"
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name], err_msg=name)


def data():
    return overlapping(n=90)


def a_name(kernel):
    return kernel if isinstance(kernel, str) else "callable"


@pytest.mark.parametrize("kernels", list(permutations(KERNELS, 3)), ids=lambda order: "-".join(map(a_name, order)))
def test_every_order_of_kernels(kernels):
    X, y = data()
    grid = {"kernel": list(kernels), "gamma": WIDTHS, "C": [1.0, 4.0]}
    assert_scores_of_plain_search(OneVsRestSVC(tol=1e-9), grid, X, y)


@pytest.mark.parametrize("in_pipeline", [False, True])
@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_every_machine(machine, in_pipeline):
    X, y = data()
    exact = clone(machine).set_params(tol=1e-6)
    estimator = make_pipeline(StandardScaler(), exact) if in_pipeline else exact
    prefix = f"{type(machine).__name__.lower()}__" if in_pipeline else ""
    grid = {f"{prefix}kernel": ["linear", polynomial_kernel, "rbf", "linear"], f"{prefix}C": [1.0, 4.0]}
    assert_scores_of_plain_search(estimator, grid, X, y)


def test_a_list_of_grids():
    X, y = data()
    grids = [{"kernel": ["linear"], "C": [1.0, 2.0]}, {"kernel": ["rbf"], "gamma": [0.1, 1.0]}, {"kernel": ["linear"]}]
    assert_scores_of_plain_search(OneVsOneSVC(tol=1e-6), grids, X, y)


def test_a_matrix_beside_other_kernels():
    X, y = data()
    K = np.exp(-0.1 * ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
    for kernels in permutations(["precomputed", "linear", "rbf"]):
        assert_scores_of_plain_search(OneVsOneSVC(tol=1e-6), {"kernel": list(kernels)}, K, y)


def test_matrices_of_a_batch_share_no_memory_and_spare_ones_are_used_again():
    X, _ = data()
    kernels = [_family.Kernel(kind, gamma, 0.0, 2) for kind in ("linear", "rbf", "poly") for gamma in (0.1, 1.0)]
    family = _family.KernelMatrices(X, [(kernel, 1.0, 1e-3) for kernel in kernels])
    first = family.matrices(kernels[1:])
    assert not any(np.shares_memory(a, b) for at, a in enumerate(first) for b in first[:at])
    again = family.matrices(kernels[2:4])
    assert all(any(np.shares_memory(a, b) for b in first) for a in again)
