"""Linear machines without kernel values: scikit-learn's checks, threads, warm starts, limits, choice of solver."""

import functools
import pickle
import signal
import time
import warnings

import numpy as np
import pytest
from reference.compare import fitted_bits
from reference.data import digits, iris, overlapping, random_classes, separable, wine
from reference.linear import linear_optimum
from reference.linear_machines import (
    BIASES,
    CONTAINERS,
    EXACT,
    TOGETHER,
    assert_honest,
    converged,
    every_bias,
    every_container,
    every_linear_solver,
    every_machine,
    every_together,
    limited,
    many_classes,
    names,
    sequential,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

from polymargin import CrammerSingerSVC, OneVsRestSVC, WestonWatkinsSVC, certify
from polymargin.formulations import linear as _linear

# scikit-learn


# Exact, since the checks compare decisions of fits that may differ by rounding alone; with a bias, since they expect a
# machine that can decide for one class everywhere.
ESTIMATORS = [
    sequential(CrammerSingerSVC, bias="regularized", tol=EXACT),
    sequential(WestonWatkinsSVC, tol=EXACT),
    sequential(OneVsRestSVC, tol=EXACT),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@every_machine
def test_parameters_are_validated_as_scikit_learn_validates_them(Machine):
    check_param_validation(Machine.__name__, sequential(Machine))


@every_machine
@every_bias
def test_saved_and_loaded_machines_are_bit_identical(Machine, bias):
    X, y = wine()
    machine = sequential(Machine, bias=bias).fit(X[::2], y[::2])
    loaded = pickle.loads(pickle.dumps(machine))
    assert fitted_bits(loaded, X) == fitted_bits(machine, X)
    np.testing.assert_array_equal(loaded.coef_, machine.coef_)
    assert loaded.get_params() == machine.get_params()


@every_machine
def test_clone_is_unfitted_with_the_same_parameters(Machine):
    machine = sequential(Machine, C=3.0, bias="regularized", random_state=4).fit(*iris())
    copy = clone(machine)
    assert copy.get_params() == machine.get_params()
    for name in ("coef_", "dual_coef_", "solver_used_"):
        assert not hasattr(copy, name)
    assert not any(name.endswith("_weights") for name in vars(copy))
    np.testing.assert_array_equal(copy.fit(*iris()).coef_, machine.coef_)


# The same answer for any number of threads


@every_machine
@every_bias
def test_bit_identical_for_any_number_of_threads(Machine, bias):
    X, y = digits(1700)
    X = X if bias is None else sparse.csr_matrix(X)
    bits = []
    for n_jobs in (1, 2, 4):
        machine = sequential(Machine, C=0.05, bias=bias, tol=1e-2, n_jobs=n_jobs).fit(X, y)
        bits.append((fitted_bits(machine, X), machine.coef_.tobytes(), np.asarray(machine.n_iter_).tobytes()))
    assert bits[0] == bits[1] == bits[2]


@every_machine
def test_bit_identical_for_any_number_of_threads_with_many_classes(Machine):
    X, y = many_classes(100)
    fitted = [sequential(Machine, C=0.1, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2, 4)]
    for machine in fitted[1:]:
        np.testing.assert_array_equal(machine.coef_, fitted[0].coef_)
        np.testing.assert_array_equal(machine.dual_coef_, fitted[0].dual_coef_)


@every_machine
@every_bias
def test_equal_seeds_give_equal_machines_and_others_the_same_optimum(Machine, bias):
    X, y = digits(400)
    params = {"C": 0.1, "bias": bias, "tol": 1e-3}

    def fit(seed):
        return converged(sequential(Machine, random_state=seed, **params), X, y)

    for first, second in ((None, None), (7, 7), (np.random.RandomState(3), np.random.RandomState(3))):
        assert fitted_bits(fit(first), X) == fitted_bits(fit(second), X)
    one, other = fit(0), fit(1)
    assert not np.array_equal(one.coef_, other.coef_)
    assert one.dual_objective_ == pytest.approx(other.dual_objective_, rel=2e-3)
    assert one.dual_objective_ <= other.primal_objective_


@every_machine
def test_the_order_of_the_rows_does_not_change_the_optimum(Machine):
    X, y = digits(300)
    order = np.random.default_rng(0).permutation(len(y))
    machine = converged(sequential(Machine, C=0.1, tol=1e-7), X, y)
    other = converged(sequential(Machine, C=0.1, tol=1e-7), X[order], y[order])
    assert machine.dual_objective_ == pytest.approx(other.dual_objective_, rel=2e-7)


# Warm starts


@every_machine
@every_bias
def test_a_warm_start_from_a_smaller_cost_is_shorter(Machine, bias):
    X, y = digits(600)
    warm = sequential(Machine, bias=bias, tol=1e-4, warm_start=True)
    for C in (0.1, 0.12):
        converged(warm.set_params(C=C), X, y)
    cold = converged(clone(warm), X, y)
    assert np.sum(warm.n_iter_) < np.sum(cold.n_iter_)
    assert warm.dual_objective_ == pytest.approx(cold.dual_objective_, rel=1e-4)
    assert warm.primal_objective_ == pytest.approx(cold.primal_objective_, rel=1e-4)
    assert_honest(warm, X, y)


@every_machine
@every_bias
@pytest.mark.parametrize("costs", [(0.02, 0.1, 0.3), (0.3, 0.1, 0.02)], ids=["up", "down"])
def test_warm_and_cold_starts_end_at_the_same_place(Machine, bias, costs):
    X, y = random_classes(3, n=60, n_features=8, seed=9)
    machine = sequential(Machine, bias=bias, tol=EXACT, warm_start=True)
    for C in costs:
        converged(machine.set_params(C=C), X, y)
        assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-8)
        assert_honest(machine, X, y)


@every_machine
@every_bias
def test_a_warm_start_at_the_solution_stays_there(Machine, bias):
    X, y = digits(600)
    machine = converged(sequential(Machine, C=0.1, bias=bias, tol=1e-4, warm_start=True), X, y)
    cold, objective = np.sum(machine.n_iter_), machine.dual_objective_
    converged(machine, X, y)
    assert np.sum(machine.n_iter_) < 0.5 * cold
    assert machine.dual_objective_ == pytest.approx(objective, rel=1e-4)


@every_machine
def test_a_warm_start_takes_what_fits_of_the_last_solution(Machine):
    X, y = random_classes(4, n=80, n_features=6, seed=9)
    machine = converged(sequential(Machine, C=0.1, warm_start=True, tol=1e-8), X, y)
    for rows in (slice(0, 60), slice(None), slice(10, 70)):
        converged(machine, X[rows], y[rows])
        cold = converged(clone(machine), X[rows], y[rows])
        assert machine.dual_objective_ == pytest.approx(cold.dual_objective_, rel=1e-7)
    merged = np.where(y == 3, 0, y)
    converged(machine, X, merged)  # other classes: a cold start
    np.testing.assert_array_equal(machine.coef_, converged(clone(machine), X, merged).coef_)
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 2.0)
    converged(machine, X, merged, weight)
    cold = converged(clone(machine), X, merged, weight)
    assert machine.dual_objective_ == pytest.approx(cold.dual_objective_, rel=1e-7)
    assert_honest(machine, X, merged, weight)
    converged(machine, X[:, :3], merged)  # other features, same rows
    assert machine.coef_.shape[1] == 3
    assert_honest(machine, X[:, :3], merged)


