"""Linear machines without kernel values: any input, and bad input."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from reference.compare import fitted_bits
from reference.data import digits, iris, random_classes, separable, wine
from reference.linear import linear_optimum, worth
from reference.linear_machines import (
    CONTAINERS,
    EXACT,
    MACHINES,
    assert_honest,
    converged,
    every_bias,
    every_container,
    every_linear_solver,
    every_machine,
    every_together,
    names,
    sequential,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polymargin import OneVsRestSVC, WestonWatkinsSVC

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
import json, sys, time
from pathlib import Path
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
# not getrusage: a child's ru_maxrss begins at its parent's peak
lines = Path("/proc/self/status").read_text().splitlines()
report["megabytes"] = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
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
