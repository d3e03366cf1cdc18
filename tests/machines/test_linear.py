"""Linear machines without kernel values: the optimum, an honest gap, any input, any number of threads and classes."""

import functools
import json
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from reference.compare import dense, fitted_bits
from reference.composition import one_vs_rest, upper_bounds
from reference.data import digits, iris, overlapping, random_classes, separable, wine
from reference.linear import linear_optimum, signs, worth
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

from polymargin import CrammerSingerSVC, OneVsRestSVC, WestonWatkinsSVC, certify
from polymargin.machines import _linear

MACHINES = [CrammerSingerSVC, WestonWatkinsSVC, OneVsRestSVC]
TOGETHER = MACHINES[:2]
BIASES = [None, "regularized", "free"]
CONTAINERS = {"dense": np.asarray, "csr": sparse.csr_matrix}
EXACT = 1e-9

every_machine = pytest.mark.parametrize("Machine", MACHINES)
every_together = pytest.mark.parametrize("Machine", TOGETHER)
every_bias = pytest.mark.parametrize("bias", BIASES)
every_linear_solver = pytest.mark.parametrize(
    ("Machine", "solver"),
    [*((Machine, "sequential-dual") for Machine in MACHINES), *((Machine, "cutting-plane") for Machine in TOGETHER)],
)
every_container = pytest.mark.parametrize("container", CONTAINERS)


def sequential(Machine, **parameters):
    """Return a machine with the sequential dual solver; a time limit, so that a test fails and does not hang."""
    return Machine(**{"kernel": "linear", "solver": "sequential-dual", "time_limit": 5.0} | parameters)


def converged(machine, X, y, sample_weight=None):
    """Fit without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        machine.fit(X, y, sample_weight=sample_weight)
    assert machine.converged_
    assert machine.stop_reason_ == "converged"
    assert machine.duality_gap_ <= machine.tol or machine.solver_used_ == "decomposition"
    return machine


def limited(machine, X, y):
    """Fit with a limit that is reached."""
    with pytest.warns(ConvergenceWarning) as caught:
        machine.fit(X, y)
    assert not machine.converged_
    return str(caught[0].message)


def farthest(machine, objective):
    """Return how far weights with this gap can be from the best ones: 1/2 |W - W*|^2 is at most the gap."""
    return np.sqrt(2 * machine.duality_gap_ * objective) + 1e-7


def assert_honest(machine, X, y, sample_weight=None, rel=1e-9):
    """Check that attributes belong together, and that the reported objectives are those of the attributes."""
    W, b = machine.coef_, machine.intercept_
    np.testing.assert_allclose(
        np.asarray(dense(machine.dual_coef_) @ machine.support_vectors_.astype(np.float64)),
        W,
        rtol=0,
        atol=1e-11 * max(1.0, np.abs(W).max()),
    )
    assert W.dtype == b.dtype == machine.dual_coef_.dtype == np.float64
    checked = worth(machine, X, y, sample_weight)
    assert checked.infeasibility < 1e-12
    assert machine.primal_objective_ == pytest.approx(checked.primal, rel=rel)
    assert machine.dual_objective_ == pytest.approx(checked.dual, rel=rel, abs=rel * checked.primal)
    assert machine.duality_gap_ == pytest.approx(checked.gap, rel=1e-5, abs=10 * rel)
    assert checked.dual <= checked.primal * (1 + 1e-12)
    if machine.converged_:
        assert checked.gap <= machine.tol * (1 + 1e-5) + rel
    return checked


def names(message, row, column):
    """Tell whether a message names an entry, counted from 0."""
    has_row = re.search(rf"(?i)\brow\D{{0,3}}{row}\b", message)
    return bool(has_row and re.search(rf"(?i)\bcolumn\D{{0,3}}{column}\b", message))


def many_classes(k, per_class=2, n_features=20, seed=0):
    """Return as many examples of each class around a centre of its own."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(k), per_class))
    return rng.normal(size=(k, n_features))[y] + 0.5 * rng.normal(size=(len(y), n_features)), y


# The optimum


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_reference_of_one_against_all_is_that_of_its_binary_machines(k):
    X, y = random_classes(k, n=30, seed=k)
    ones = np.column_stack([X, np.ones(len(X))])
    free, regularised, none = (linear_optimum(OneVsRestSVC(bias=b), X, y) for b in ("free", "regularized", None))
    assert free.dual == pytest.approx(one_vs_rest(X @ X.T, y, upper_bounds(y)).dual, rel=1e-9)
    assert regularised.dual == pytest.approx(linear_optimum(OneVsRestSVC(bias=None), ones, y).dual, rel=1e-9)
    assert free.dual < regularised.dual < none.dual