@pytest.mark.parametrize(
    ("Machine", "first", "second"),
    [(Machine, first, second) for Machine in TOGETHER for first in BIASES for second in BIASES]
    + [(OneVsRestSVC, "free", bias) for bias in BIASES],
)
def test_a_warm_start_from_another_solver_and_another_bias(Machine, first, second):
    X, y = random_classes(3, n=60, n_features=6, seed=9)
    machine = Machine(C=0.1, kernel="linear", bias=first, solver="decomposition", warm_start=True).fit(X, y)
    machine.set_params(solver="sequential-dual", bias=second, tol=EXACT, time_limit=5.0)
    converged(machine, X, y)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-8)
    assert_honest(machine, X, y)
    machine.set_params(solver="decomposition", bias="free", tol=1e-7).fit(X, y)
    assert machine.solver_used_ == "decomposition"
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-7)


@every_machine
@every_bias
def test_a_warm_start_after_a_limit_goes_on(Machine, bias):
    X, y = digits(300)
    machine = sequential(Machine, C=0.1, bias=bias, warm_start=True, max_iter=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(100):
            if machine.fit(X, y).converged_:
                break
    assert machine.converged_
    assert_honest(machine, X, y)


# Limits


@functools.cache
def lower_bound(Machine, C):
    """Return a lower bound of the objective with any bias, of which the free one costs least."""
    return Machine(C=C, kernel="linear", bias="free", solver="decomposition", tol=0.5).fit(*overlapping(n=300))


@every_machine
@every_bias
@pytest.mark.parametrize("limit", [{"max_iter": 0}, {"max_iter": 700}, {"time_limit": 1e-9}], ids=str)
def test_a_stopped_fit_is_feasible_and_tells_the_truth(Machine, bias, limit):
    X, y = overlapping(n=300)
    machine = sequential(Machine, bias=bias, tol=1e-8, **limit)
    message = limited(machine, sparse.csr_array(X) if "max_iter" in limit else X, y)
    ((name, value),) = limit.items()
    assert machine.stop_reason_ == name
    assert f"{name}={value}" in message
    assert f"{machine.duality_gap_:.3g}" in message
    checked = assert_honest(machine, X, y)
    assert checked.primal >= lower_bound(Machine, 1.0).dual_objective_ * (1 - 1e-6)
    assert machine.predict(X).shape == y.shape
    assert np.isfinite(machine.decision_function(X)).all()


@every_machine
@pytest.mark.parametrize("max_iter", [0, 64, 1000])
def test_max_iter_is_the_most_steps(Machine, max_iter):
    X, y = digits(300)
    machine = sequential(Machine, tol=1e-6, max_iter=max_iter)
    limited(machine, X, y)
    assert np.max(machine.n_iter_) <= max_iter


@every_machine
def test_a_time_limit_is_kept(Machine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16_000, 30))
    y = (X[:, :5] + rng.normal(size=(16_000, 5))).argmax(axis=1)
    begin = time.perf_counter()
    machine = sequential(Machine, C=1e4, tol=1e-12, time_limit=0.3)
    limited(machine, X, y)
    assert 0.2 < time.perf_counter() - begin < 2.0
    assert machine.stop_reason_ == "time_limit"
    assert_honest(machine, X, y, newton=True)


