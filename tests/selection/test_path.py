"""A series of costs, each fit started from the last, and the cost up to which no solver is needed."""

import numpy as np
import pytest
from reference.compare import fitted_bits
from reference.data import digits, iris, random_classes
from reference.linear import linear_optimum
from reference.linear_machines import (
    CONTAINERS,
    EXACT,
    assert_honest,
    converged,
    every_bias,
    every_container,
    every_machine,
    farthest,
    sequential,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import SVC

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC
from polymargin.selection import known_cost, regularization_path

COSTS = {
    "ascending": [0.01, 0.1, 0.5],
    "descending": [0.5, 0.1, 0.01],
    "unsorted": [0.1, 0.5, 0.01, 0.2],
    "duplicated": [0.1, 0.01, 0.1, 0.1],
    "one": [0.1],
}
every_list = pytest.mark.parametrize("costs", COSTS.values(), ids=COSTS)


# regularization_path


@every_machine
@every_bias
@every_list
def test_a_path_is_the_same_as_fits_of_their_own(Machine, bias, costs):
    X, y = random_classes(3, n=60, n_features=6, seed=9)
    machine = sequential(Machine, bias=bias, tol=EXACT)
    path = regularization_path(machine, X, y, costs)
    assert [fitted.C for fitted in path] == costs
    for fitted in path:
        alone = converged(clone(fitted), X, y)
        assert fitted.converged_
        assert fitted.dual_objective_ == pytest.approx(alone.dual_objective_, rel=2 * EXACT)
        assert fitted.dual_objective_ == pytest.approx(linear_optimum(fitted, X, y).dual, rel=1e-8)
        far = 2 * farthest(alone, alone.dual_objective_)
        np.testing.assert_allclose(fitted.coef_, alone.coef_, rtol=0, atol=far)
        assert_honest(fitted, X, y)


@every_machine
@every_container
def test_a_path_is_shorter_than_fits_of_their_own(Machine, container):
    X, y = digits(600)
    costs = [0.1, 0.12, 0.15]
    machine = sequential(Machine, bias=None, tol=1e-4)
    path = regularization_path(machine, CONTAINERS[container](X), y, costs)
    alone = [converged(clone(machine).set_params(C=C), CONTAINERS[container](X), y) for C in costs]
    np.testing.assert_array_equal(path[0].coef_, alone[0].coef_)  # the first has nothing to start from
    for fitted, cold in zip(path[1:], alone[1:], strict=True):
        assert np.sum(fitted.n_iter_) < np.sum(cold.n_iter_)


@every_machine
def test_equal_costs_stay_where_they_are(Machine):
    X, y = digits(300)
    first, second = regularization_path(sequential(Machine, bias=None, tol=1e-4), X, y, [0.1, 0.1])
    assert first is not second
    assert np.sum(second.n_iter_) < np.sum(first.n_iter_)


@every_machine
def test_a_path_with_weights(Machine):
    X, y = random_classes(3, n=60, n_features=6, seed=9)
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    weight[::7] = 0.0
    machine = sequential(Machine, bias=None, class_weight={0: 3.0, 2: 0.5}, tol=EXACT)
    for fitted in regularization_path(machine, X, y, (0.2, 0.02), sample_weight=weight):
        assert fitted.dual_objective_ == pytest.approx(linear_optimum(fitted, X, y, weight).dual, rel=1e-8)
        assert_honest(fitted, X, y, weight)


@every_machine
@pytest.mark.parametrize("warm_start", [False, True])
def test_the_machine_and_its_parameters_stay_as_they_are(Machine, warm_start):
    X, y = iris()
    machine = sequential(Machine, C=0.3, warm_start=warm_start).fit(X, y)
    before, bits = dict(vars(machine)), fitted_bits(machine, X)
    path = regularization_path(machine, X, y, iter([0.1, 0.01]))  # any iterable
    assert all(vars(machine)[name] is before[name] for name in before)
    assert fitted_bits(machine, X) == bits
    for fitted, C in zip(path, [0.1, 0.01], strict=True):
        assert fitted.get_params() == machine.get_params() | {"C": C}
        assert fitted.predict(X).shape == y.shape


@pytest.mark.parametrize("Machine", [OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC])
def test_a_path_of_machines_with_a_kernel(Machine):
    X, y = iris()
    for fitted in regularization_path(Machine(gamma=0.5, tol=1e-7), X, y, [5.0, 0.5]):
        alone = clone(fitted).fit(X, y)
        assert fitted.dual_objective_ == pytest.approx(alone.dual_objective_, rel=1e-6)
        np.testing.assert_allclose(fitted.decision_function(X), alone.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("solver", ["exponentiated-gradient", "cutting-plane"])
def test_a_path_of_a_rival_starts_anew(solver):
    X, y = random_classes(3, n=40, seed=3)
    for fitted in regularization_path(sequential(CrammerSingerSVC, solver=solver, bias=None), X, y, [0.1, 0.02]):
        np.testing.assert_array_equal(fitted.coef_, converged(clone(fitted), X, y).coef_)


def test_a_path_of_nothing_is_empty():
    assert regularization_path(sequential(CrammerSingerSVC), *iris(), []) == []


@pytest.mark.parametrize("cost", [0.0, -1.0, np.nan, np.inf])
def test_a_cost_must_be_positive_and_finite(cost):
    with pytest.raises(ValueError, match="costs must be positive and finite"):
        regularization_path(sequential(CrammerSingerSVC), *iris(), [1.0, cost])


def test_a_path_needs_one_of_our_machines():
    with pytest.raises(TypeError, match="SVC"):
        regularization_path(SVC(), *iris(), [1.0])


# known_cost

KNOWN = [(Machine, bias) for Machine in (WestonWatkinsSVC, OneVsRestSVC) for bias in (None, "regularized")]
every_known = pytest.mark.parametrize(("Machine", "bias"), KNOWN)


def at_limit(machine, y, cost_bounds):
    """Tell for every coefficient that has a limit whether it is there."""
    B = np.zeros((len(y), machine.dual_coef_.shape[0]))
    B[machine.support_] = machine.dual_coef_.T
    limited = np.ones(B.shape, dtype=bool)
    if isinstance(machine, WestonWatkinsSVC):
        limited[np.arange(len(y)), y] = False  # the own class has what the others add up to
    return np.isclose(np.abs(B), cost_bounds[:, None], rtol=1e-6)[limited]


@every_known
@every_container
@pytest.mark.parametrize("k", [2, 3, 5])
def test_up_to_the_known_cost_every_coefficient_is_at_its_limit(Machine, bias, container, k):
    X, y = random_classes(k, n=40, n_features=5, seed=k)
    machine = sequential(Machine, bias=bias, tol=EXACT)
    cost = known_cost(machine, CONTAINERS[container](X), y)
    below = converged(clone(machine).set_params(C=0.999 * cost), X, y)
    above = converged(clone(machine).set_params(C=1.05 * cost), X, y)
    assert at_limit(below, y, np.full(len(y), below.C)).all()
    assert not at_limit(above, y, np.full(len(y), above.C)).all()


@every_known
def test_weights_are_factors_on_the_cost(Machine, bias):
    X, y = random_classes(3, n=40, n_features=5, seed=3)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    weight[::6] = 0.0
    factors = np.array([3.0, 1.0, 0.5])
    machine = sequential(Machine, bias=bias, class_weight={0: 3.0, 2: 0.5}, tol=EXACT)
    cost = known_cost(machine, X, y, sample_weight=weight)
    assert cost != pytest.approx(known_cost(clone(machine).set_params(class_weight=None), X, y), rel=0.01)
    cost_bounds = weight * factors[y]
    for share, expected in ((0.999, True), (1.05, False)):
        fitted = converged(clone(machine).set_params(C=share * cost), X, y, weight)
        assert at_limit(fitted, y, fitted.C * cost_bounds).all() == expected


@pytest.mark.parametrize("bias", [None, "regularized"])
def test_the_known_cost_grows_with_the_margin(bias):
    X, y = random_classes(3, n=40, seed=3)
    costs = [known_cost(WestonWatkinsSVC(kernel="linear", bias=bias, margin=margin), X, y) for margin in (1.0, 2.0)]
    assert costs[1] == pytest.approx(2 * costs[0])


def test_the_machine_does_not_matter_beyond_its_problem():
    X, y = random_classes(3, n=40, seed=3)
    machine = WestonWatkinsSVC(C=17.0, kernel="linear")
    before = vars(machine).copy()
    assert known_cost(machine, X, y) == known_cost(clone(machine).set_params(C=0.1), X, np.array(list("abc"))[y])
    assert vars(machine) == before


def test_what_never_reaches_a_margin_is_known_for_every_cost():
    assert known_cost(WestonWatkinsSVC(kernel="linear", bias=None), np.zeros((6, 2)), [0, 1, 2] * 2) == np.inf


@pytest.mark.parametrize(
    "machine",
    [
        CrammerSingerSVC(kernel="linear"),
        WestonWatkinsSVC(kernel="rbf"),
        WestonWatkinsSVC(kernel="linear", bias="free"),
        OneVsRestSVC(kernel="linear"),
        OneVsOneSVC(kernel="linear"),
    ],
    ids=["crammer-singer", "rbf", "free bias", "one-vs-rest, free bias", "one-vs-one"],
)
def test_where_no_cost_is_known_the_error_says_so(machine):
    with pytest.raises(ValueError, match="known_cost is for WestonWatkinsSVC and OneVsRestSVC"):
        known_cost(machine, *iris())


@every_known
def test_bad_examples_are_refused(Machine, bias):
    X, y = iris()
    machine = Machine(kernel="linear", bias=bias)
    with pytest.raises(ValueError, match="one class"):
        known_cost(machine, X, np.zeros(len(X)))
    for container in (np.asarray, sparse.csr_array):
        X[37, 2] = np.nan
        with pytest.raises(ValueError, match="row 37, column 2"):
            known_cost(machine, container(X), y)
        X[37, 2] = 1e200
        with pytest.raises(ValueError, match="row 37, column 2 is too large"):
            known_cost(machine, container(X), y)
    with pytest.raises(ValueError, match="sample_weight"):
        known_cost(machine, iris()[0], y, sample_weight=np.full(len(y), -1.0))