@every_machine
@every_bias
@every_container
@pytest.mark.parametrize("k", [2, 3, 5])
def test_solution_is_the_optimum(Machine, bias, container, k):
    X, y = random_classes(k, n=40, n_features=7, seed=20 + k)
    for C in (0.02, 0.3, 1.0):
        machine = converged(sequential(Machine, C=C, bias=bias, tol=EXACT), CONTAINERS[container](X), y)
        best = linear_optimum(machine, X, y)
        assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-8)
        assert machine.primal_objective_ == pytest.approx(best.dual, rel=1e-8)
        np.testing.assert_allclose(machine.coef_, best.W, rtol=0, atol=farthest(machine, best.dual))
        if bias != "free":
            np.testing.assert_allclose(machine.intercept_, best.b, rtol=0, atol=farthest(machine, best.dual))
        assert_honest(machine, X, y)


@every_machine
@pytest.mark.parametrize("bias", [None, "regularized"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_large_cost_takes_longer_and_ends_at_the_optimum(Machine, bias, k):
    X, y = random_classes(k, n=40, seed=1)
    machine = converged(sequential(Machine, C=30.0, bias=bias, tol=1e-6), X, y)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-6)
    assert_honest(machine, X, y)


@every_machine
@every_bias
@every_container
@pytest.mark.parametrize("class_weight", [{0: 3.0, 2: 0.25}, "balanced"], ids=["dict", "balanced"])
def test_weighted_solution_is_the_optimum(Machine, bias, container, class_weight):
    X, y = random_classes(3, n=60, n_features=6, seed=11)
    X, y = X[:45], y[:45]
    rng = np.random.default_rng(3)
    weight = rng.uniform(0.1, 3.0, len(y))
    weight[::7] = 0.0
    machine = sequential(Machine, C=0.7, bias=bias, class_weight=class_weight, tol=EXACT)
    converged(machine, CONTAINERS[container](X), y, weight)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y, weight).dual, rel=1e-8)
    assert_honest(machine, X, y, weight)
    assert not np.isin(np.flatnonzero(weight == 0), machine.support_).any()
    assert machine.n_support_.sum() == len(machine.support_)


@every_machine
@every_bias
def test_a_weight_is_a_number_of_rows(Machine, bias):
    X, y = random_classes(3, n=60, seed=5)
    repeats = np.arange(len(y)) % 3
    weighted = converged(sequential(Machine, bias=bias, tol=EXACT, C=0.3), X, y, repeats)
    repeated = converged(clone(weighted), np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    assert weighted.dual_objective_ == pytest.approx(repeated.dual_objective_, rel=1e-8)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2 * farthest(weighted, weighted.dual_objective_))


@every_bias
@pytest.mark.parametrize("margin", [0.05, 1.0, 4.0])
def test_any_margin(bias, margin):
    X, y = random_classes(3, n=40, seed=4)
    machine = converged(sequential(WestonWatkinsSVC, C=0.2 * margin, bias=bias, margin=margin, tol=EXACT), X, y)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-8)
    assert_honest(machine, X, y)


@every_machine
@every_bias
@pytest.mark.parametrize("seed", [2, 3])
def test_more_features_than_examples(Machine, bias, seed):
    X, y = random_classes(4, n=24, n_features=100, seed=seed)
    machine = converged(sequential(Machine, C=10.0, bias=bias, tol=EXACT), sparse.csr_array(X), y)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-8)
    assert_honest(machine, X, y)
    assert machine.score(X, y) == 1.0


# Agreement with other solvers