@every_machine
def test_limits_that_are_not_reached_do_not_matter(Machine):
    X, y = iris()
    limits = converged(sequential(Machine, max_iter=100_000_000, time_limit=600.0), X, y)
    free = converged(sequential(Machine, time_limit=None), X, y)
    np.testing.assert_array_equal(limits.coef_, free.coef_)


@every_machine
@every_bias
def test_an_interrupt_ends_a_fit_and_leaves_the_machine_as_it_was(Machine, bias):
    rng = np.random.default_rng(0)
    machine = sequential(Machine, bias=bias).fit(rng.normal(size=(60, 10)), np.arange(60) % 3)
    machine.set_params(C=1e6, tol=1e-14, time_limit=20.0)
    y = rng.integers(0, 3, 200_000)  # classes that overlap: without any difference no weights are the best
    X = rng.normal(size=(200_000, 10)) + 0.5 * rng.normal(size=(3, 10))[y]
    before = dict(vars(machine))

    def interrupt(number, frame):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    begin = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            machine.fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert time.perf_counter() - begin < 2.0
    assert vars(machine).keys() == before.keys()
    assert all(vars(machine)[name] is before[name] for name in before)
    assert machine.predict(X[:5]).shape == (5,)


# Which solver


def rows(n):
    """Return examples that are quickly separated."""
    X, y = separable(n)
    return X, y


