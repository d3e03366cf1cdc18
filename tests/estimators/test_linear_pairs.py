"""Linear one-against-one without a kernel matrix: each pair on its own examples."""

import numpy as np
import pytest
import scipy.sparse as sp
from reference.compare import oracle
from reference.data import digits, random_classes
from reference.kernels import kernel_matrix
from sklearn.svm import SVC

from polymargin import OneVsOneSVC, certify, load_model, save_model
from polymargin.formulations import Pairs, RunOptions, training_set
from polymargin.formulations.apart import ApartRule
from polymargin.kernels import Kernel

APART = {"kernel": "linear", "solver": "sequential-dual"}
KERNEL = {"kernel": "linear", "solver": "decomposition"}
SPARSE = {"dense": np.asarray, "sparse": sp.csr_array}


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_objectives_are_those_of_an_independent_quadratic_program(C):
    X, y = random_classes(4, n=100, seed=3)
    machine = OneVsOneSVC(C=C, tol=1e-8, **APART).fit(X, y)
    best, _ = oracle(machine, X, y)
    assert machine.solver_used_ == "sequential-dual"
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-6)
    assert machine.primal_objective_ == pytest.approx(best.dual, rel=1e-6)


@pytest.mark.parametrize("form", SPARSE)
def test_values_and_decisions_are_those_of_the_kernel_path_and_of_libsvm(form):
    X, y = digits(400)
    X = SPARSE[form](X)
    apart, kernel = (OneVsOneSVC(tol=1e-8, **solver).fit(X, y) for solver in (APART, KERNEL))
    assert apart.dual_objective_ == pytest.approx(kernel.dual_objective_, rel=1e-6)
    assert certify(apart, X, y).duality_gap < 1e-6
    values = apart.pairwise_decision_function(X)
    np.testing.assert_allclose(values, kernel.pairwise_decision_function(X), atol=1e-4)
    theirs = SVC(kernel="linear", tol=1e-8, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(values, theirs.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(apart.coef_, np.asarray(kernel.coef_), atol=1e-4)
    for decision in ("votes", "dag", "adag"):
        np.testing.assert_array_equal(apart.predict_by(decision, X), kernel.predict_by(decision, X))


def test_weights_are_those_of_the_examples():
    X, y = random_classes(3, n=90, seed=1)
    weight = np.linspace(0.2, 3.0, len(X))
    apart, kernel = (OneVsOneSVC(tol=1e-8, **solver).fit(X, y, sample_weight=weight) for solver in (APART, KERNEL))
    assert apart.dual_objective_ == pytest.approx(kernel.dual_objective_, rel=1e-6)
    assert certify(apart, X, y, sample_weight=weight).duality_gap < 1e-6


def test_two_classes_have_the_signs_of_scikit_learn():
    X, y = random_classes(2, n=80, seed=2)
    apart = OneVsOneSVC(tol=1e-8, **APART).fit(X, y)
    theirs = SVC(kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(apart.decision_function(X), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(apart.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_array_equal(apart.predict(X), theirs.predict(X))


def test_probabilities_are_those_of_the_kernel_path():
    X, y = random_classes(3, n=150, seed=4)
    options = {"C": 0.5, "decision": "coupling", "tol": 1e-7}
    apart, kernel = (OneVsOneSVC(**options, **solver).fit(X, y) for solver in (APART, KERNEL))
    np.testing.assert_allclose(apart.predict_proba(X), kernel.predict_proba(X), atol=1e-4)
    np.testing.assert_array_equal(apart.predict(X), kernel.predict(X))


@pytest.mark.parametrize("decision", ["votes", "coupling"])
def test_any_number_of_threads_gives_the_same_bits(decision):
    X, y = random_classes(4, n=160, seed=5)
    one, two, five = (OneVsOneSVC(decision=decision, n_jobs=jobs, **APART).fit(X, y) for jobs in (1, 2, 5))
    for other in (two, five):
        np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_a_warm_start_saves_steps():
    X, y = digits(400)
    machine = OneVsOneSVC(C=10.0, tol=1e-6, warm_start=True, **APART).fit(X, y)
    steps = machine.n_iter_.sum()
    assert machine.fit(X, y).n_iter_.sum() < 0.7 * steps


def test_model_files_keep_the_weights(tmp_path):
    X, y = digits(300)
    machine = OneVsOneSVC(decision="dag", **APART).fit(X, y)
    save_model(machine, tmp_path / "pairs.safetensors")
    loaded = load_model(tmp_path / "pairs.safetensors")
    np.testing.assert_array_equal(loaded.decision_function(X), machine.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))


def test_weights_without_room_are_not_kept():
    X, y = digits(300)
    small = OneVsOneSVC(tol=1e-6, cache_size=0.01, **APART).fit(X, y)
    large = OneVsOneSVC(tol=1e-6, **APART).fit(X, y)
    assert type(small.model_).__name__ == "KernelModel"
    assert certify(small, X, y).duality_gap < 1e-5
    np.testing.assert_allclose(small.decision_function(X), large.decision_function(X), atol=1e-2)


def test_a_limit_of_time_leaves_a_machine_of_all_pairs():
    X, y = digits(300)
    with pytest.warns(UserWarning, match="time_limit"):
        machine = OneVsOneSVC(C=1e4, tol=1e-12, time_limit=1e-6, **APART).fit(X, y)
    assert machine.stop_reason_ == "time_limit"
    assert machine.pairwise_decision_function(X).shape == (300, 45)


def test_what_it_is_for_follows_the_size_of_the_data():
    rule = ApartRule(few_examples=100, most_examples=200, few_features=4, most_narrow=300)

    def asks(n, n_features, **options):
        codes = np.arange(n) % 3
        training = training_set(np.ones((n, n_features)), codes, np.arange(3), C=1.0)
        return rule.has_matrix(training, RunOptions(**options))

    assert asks(100, 50, cache_size=0.001)
    assert asks(200, 50)
    assert not asks(200, 50, cache_size=0.001)
    assert not asks(201, 50)
    assert asks(300, 4, cache_size=0.001)
    assert not asks(301, 4)


def test_few_examples_are_solved_on_kernel_values_and_many_are_not():
    K = Kernel("linear", 0.0, 0.0, 0)
    few = training_set(np.ones((30, 100)), np.arange(30) % 3, np.arange(3), C=1.0)
    many = training_set(np.ones((20_000, 100)), np.arange(20_000) % 3, np.arange(3), C=1.0)
    assert [Pairs().measure(each, K) for each in (few, many)] == ["violation", "gap"]
    hard = training_set(np.ones((20_000, 100)), np.arange(20_000) % 3, np.arange(3), C=np.inf)
    assert Pairs().measure(hard, K) == "violation"


@pytest.mark.parametrize("options", [{"kernel": "rbf"}, {"kernel": "linear", "C": np.inf}])
def test_what_it_cannot_do_is_refused(options):
    X, y = random_classes(3, n=30, seed=0)
    with pytest.raises(ValueError, match=r"solver='sequential-dual' needs"):
        OneVsOneSVC(solver="sequential-dual", **options).fit(X, y)


def test_kernel_values_are_those_of_the_reference():
    X, y = random_classes(3, n=60, seed=6)
    machine = OneVsOneSVC(tol=1e-7, **APART).fit(X, y)
    vectors = machine.support_vectors_
    members, coefficients = machine.model_.score_coefficients(0)
    expected = kernel_matrix(X, vectors[members], "linear") @ coefficients + machine.intercept_[0]
    np.testing.assert_allclose(machine.pairwise_decision_function(X)[:, 0], expected, atol=1e-3)