@pytest.mark.parametrize(
    ("Machine", "bias"), [(Machine, bias) for Machine in TOGETHER for bias in BIASES] + [(OneVsRestSVC, "free")]
)
@pytest.mark.parametrize("data", [wine, lambda: digits(300)], ids=["wine", "digits"])
def test_decomposition_agrees(Machine, bias, data):
    X, y = data()
    machine = converged(sequential(Machine, C=0.1, bias=bias, tol=1e-8), X, y)
    other = converged(clone(machine).set_params(solver="decomposition", tol=1e-7), X, y)
    assert (machine.solver_used_, other.solver_used_) == ("sequential-dual", "decomposition")
    assert machine.dual_objective_ == pytest.approx(other.dual_objective_, rel=1e-6)
    assert machine.primal_objective_ == pytest.approx(other.primal_objective_, rel=1e-6)
    far = np.sqrt(2 * (machine.duality_gap_ + other.duality_gap_) * machine.dual_objective_) + 1e-5
    np.testing.assert_allclose(machine.coef_, other.coef_, rtol=0, atol=2 * far)
    assert np.mean(machine.predict(X) == other.predict(X)) > 0.99  # but for ties


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("data", [iris, wine, lambda: digits(300)], ids=["iris", "wine", "digits"])
def test_one_against_all_has_the_objectives_of_liblinear(data, intercept):
    X, y = data()
    C = 0.1
    ours = converged(sequential(OneVsRestSVC, C=C, bias="regularized" if intercept else None, tol=1e-8), X, y)
    theirs = LinearSVC(loss="hinge", C=C, fit_intercept=intercept, tol=1e-10, max_iter=1_000_000).fit(X, y)
    t = signs(y, len(ours.classes_))

    def objectives(W, b):  # liblinear's intercept is a feature, and regularised
        return 0.5 * ((W**2).sum(axis=1) + b**2) + C * np.maximum(0.0, 1.0 - t * (X @ W.T + b)).sum(axis=0)

    expected = objectives(theirs.coef_, np.broadcast_to(theirs.intercept_, len(t.T)))
    np.testing.assert_allclose(objectives(ours.coef_, ours.intercept_), expected, rtol=1e-6)
    np.testing.assert_allclose(worth(ours, X, y).duals, expected, rtol=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


@pytest.mark.parametrize("intercept", [False, True])
def test_crammer_singer_agrees_with_liblinear(intercept):
    X, y = wine()
    ours = converged(sequential(CrammerSingerSVC, C=0.1, bias="regularized" if intercept else None, tol=1e-8), X, y)
    theirs = LinearSVC(multi_class="crammer_singer", C=0.1, fit_intercept=intercept, tol=1e-9, max_iter=100_000)
    np.testing.assert_allclose(ours.decision_function(X), theirs.fit(X, y).decision_function(X), atol=1e-3)


@every_together
@pytest.mark.parametrize("bias", [None, "regularized"])
@every_container
@pytest.mark.parametrize("k", [2, 4])
def test_the_cutting_plane_method_ends_at_the_same_optimum(Machine, bias, container, k):
    X, y = random_classes(k, n=40, seed=k)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    machine = sequential(Machine, C=0.2, bias=bias, solver="cutting-plane", tol=1e-6)
    converged(machine, CONTAINERS[container](X), y, weight)
    assert machine.solver_used_ == "cutting-plane"
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y, weight).dual, rel=2e-6)
    assert_honest(machine, X, y, weight)
    assert machine.n_iter_ > 1
    message = limited(clone(machine).set_params(max_iter=2), X, y)
    assert "max_iter=2" in message


# An honest gap


@every_machine
@every_bias
@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-6])
def test_reported_objectives_are_those_of_the_attributes(Machine, bias, tol):
    X, y = random_classes(4, n=60, seed=5)
    for C, data in ((0.1, X), (1.0, sparse.csr_matrix(X))):
        assert_honest(converged(sequential(Machine, C=C, bias=bias, tol=tol), data, y), X, y)


@every_machine
@every_bias
@every_container
def test_the_gap_is_honest_when_the_solver_works_in_single_precision(Machine, bias, container):
    X, y = digits(1700)  # by 10 classes: enough
    machine = converged(sequential(Machine, C=0.01, bias=bias, tol=2e-3), CONTAINERS[container](X), y)
    assert assert_honest(machine, X, y).gap > 0
    exact = converged(clone(machine).set_params(tol=9e-6), X, y)  # in double
    assert exact.dual_objective_ <= exact.primal_objective_ <= machine.primal_objective_ * (1 + 1e-6)
    assert exact.dual_objective_ >= machine.dual_objective_ * (1 - 1e-6)


@every_machine
@every_bias
def test_a_smaller_tolerance_takes_more_steps_to_a_smaller_gap(Machine, bias):
    X, y = digits(300)
    machines = [converged(sequential(Machine, C=0.1, bias=bias, tol=tol), X, y) for tol in (0.1, 1e-3, 1e-6)]
    gaps = [machine.duality_gap_ for machine in machines]
    steps = [np.sum(machine.n_iter_) for machine in machines]
    assert gaps[0] > gaps[1] > gaps[2]
    assert steps[0] < steps[1] < steps[2]