@every_machine
@every_container
def test_auto_takes_the_solver_for_the_number_of_examples(Machine, container):
    X, y = rows(4097)
    X = CONTAINERS[container](X)
    assert Machine(kernel="linear").fit(X[:1024], y[:1024]).solver_used_ == "decomposition"
    by_loops = "sequential-dual"
    for n, C, loops in (  # Newton steps are for easy data of 2,048 rows and more
        (2047, 1.0, False),
        (2048, 1.0, True),
        (4096, 1e5, False),
        (4097, 1e5, True),
    ):
        assert (Machine(kernel="linear", C=C).fit(X[:n], y[:n]).solver_used_ == by_loops) == loops
    assert Machine(kernel="linear", cache_size=8.0).fit(X[:1025], y[:1025]).solver_used_ != "decomposition"
    weight = np.ones(4097)
    weight[3] = 0.0  # 4096 take part
    assert Machine(kernel="linear", C=1e5).fit(X, y, sample_weight=weight).solver_used_ != by_loops
    assert Machine(kernel="linear", C=np.inf).fit(X, y).solver_used_ == "decomposition"
    assert Machine(kernel="rbf", gamma=0.1).fit(X, y).solver_used_ == "decomposition"
    assert Machine(kernel="linear", solver="decomposition").fit(X, y).solver_used_ == "decomposition"
    assert sequential(Machine).fit(X[:50], y[:50]).solver_used_ == "sequential-dual"


@every_machine
@pytest.mark.parametrize("bias", BIASES)
def test_auto_gives_what_the_solver_it_takes_gives(Machine, bias):
    X, y = digits(1100)
    params = {"kernel": "linear", "bias": bias, "C": 0.05, "tol": 1e-2, "cache_size": 8.0}  # no room for a matrix
    auto, named = Machine(**params).fit(X, y), Machine(solver="sequential-dual", **params).fit(X, y)
    assert auto.solver_used_ == "sequential-dual"
    assert fitted_bits(auto, X) == fitted_bits(named, X)


@pytest.mark.parametrize("bias", [None, "regularized"])
def test_auto_takes_the_only_solver_that_has_the_bias(bias):
    X, y = iris()
    machine = OneVsRestSVC(kernel="linear", bias=bias).fit(X, y)
    assert machine.solver_used_ == "sequential-dual"
    assert machine.duality_gap_ <= machine.tol
    assert OneVsRestSVC(kernel="linear").fit(X, y).solver_used_ == "decomposition"


@every_machine
def test_refitting_with_another_kernel_forgets_the_linear_weights(Machine):
    X, y = wine()
    machine = sequential(Machine).fit(X, y)
    linear = machine.decision_function(X)
    machine.set_params(kernel="rbf", solver="auto", time_limit=None).fit(X, y)
    expected = clone(machine).fit(X, y)
    assert machine.solver_used_ == "decomposition"
    np.testing.assert_array_equal(machine.decision_function(X), expected.decision_function(X))
    assert np.abs(machine.decision_function(X) - linear).max() > 0.1
    assert not hasattr(machine, "coef_")
    assert vars(machine).keys() == vars(expected).keys()
    machine.set_params(kernel="linear", solver="decomposition").fit(X, y)
    expected = clone(machine).fit(X, y)
    np.testing.assert_array_equal(machine.decision_function(X), expected.decision_function(X))
    np.testing.assert_array_equal(machine.coef_, expected.coef_)
    machine.set_params(solver="sequential-dual").fit(X, y)
    np.testing.assert_array_equal(machine.decision_function(X), linear)


@every_machine
def test_a_fitted_machine_keeps_its_answer_when_parameters_change(Machine):
    X, y = wine()
    machine = sequential(Machine).fit(X, y)
    before = machine.decision_function(X)
    machine.set_params(kernel="rbf", solver="auto", C=100.0)
    np.testing.assert_array_equal(machine.decision_function(X), before)
    assert machine.solver_used_ == "sequential-dual"


