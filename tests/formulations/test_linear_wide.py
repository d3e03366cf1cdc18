"""Linear machines of few rows or many features: on kernel values first, or once loops over the examples crawl."""

import warnings

import numpy as np
import pytest
from reference.compare import fitted_bits
from reference.data import iris, random_classes
from reference.linear_machines import BIASES, assert_honest, every_bias, every_machine
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from polymargin import OneVsRestSVC, WestonWatkinsSVC, certify
from polymargin.formulations import Joint, RunOptions, linear_wide, training_set
from polymargin.kernels import Kernel
from polymargin.losses import WestonWatkins

LARGE = 1e4
NARROW = pytest.mark.parametrize("bias", [bias for bias in BIASES if bias != "free"])


@pytest.fixture
def many(monkeypatch):
    """Any number of examples is too many for kernel values to come first."""
    rule = linear_wide.WideRule(few_examples=0, binary_loops=0.0, share=0.01)
    for module in ("joint", "one_vs_rest", "linear_wide"):
        monkeypatch.setattr(f"polymargin.formulations.{module}.WideRule", lambda: rule)


def documents(n=1100, k=4, seed=0):
    """Word counts of documents of very different lengths, separable as they are."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    rates = rng.gamma(0.05, size=(k, 3000)) + 0.5 * rng.gamma(0.05, size=3000)
    lengths = np.exp(rng.normal(3.5, 1.0, size=n))
    counts = rng.poisson(lengths[:, None] * (rates / rates.sum(axis=1, keepdims=True))[y])
    return sparse.csr_matrix(counts.astype(np.float64)), y


def fitted(Machine, X, y, weight=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return Machine(**{"kernel": "linear", "time_limit": 60.0} | parameters).fit(X, y, sample_weight=weight)


@every_machine
@every_bias
def test_word_counts_at_a_large_cost_are_solved_on_kernel_values(Machine, bias):
    X, y = documents()
    machine = fitted(Machine, X, y, bias=bias, C=LARGE)
    assert machine.solver_used_ == "decomposition" or (Machine is OneVsRestSVC and bias != "free")
    assert machine.duality_gap_ <= 1e-3
    assert certify(machine, X, y).duality_gap <= 1.01e-3


@pytest.mark.usefixtures("many")
@every_machine
@every_bias
def test_loops_that_crawl_give_way(Machine, bias):
    X, y = documents()
    machine = fitted(Machine, X, y, bias=bias, C=LARGE)
    assert machine.solver_used_ == "decomposition"
    assert certify(machine, X, y).duality_gap <= 1.01e-3
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        limited = Machine(kernel="linear", bias=bias, C=LARGE, max_iter=3000).fit(X, y)
    assert limited.solver_used_ == "sequential-dual"


@pytest.mark.usefixtures("many")
@every_machine
def test_without_memory_for_a_matrix_loops_go_on(Machine):
    X, y = documents()
    assert fitted(Machine, X, y, C=1e-3, cache_size=5.0).solver_used_ == "sequential-dual"


@pytest.mark.usefixtures("many")
@NARROW
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_machines_without_a_free_bias_have_the_same_optimum(bias, k, weighted):
    X, y = random_classes(k, n=40, n_features=30)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y)) if weighted else None
    by_kernel = fitted(OneVsRestSVC, X, y, weight, bias=bias, C=50.0, tol=1e-8)
    loops = fitted(OneVsRestSVC, X, y, weight, bias=bias, C=50.0, tol=1e-8, solver="sequential-dual")
    assert (by_kernel.solver_used_, loops.solver_used_) == ("decomposition", "sequential-dual")
    assert by_kernel.dual_objective_ == pytest.approx(loops.dual_objective_, rel=2e-8)
    np.testing.assert_allclose(by_kernel.decision_function(X), loops.decision_function(X), atol=1e-2)
    assert by_kernel.n_iter_.shape == loops.n_iter_.shape
    assert_honest(by_kernel, X, y, weight)


@pytest.mark.usefixtures("many")
@NARROW
def test_binary_machines_go_on_from_an_earlier_fit_and_any_number_of_threads(bias):
    X, y = documents(400)
    machine = fitted(OneVsRestSVC, X, y, bias=bias, C=LARGE, warm_start=True)
    one, two = (fitted(OneVsRestSVC, X, y, bias=bias, C=LARGE, n_jobs=n) for n in (1, 2))
    assert fitted_bits(one, X) == fitted_bits(two, X) == fitted_bits(machine, X)
    warm, cold = machine.set_params(C=2 * LARGE).fit(X, y), fitted(OneVsRestSVC, X, y, bias=bias, C=2 * LARGE)
    assert warm.dual_objective_ == pytest.approx(cold.dual_objective_, rel=2e-3)


def test_work_is_a_limit_as_steps_are():
    """Many steps on few examples are little work: they end soybean-like fits long before an interior-point method."""
    X, y = iris()
    training = training_set(X, y, np.unique(y), C=100.0)
    machine, kernel = Joint(WestonWatkins(), solver="decomposition"), Kernel("linear", 1.0, 0.0, 3)
    cut, whole = (machine.solve(training, kernel, RunOptions(max_work=work)) for work in (1e4, np.inf))
    assert cut.outcome.stop_reason.startswith("max_iter")
    assert whole.outcome.converged
    assert 0 < cut.outcome.iterations < whole.outcome.iterations


def test_few_rows_of_many_features_need_no_interior_point_method():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, size=(300, 130)).astype(np.float64), np.arange(300) % 15
    machine = fitted(WestonWatkinsSVC, X, y, C=LARGE)
    assert machine.solver_used_ == "decomposition"
    assert certify(machine, X, y).duality_gap <= 1.01e-3