@every_machine
def test_what_the_bias_means(Machine):
    X, y = random_classes(3, n=60, n_features=6, seed=8)
    X = X + 1.0
    none, regularised, free = (converged(sequential(Machine, C=0.1, bias=bias, tol=1e-8), X, y) for bias in BIASES)
    assert free.dual_objective_ < regularised.dual_objective_ < none.dual_objective_
    np.testing.assert_array_equal(none.intercept_, 0.0)
    np.testing.assert_allclose(regularised.intercept_, regularised.dual_coef_.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(free.dual_coef_.sum(axis=1), 0.0, atol=1e-12)
    wider = np.column_stack([X, np.ones(len(X))])
    feature = converged(sequential(Machine, C=0.1, bias=None, tol=1e-8), wider, y)
    assert feature.dual_objective_ == pytest.approx(regularised.dual_objective_, rel=1e-7)
    np.testing.assert_allclose(feature.coef_[:, -1], regularised.intercept_, atol=1e-2)
    if Machine in TOGETHER:
        for machine in (none, regularised, free):
            np.testing.assert_allclose(machine.coef_.sum(axis=0), 0.0, atol=1e-10)
            np.testing.assert_allclose(machine.dual_coef_.sum(axis=0), 0.0, atol=1e-12)
            assert abs(machine.intercept_.sum()) < 1e-9


@every_machine
@every_bias
@every_container
def test_the_certificate_says_what_the_machine_says(Machine, bias, container):
    X, y = random_classes(4, n=100, seed=5)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    weight[3] = 0.0
    data = CONTAINERS[container](X)
    machine = converged(sequential(Machine, C=0.1, bias=bias, tol=1e-3), data, y, weight)
    proof = certify(machine, data, y, weight)
    assert proof.infeasibility < 1e-12
    assert proof.primal_objective == pytest.approx(machine.primal_objective_, rel=1e-9)
    assert proof.dual_objective == pytest.approx(machine.dual_objective_, rel=1e-9)
    assert proof.duality_gap == pytest.approx(machine.duality_gap_, rel=1e-5)


# What a machine is made of


@every_machine
@every_bias
@pytest.mark.parametrize("k", [2, 4])
def test_scores_are_weights_times_features(Machine, bias, k):
    X, y = random_classes(k, n=50, seed=k)
    machine = converged(sequential(Machine, C=0.1, bias=bias, tol=1e-4), X, y)
    columns = 1 if Machine is OneVsRestSVC and k == 2 else k
    assert machine.coef_.shape == (columns, X.shape[1])
    assert machine.dual_coef_.shape == (columns, len(machine.support_))
    assert machine.intercept_.shape == (columns,)
    assert np.shape(machine.n_iter_) == ((columns,) if Machine is OneVsRestSVC else ())
    assert machine.n_kernel_evaluations_ == 0
    assert machine.n_features_in_ == X.shape[1]
    np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
    np.testing.assert_array_equal(machine.n_support_, np.bincount(y[machine.support_], minlength=k))
    values = X @ machine.coef_.T + machine.intercept_
    expected = values[:, -1] if k == 2 else values
    assert machine.decision_function(X).shape == expected.shape
    np.testing.assert_allclose(machine.decision_function(X), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(machine.predict(X), (expected > 0) if k == 2 else expected.argmax(axis=1))


@pytest.mark.parametrize("names_of_classes", [["versicolor", "virginica"], [False, True], [-1, 1]])
@every_machine
@every_bias
def test_of_two_classes_the_second_is_positive(Machine, bias, names_of_classes):
    X, y = iris()
    X, labels = X[y > 0], np.array(names_of_classes)[y[y > 0] - 1]
    machine = converged(sequential(Machine, bias=bias, tol=1e-4), X, labels)
    np.testing.assert_array_equal(machine.classes_, np.unique(labels))
    np.testing.assert_array_equal(machine.predict(X) == names_of_classes[1], machine.decision_function(X) > 0)
    assert machine.score(X, labels) > (0.9 if bias else 0.7)
    assert_honest(machine, X, labels)


def test_with_two_classes_the_machines_are_one():
    X, y = random_classes(2, n=60, n_features=6, seed=3)
    binary = converged(sequential(OneVsRestSVC, C=0.5, tol=EXACT), X, y)
    sums = converged(sequential(WestonWatkinsSVC, C=0.5, bias="free", margin=2.0, tol=EXACT), X, y)
    maxima = converged(sequential(CrammerSingerSVC, C=0.25, bias="free", tol=EXACT), X, y)
    assert sums.dual_objective_ == pytest.approx(2 * binary.dual_objective_, rel=1e-8)
    assert maxima.dual_objective_ == pytest.approx(binary.dual_objective_ / 2, rel=1e-8)
    expected = binary.decision_function(X)
    np.testing.assert_allclose(sums.decision_function(X), expected, atol=1e-3)
    np.testing.assert_allclose(2 * maxima.decision_function(X), expected, atol=1e-3)


@every_machine
@every_bias
def test_more_classes_than_are_read_at_once(Machine, bias):
    for k in (33, 64, 65):
        X, y = many_classes(k, n_features=10, seed=k)
        machine = converged(sequential(Machine, C=0.05, bias=bias, tol=9e-6), X, y)  # in double
        assert_honest(machine, X, y)
        assert machine.coef_.shape == (k, 10)
    if Machine in TOGETHER or bias == "free":
        other = clone(machine).set_params(solver="decomposition", tol=1e-5).fit(X, y)
        assert machine.dual_objective_ == pytest.approx(other.dual_objective_, rel=2e-5)


@every_machine
@every_bias
def test_three_hundred_classes(Machine, bias):
    X, y = many_classes(300)
    machine = converged(sequential(Machine, C=0.1, bias=bias, tol=2e-2), X, y)  # in single precision
    assert_honest(machine, X, y)
    if Machine in TOGETHER:
        assert machine.score(X, y) > 0.99
    assert machine.n_support_.shape == (300,)
    if bias == "regularized":
        exact = converged(clone(machine).set_params(tol=9e-6), sparse.csr_matrix(X), y)  # in double
        assert_honest(exact, X, y)
        assert machine.dual_objective_ <= exact.primal_objective_
        assert exact.dual_objective_ <= machine.primal_objective_


@every_machine
@pytest.mark.parametrize("bias", [None, "free"])
def test_coefficients_too_many_for_a_dense_matrix_are_sparse(monkeypatch, Machine, bias):
    X, y = random_classes(5, n=60, seed=1)
    expected = converged(sequential(Machine, C=0.1, bias=bias, tol=1e-6, warm_start=True), X, y)
    monkeypatch.setattr(_linear, "_DENSE", 10)
    machine = converged(clone(expected), X, y)
    assert sparse.issparse(machine.dual_coef_)
    np.testing.assert_array_equal(machine.dual_coef_.toarray(), expected.dual_coef_)
    np.testing.assert_array_equal(machine.coef_, expected.coef_)
    np.testing.assert_array_equal(machine.decision_function(X), expected.decision_function(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).predict(X), expected.predict(X))
    assert_honest(machine, X, y)
    again = converged(machine, X, y)  # a warm start
    assert np.max(again.n_iter_) <= np.max(expected.n_iter_)
    assert again.dual_objective_ == pytest.approx(expected.dual_objective_, rel=2e-6)


# Input


@every_machine
@every_bias
def test_sparse_and_dense_rows_give_the_same_answer(Machine, bias):
    X, y = digits(300)
    X_sparse = sparse.csr_matrix(X)
    from_dense = converged(sequential(Machine, C=0.02, bias=bias, tol=EXACT), X, y)
    from_sparse = converged(clone(from_dense), X_sparse, y)
    assert from_sparse.dual_objective_ == pytest.approx(from_dense.dual_objective_, rel=1e-8)
    np.testing.assert_allclose(from_sparse.coef_, from_dense.coef_, atol=1e-3)
    for machine in (from_dense, from_sparse):
        expected = machine.decision_function(X)
        for other in (X_sparse, sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X)):
            got = machine.decision_function(other)
            assert isinstance(got, np.ndarray)
            assert got.dtype == np.float64
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
        np.testing.assert_array_equal(machine.predict(X_sparse), machine.predict(X))
    assert sparse.issparse(from_sparse.support_vectors_)
    np.testing.assert_array_equal(from_sparse.support_vectors_.toarray(), X[from_sparse.support_])


WIDE = """
import json, resource, sys, time
import numpy as np
from scipy import sparse
import polymargin

rng = np.random.default_rng(0)
X = sparse.random_array((200, 10**6), density=2e-5, format="csr", rng=rng)
y = np.arange(200) % 3
report = {}
for name in sys.argv[1:]:
    for bias in (None, "free") if name == "CrammerSingerSVC" else ("regularized",):
        begin = time.perf_counter()
        machine = getattr(polymargin, name)(kernel="linear", solver="sequential-dual", bias=bias, time_limit=20.0)
        machine.fit(X, y)
        scores = machine.decision_function(X)
        expected = (X @ machine.support_vectors_.T) @ machine.dual_coef_.T + machine.intercept_
        report[f"{name} {bias}"] = {
            "converged": machine.converged_,
            "right": bool(np.allclose(scores, expected, atol=1e-9)) and machine.coef_.shape == (3, 10**6),
            "quick": time.perf_counter() - begin < 15.0,
        }
report["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(report))
"""


def test_a_million_features_are_never_made_dense():
    names_of_machines = [Machine.__name__ for Machine in MACHINES]
    command = [sys.executable, "-c", WIDE, *names_of_machines]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report.pop("megabytes") < 1000  # all of X would be 1600, and is read more than once
    assert len(report) == 4
    for name, outcome in report.items():
        assert outcome == {"converged": True, "right": True, "quick": True}, name


@every_machine
@every_container
def test_float32_is_the_same_problem(Machine, container):
    X, y = digits(300)
    X = np.float32(X + np.random.default_rng(0).normal(0, 0.01, X.shape))
    single = converged(sequential(Machine, C=0.1, tol=1e-7), CONTAINERS[container](X), y)
    double = converged(clone(single), CONTAINERS[container](X.astype(np.float64)), y)
    assert single.support_vectors_.dtype == np.float32
    assert single.coef_.dtype == np.float64
    np.testing.assert_array_equal(single.coef_, double.coef_)
    np.testing.assert_array_equal(single.intercept_, double.intercept_)
    assert_honest(single, X, y)
    np.testing.assert_allclose(
        single.decision_function(CONTAINERS[container](X)), double.decision_function(X.astype(np.float64)), atol=1e-5
    )


@every_machine
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float16, bool])
def test_other_number_types_are_converted(Machine, dtype):
    X, y = digits(150)
    X = (16 * X).astype(dtype)
    machine = sequential(Machine, C=0.01, tol=1e-2).fit(X, y)
    expected = sequential(Machine, C=0.01, tol=1e-2).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(machine.coef_, expected.coef_, atol=1e-12)


