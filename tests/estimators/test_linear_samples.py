"""Newton steps on growing samples: how many passes they need, and what a fit is worth that is cut off."""

import warnings

import numpy as np
import pytest
from reference.compare import fitted_bits
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from polymargin import CrammerSingerSVC, OneVsRestSVC, WestonWatkinsSVC, certify

MACHINES = [OneVsRestSVC, CrammerSingerSVC, WestonWatkinsSVC]
every_machine = pytest.mark.parametrize("machine", MACHINES)
every_bias = pytest.mark.parametrize("bias", ["free", "regularized", None])


def noisy(n, features=20, classes=6, noise=3.0, seed=0):
    """Classes of a linear rule that overlap."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(classes, features))
    X = rng.normal(size=(n, features)).astype(np.float32)
    scores = X @ weights.T + noise * rng.normal(size=(n, classes))
    return X, scores.argmax(axis=1)


def fitted(machine, X, y, weight=None, **settings):
    settings = {"kernel": "linear", "stop": "gap", "tol": 1e-3} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine(**settings).fit(X, y, sample_weight=weight)


def passes(model, n):
    """Visits to an example; the classes of one-against-all are visited in groups."""
    return np.max(model.n_iter_) / n


@every_machine
@every_bias
def test_some_passes_are_enough(machine, bias):
    X, y = noisy(30_000)
    model = fitted(machine, X, y, bias=bias)
    assert model.converged_
    assert certify(model, X, y).duality_gap <= 1.01e-3
    assert passes(model, len(y)) < 40


@every_machine
def test_a_tenth_of_the_passes_is_nearly_as_good(machine):
    X, y = noisy(80_000)
    train, test = slice(40_000), slice(40_000, None)
    whole = fitted(machine, X[train], y[train])
    cut = fitted(machine, X[train], y[train], max_iter=int(np.max(whole.n_iter_)) // 10)
    assert not cut.converged_
    assert cut.score(X[test], y[test]) >= whole.score(X[test], y[test]) - 0.02
    proof = certify(cut, X[train], y[train])
    np.testing.assert_allclose(proof.primal_objective, cut.primal_objective_, rtol=1e-6)
    assert proof.infeasibility < 1e-9


@every_machine
def test_features_that_few_rows_have(machine):
    X, y = noisy(30_000, features=10)
    rng = np.random.default_rng(3)
    rare = np.zeros((len(y), 12), dtype=np.float32)
    for column in range(rare.shape[1]):
        rare[rng.choice(len(y), 3 + 2 * column, replace=False), column] = 1
    X = StandardScaler().fit_transform(np.hstack([X, rare]))
    model = fitted(machine, X, y)
    assert model.converged_
    assert certify(model, X, y).duality_gap <= 1.01e-3


@every_machine
@every_bias
def test_a_cut_off_fit_is_no_worse_than_nothing(machine, bias):
    X, y = noisy(20_000)
    nothing = len(y) * machine_loss_of_zero(machine)
    for limit in (1, 1000, 10_000, 40_000, 100_000):
        cut = fitted(machine, X, y, bias=bias, max_iter=limit)
        assert 0 <= cut.dual_objective_ <= cut.primal_objective_ <= nothing


def machine_loss_of_zero(machine):
    """The loss of an example whose scores are all zero, with six classes."""
    return {OneVsRestSVC: 6, CrammerSingerSVC: 1, WestonWatkinsSVC: 10}[machine]


@every_machine
def test_results_do_not_depend_on_threads(machine):
    X, y = noisy(12_000)
    one, three = (fitted(machine, X, y, n_jobs=threads) for threads in (1, 3))
    assert fitted_bits(one, X) == fitted_bits(three, X)


@every_machine
def test_weights_and_sparse_rows(machine):
    X, y = noisy(12_000)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, size=len(y))
    X = np.where(np.random.default_rng(2).uniform(size=X.shape) < 0.3, X, 0)
    model = fitted(machine, X, y, weight)
    assert certify(model, X, y, weight).duality_gap <= 1.01e-3
    other = fitted(machine, sparse.csr_matrix(X), y, weight)
    assert other.converged_
    np.testing.assert_allclose(other.primal_objective_, model.primal_objective_, rtol=2e-3)


@every_machine
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_any_cost(machine, C):
    X, y = noisy(6_000, features=8, classes=4)
    model = fitted(machine, X, y, C=C)
    assert model.converged_
    assert certify(model, X, y).duality_gap <= 1.01e-3