@every_linear_solver
def test_silent_by_default_and_verbose_on_request(Machine, solver, capfd):
    X, y = iris()
    quiet = sequential(Machine, solver=solver, bias=None, tol=1e-2).fit(X, y)
    assert capfd.readouterr() == ("", "")
    loud = clone(quiet).set_params(verbose=1).fit(X, y)
    shown = "".join(capfd.readouterr())
    assert Machine.__name__ in shown
    assert "gap" in shown
    np.testing.assert_array_equal(quiet.coef_, loud.coef_)


@pytest.mark.parametrize("seed", [4, 42, 49])
@pytest.mark.parametrize("bias", [None, "regularized"])
def test_dual_never_exceeds_primal_even_by_rounding(bias, seed):
    X, y = random_classes(3, n=40, n_features=12, seed=seed)
    machine = converged(sequential(WestonWatkinsSVC, C=0.01, bias=bias, tol=EXACT), X, y)
    assert machine.dual_objective_ <= machine.primal_objective_
    assert machine.duality_gap_ >= 0


@every_machine
@pytest.mark.parametrize("bias", [None, "regularized"])
def test_data_that_are_not_centred_are_slow_but_no_matter_of_rounding(Machine, bias):
    X, y = np.random.default_rng(0).normal(loc=100.0, size=(100, 2)), np.arange(100) % 3
    machine = sequential(Machine, bias=bias, time_limit=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    assert machine.stop_reason_ != "precision" or machine.duality_gap_ < 1e-12


@pytest.mark.parametrize(
    ("Machine", "bias", "C", "tol", "k", "seed"),
    [
        (OneVsRestSVC, None, 10.0, 1e-9, 3, 3),
        (WestonWatkinsSVC, "free", 10.0, 1e-6, 3, 1),
        (CrammerSingerSVC, "free", 100.0, 1e-6, 2, 3),
    ],
)
def test_a_solver_that_is_slow_does_not_blame_rounding(Machine, bias, C, tol, k, seed):
    X, y = random_classes(k, n=40, seed=seed)
    machine = sequential(Machine, C=C, bias=bias, tol=tol, time_limit=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    assert machine.stop_reason_ != "precision" or machine.duality_gap_ < 1e-12


@every_machine
@pytest.mark.parametrize("bias", [None, "free"])
@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_single_precision_is_only_for_numbers_that_fit_into_it(Machine, bias, scale):
    X, y = digits(1700)
    expected = converged(sequential(Machine, C=0.01, bias=bias, tol=1e-2), X, y)
    machine = converged(sequential(Machine, C=0.01 / scale**2, bias=bias, tol=1e-2, time_limit=0.5), scale * X, y)
    assert machine.dual_objective_ == pytest.approx(expected.dual_objective_ / scale**2, rel=2e-2)
    assert machine.primal_objective_ == pytest.approx(expected.primal_objective_ / scale**2, rel=2e-2)


@every_machine
@every_container
def test_a_huge_value_to_predict_gives_finite_scores_or_an_error_that_names_it(Machine, container):
    X, y = separable(60)
    machine = sequential(Machine, C=1e5).fit(1e-3 * X, y)
    X[7, 1] = 1.7e308
    rows_to_predict = CONTAINERS[container](X)
    try:
        scores, message = machine.decision_function(rows_to_predict), ""
    except ValueError as error:
        scores, message = np.zeros(1), str(error)
    assert np.isfinite(scores).all()
    assert names(message, 7, 1) or not message


@every_together
def test_the_certificate_takes_sparse_coefficients(monkeypatch, Machine):
    X, y = random_classes(5, n=60, seed=1)
    monkeypatch.setattr(_linear, "_DENSE", 10)
    machine = sequential(Machine, C=0.1).fit(X, y)
    proof = certify(machine, X, y)
    assert proof.dual_objective == pytest.approx(machine.dual_objective_, rel=1e-9)


@pytest.mark.parametrize("bias", [None, "regularized"])
def test_a_hard_margin_without_a_free_bias_is_refused_for_its_cost(bias):
    X, y = separable(60)
    with pytest.raises(ValueError, match=r"finite C|hard margin"):
        OneVsRestSVC(C=np.inf, kernel="linear", bias=bias).fit(X, y)