def with_indices(X, dtype):
    """Return CSR with index arrays of the given type, whatever scipy would choose."""
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    return X


@every_machine
def test_index_type_changes_nothing(Machine):
    X, y = digits(200)
    narrow, wide = with_indices(X, np.int32), with_indices(X, np.int64)
    assert (narrow.indices.dtype, wide.indices.dtype) == (np.int32, np.int64)
    machine, other = (converged(sequential(Machine, C=0.1), data, y) for data in (narrow, wide))
    assert fitted_bits(machine, narrow) == fitted_bits(other, wide)
    np.testing.assert_array_equal(machine.coef_, other.coef_)


@every_machine
@every_bias
def test_unsorted_duplicated_and_stored_zero_entries_mean_what_they_say(Machine, bias):
    X, y = digits(150)
    rows, columns = np.nonzero(np.ones_like(X))
    order = np.random.default_rng(0).permutation(2 * len(rows))
    rows, columns = np.tile(rows, 2)[order], np.tile(columns, 2)[order]
    values = np.concatenate([0.25 * X.ravel(), 0.75 * X.ravel()])[order]
    by_row = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    messy = sparse.csr_matrix((values[by_row], columns[by_row], indptr), shape=X.shape)
    before = messy.copy()
    np.testing.assert_array_equal(messy.toarray(), X)
    machine = converged(sequential(Machine, C=0.02, bias=bias, tol=1e-8), messy, y)
    clean = converged(clone(machine), sparse.csr_matrix(X), y)
    assert machine.dual_objective_ == pytest.approx(clean.dual_objective_, rel=1e-7)
    np.testing.assert_allclose(machine.decision_function(messy), machine.decision_function(X), atol=1e-12)
    assert_honest(machine, X, y)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(messy, name), getattr(before, name))


@every_machine
@every_bias
@every_container
def test_rows_and_features_of_zeros(Machine, bias, container):
    X, y = random_classes(3, n=42, n_features=5, seed=7)
    X[::6] = 0.0
    X[:, [0, 3]] = 0.0
    machine = converged(sequential(Machine, C=0.1, bias=bias, tol=EXACT), CONTAINERS[container](X), y)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-8)
    np.testing.assert_array_equal(machine.coef_[:, [0, 3]], 0.0)
    assert_honest(machine, X, y)


@every_machine
@every_bias
@pytest.mark.parametrize("k", [2, 3])
@every_container
def test_nothing_but_zeros(Machine, bias, k, container):
    X, y = np.zeros((12, 3)), np.arange(12) % k
    machine = converged(sequential(Machine, bias=bias, tol=1e-6), CONTAINERS[container](X), y)
    np.testing.assert_array_equal(machine.coef_, 0.0)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-6)
    assert machine.predict(X).shape == (12,)
    assert_honest(machine, X, y)


@every_machine
@every_bias
def test_one_example_for_each_class(Machine, bias):
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([0, 1, 2])
    for rows in (slice(None), slice(0, 2)):
        machine = converged(sequential(Machine, C=10.0, bias=bias, tol=EXACT), X[rows], y[rows])
        assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X[rows], y[rows]).dual, rel=1e-8)
        np.testing.assert_array_equal(machine.predict(X[rows]), y[rows])


@every_machine
def test_input_stays_as_it_is_and_may_be_read_only(Machine):
    X, y = digits(150)
    for data in (X, sparse.csr_matrix(X)):
        before, labels = data.copy(), y.copy()
        for array in (data,) if isinstance(data, np.ndarray) else (data.data, data.indices, data.indptr):
            array.flags.writeable = False
        machine = sequential(Machine, C=0.1).fit(data, y)
        machine.predict(data)
        assert abs(data - before).max() == 0
        np.testing.assert_array_equal(y, labels)


@every_machine
def test_memory_layout_changes_nothing(Machine):
    X, y = digits(150)
    expected = sequential(Machine, C=0.1).fit(X, y)
    wide = np.zeros((300, 128))
    wide[::2, ::2] = X
    for other in (np.asfortranarray(X), wide[::2, ::2]):
        np.testing.assert_array_equal(sequential(Machine, C=0.1).fit(other, y).coef_, expected.coef_)
        np.testing.assert_allclose(expected.decision_function(other), expected.decision_function(X), atol=1e-12)


@every_machine
@pytest.mark.parametrize("bias", [None, "free"])  # the feature of a regularised bias is a constant that does not scale
@pytest.mark.parametrize("scale", [1e-60, 1e-6, 1e6, 1e60])
def test_scaling_data_and_costs_changes_only_the_units(Machine, bias, scale):
    X, y = random_classes(3, n=40, seed=6)
    expected = converged(sequential(Machine, C=0.5, bias=bias, tol=1e-8), X, y)
    machine = converged(sequential(Machine, C=0.5 / scale**2, bias=bias, tol=1e-8), scale * X, y)
    assert machine.dual_objective_ == pytest.approx(expected.dual_objective_ / scale**2, rel=2e-8)
    np.testing.assert_allclose(machine.coef_ * scale, expected.coef_, atol=1e-2)


# Bad input


@every_machine
@pytest.mark.parametrize("solver", ["auto", "sequential-dual"])
def test_one_class_is_not_enough(Machine, solver):
    X, _ = iris()
    machine = sequential(Machine, solver=solver)
    with pytest.raises(ValueError, match=r"(?i)one class"):
        machine.fit(X, np.zeros(len(X)))
    assert not hasattr(machine, "coef_")


@every_machine
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, np.float32], ids=["dense", "csr", "float32"])
def test_a_value_that_is_not_finite_is_named_by_row_and_column(Machine, container, value):
    X, y = digits(60)
    machine = sequential(Machine, C=0.01).fit(container(X), y)
    X[37, 21] = value
    bad = container(X)
    for call in (lambda: sequential(Machine).fit(bad, y), lambda: machine.predict(bad)):
        with pytest.raises(ValueError, match=r"NaN|inf") as caught:
            call()
        assert names(str(caught.value), 37, 21), caught.value


@every_machine
@every_bias
@every_container
@pytest.mark.parametrize("value", [1e20, -1e149, 1e200, -1.7e308])
def test_a_huge_value_gives_an_error_that_names_it_or_a_feasible_answer(Machine, bias, container, value):
    X, y = digits(60)
    X[37, 21] = value
    bad = CONTAINERS[container](X)
    machine = sequential(Machine, C=0.01, bias=bias, max_iter=3000)
    if abs(value) > 1e150:
        with pytest.raises(ValueError, match=r"row 37, column 21"):
            machine.fit(bad, y)
        assert not hasattr(machine, "classes_")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(bad, y)
    assert np.isfinite(machine.coef_).all()
    assert np.isfinite(machine.intercept_).all()
    checked = worth(machine, X, y)
    assert checked.infeasibility < 1e-9
    # The scores of that row are rounded to more than the margin, so whether it pays is anybody's guess.
    paid = 2 * machine.C * (9 if Machine is WestonWatkinsSVC else 1) + 1e-6 * checked.primal
    assert machine.primal_objective_ == pytest.approx(checked.primal, rel=0, abs=paid)
    assert machine.dual_objective_ == pytest.approx(checked.dual, rel=0, abs=1e-6 * checked.primal)
    assert np.isfinite(machine.decision_function(bad)).all()


@every_machine
@pytest.mark.parametrize("value", [1e-200, 5e-324])
def test_a_tiny_value_is_as_good_as_zero(Machine, value):
    X, y = random_classes(3, n=42, n_features=5, seed=7)
    X[::6] = value
    machine = converged(sequential(Machine, C=0.1, tol=1e-8), X, y)
    expected = converged(sequential(Machine, C=0.1, tol=1e-8), np.where(np.abs(X) < 1e-100, 0.0, X), y)
    assert machine.dual_objective_ == pytest.approx(expected.dual_objective_, rel=2e-8)


@every_linear_solver
def test_a_hard_margin_needs_the_other_solver_and_the_error_says_so(Machine, solver):
    X, y = separable(60)
    with pytest.raises(ValueError, match="finite C") as caught:
        sequential(Machine, C=np.inf, solver=solver).fit(X, y)
    assert solver in str(caught.value)
    assert "'decomposition'" in str(caught.value)
    hard = sequential(Machine, C=np.inf, solver="decomposition").fit(X, y)
    assert hard.solver_used_ == "decomposition"
    assert hard.score(X, y) == 1.0


@every_machine
def test_a_cost_that_a_weight_makes_infinite_is_refused(Machine):
    X, y = separable(60)
    with pytest.raises(ValueError, match=r"(?i)finite|weight|too large"):
        sequential(Machine, C=1e308, time_limit=1.0).fit(X, y, sample_weight=np.full(60, 10.0))


def linear_function(A, B):
    """A kernel that a person might write."""
    return A @ B.T


@every_linear_solver
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "precomputed", linear_function])
def test_another_kernel_needs_the_other_solver_and_the_error_says_so(Machine, kernel, solver):
    X, y = iris()
    X = X @ X.T if kernel == "precomputed" else X
    machine = Machine(kernel=kernel, solver=solver)
    with pytest.raises(ValueError, match="kernel='linear'") as caught:
        machine.fit(X, y)
    assert f"solver='{solver}'" in str(caught.value)
    assert not hasattr(machine, "dual_coef_")


@pytest.mark.parametrize("bias", [None, "regularized"])
@pytest.mark.parametrize(
    "parameters",
    [{"kernel": "rbf"}, {"kernel": "precomputed"}, {"kernel": "linear", "solver": "decomposition"}],
    ids=["rbf", "precomputed", "decomposition"],
)
def test_one_against_all_has_a_free_bias_elsewhere_and_the_error_says_so(bias, parameters):
    X, y = iris()
    X = X @ X.T if parameters["kernel"] == "precomputed" else X
    with pytest.raises(ValueError, match="bias") as caught:
        OneVsRestSVC(bias=bias, **parameters).fit(X, y)
    for part in (repr(bias), "'sequential-dual'", "kernel='linear'", "free"):
        assert part in str(caught.value)


@every_together
def test_the_cutting_plane_method_has_no_free_bias_and_the_error_says_so(Machine):
    with pytest.raises(ValueError, match="free") as caught:
        Machine(kernel="linear", solver="cutting-plane", bias="free").fit(*iris())
    for part in ("cutting-plane", "'regularized'", "None", "'sequential-dual'"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("bias", value) for value in ("none", "Free", "", 0, 1.0, True)),
        *(("solver", value) for value in ("smo", "cutting-plane", "sequential_dual", "", None, 1)),
    ],
)
def test_a_wrong_parameter_of_one_against_all_is_named(name, value):
    machine = OneVsRestSVC(**{"kernel": "linear", name: value})
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        machine.fit(*iris())
    assert not hasattr(machine, "dual_coef_")


@every_machine
def test_rows_of_another_width_are_refused_at_prediction(Machine):
    machine = sequential(Machine).fit(*iris())
    for width in (3, 5):
        for container in CONTAINERS.values():
            with pytest.raises(ValueError, match="features"):
                machine.decision_function(container(np.ones((3, width))))


@every_machine
@pytest.mark.parametrize("name", ["dual_coef_", "intercept_", "support_vectors_", "classes_", "n_support_"])
def test_a_tampered_machine_refuses_to_predict(Machine, name):
    X, y = wine()
    machine = sequential(Machine).fit(X, y)
    setattr(machine, name, getattr(machine, name)[:-1])
    with pytest.raises(ValueError, match=r"\w"):
        machine.predict(X)


@every_machine
def test_a_failed_fit_leaves_the_machine_as_it_was(Machine):
    X, y = iris()
    machine = sequential(Machine).fit(X, y)
    before = dict(vars(machine))
    bad = X.copy()
    bad[3, 1] = 1e200
    with pytest.raises(ValueError, match=r"row 3.*column 1"):
        machine.fit(bad, y)
    assert vars(machine).keys() == before.keys()
    assert all(vars(machine)[name] is before[name] for name in before)


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
    X, y = rng.normal(size=(4000, 30)), rng.integers(0, 5, 4000)
    begin = time.perf_counter()
    machine = sequential(Machine, C=1e4, tol=1e-12, time_limit=0.3)
    limited(machine, X, y)
    assert 0.2 < time.perf_counter() - begin < 2.0
    assert machine.stop_reason_ == "time_limit"
    assert_honest(machine, X, y)


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
    X, y = rng.normal(size=(3000, 10)), rng.integers(0, 3, 3000)
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
    X, y = rows(1025)
    X = CONTAINERS[container](X)
    for n, solver in ((1024, "decomposition"), (1025, "sequential-dual")):
        assert Machine(kernel="linear").fit(X[:n], y[:n]).solver_used_ == solver
    weight = np.ones(1025)
    weight[3] = 0.0  # 1024 take part
    assert Machine(kernel="linear").fit(X, y, sample_weight=weight).solver_used_ == "decomposition"
    assert Machine(kernel="linear", C=np.inf).fit(X, y).solver_used_ == "decomposition"
    assert Machine(kernel="rbf", gamma=0.1).fit(X, y).solver_used_ == "decomposition"
    assert Machine(kernel="linear", solver="decomposition").fit(X, y).solver_used_ == "decomposition"
    assert sequential(Machine).fit(X[:50], y[:50]).solver_used_ == "sequential-dual"


@every_machine
@pytest.mark.parametrize("bias", BIASES)
def test_auto_gives_what_the_solver_it_takes_gives(Machine, bias):
    X, y = digits(1100)
    params = {"kernel": "linear", "bias": bias, "C": 0.05, "tol": 1e-2}
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
