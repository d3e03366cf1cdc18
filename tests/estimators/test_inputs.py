"""The same numbers in another container are the same problem: sparse, precomputed, callable, float32."""

import numpy as np
import pytest
from reference.compare import dense, scores
from reference.data import digits, iris, wine
from reference.kernels import kernel_matrix
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from polymargin import (
    CrammerSingerSVC,
    LeeLinWahbaSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    SoftmaxSVC,
    TotalMaximumSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)

MACHINES = [OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC, UncertaintySVC, OutputCodeSVC, SoftmaxSVC]
MACHINES += [LeeLinWahbaSVC, TotalMaximumSVC]
KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "rbf": {"kernel": "rbf"},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01},
}


def with_indices(X, dtype):
    """Return CSR with index arrays of the given type, whatever scipy would choose."""
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    return X


def pairwise_rbf(A, B):
    """A kernel that a person might write."""
    return rbf_kernel(A, B, gamma=0.05)


def plain_linear(A, B):
    """The linear kernel of dense or sparse rows."""
    return dense(A @ B.T)


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_csr_gives_the_dense_answer(Machine, kernel, index):
    X, y = digits(300)
    X_sparse = with_indices(X, index)
    assert X_sparse.indices.dtype == index
    from_dense = Machine(tol=1e-6, **KERNELS[kernel]).fit(X, y)
    from_sparse = Machine(tol=1e-6, **KERNELS[kernel]).fit(X_sparse, y)
    expected = scores(from_dense, X)
    np.testing.assert_allclose(scores(from_sparse, X_sparse), expected, atol=1e-5 * max(1.0, np.abs(expected).max()))
    assert from_sparse.dual_objective_ == pytest.approx(from_dense.dual_objective_, rel=1e-6)


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_type_changes_nothing(Machine, index):
    X, y = digits(300)
    machine = Machine().fit(with_indices(X, np.int32), y)
    other = Machine().fit(with_indices(X, index), y)
    np.testing.assert_array_equal(dense(machine.dual_coef_), dense(other.dual_coef_))
    np.testing.assert_array_equal(scores(machine, with_indices(X, np.int32)), scores(other, with_indices(X, index)))


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize(
    "convert",
    [
        sparse.csc_matrix,
        sparse.coo_matrix,
        sparse.csr_array,
        sparse.csc_array,
        sparse.coo_array,
        sparse.lil_matrix,
    ],
)
def test_other_sparse_formats_are_converted(Machine, convert):
    X, y = digits(200)
    machine = Machine().fit(convert(X), y)
    expected = Machine().fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(scores(machine, convert(X)), scores(expected, sparse.csr_matrix(X)))


@pytest.mark.parametrize("Machine", MACHINES)
def test_rows_may_be_dense_at_one_end_and_sparse_at_the_other(Machine):
    X, y = digits(200)
    from_dense, from_sparse = Machine().fit(X, y), Machine().fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(scores(from_dense, sparse.csr_matrix(X)), scores(from_dense, X), atol=1e-6)
    np.testing.assert_allclose(scores(from_sparse, sparse.csr_matrix(X)), scores(from_sparse, X), atol=1e-6)


@pytest.mark.parametrize("Machine", MACHINES)
def test_unsorted_indices_and_stored_zeros_and_duplicates_mean_what_they_say(Machine):
    X, y = digits(150)
    rows, columns = np.nonzero(np.ones_like(X))
    order = np.random.default_rng(0).permutation(2 * len(rows))
    rows, columns, values = (
        np.tile(rows, 2)[order],
        np.tile(columns, 2)[order],
        np.tile(X.ravel() / 2, 2)[order],
    )
    by_row = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    messy = sparse.csr_matrix((values[by_row], columns[by_row], indptr), shape=X.shape)
    assert messy.nnz == 2 * X.size
    np.testing.assert_array_equal(messy.toarray(), X)
    machine = Machine(tol=1e-6).fit(messy, y)
    np.testing.assert_allclose(scores(machine, messy), scores(Machine(tol=1e-6).fit(X, y), X), atol=1e-5)
    assert messy.nnz == 2 * X.size, "fit changed its argument"


@pytest.mark.parametrize("Machine", MACHINES)
def test_empty_rows_are_rows_of_zeros(Machine):
    X, y = digits(150)
    X[::5] = 0.0
    machine = Machine(tol=1e-6).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(scores(machine, sparse.csr_matrix(X)), scores(Machine(tol=1e-6).fit(X, y), X), atol=1e-5)


@pytest.mark.parametrize("Machine", MACHINES)
def test_linear_coef_of_sparse_rows(Machine):
    X, y = digits(200)
    from_sparse = Machine(kernel="linear", tol=1e-6).fit(sparse.csr_matrix(X), y)
    from_dense = Machine(kernel="linear", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(dense(from_sparse.coef_), from_dense.coef_, atol=1e-5)
    np.testing.assert_array_equal(dense(from_sparse.support_vectors_), X[from_sparse.support_])


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_precomputed_gives_the_answer_of_its_kernel(Machine, kernel):
    X, y = wine()
    parameters = {"gamma": 0.05, **KERNELS[kernel]}
    direct = Machine(tol=1e-6, **parameters).fit(X[:120], y[:120])
    K = kernel_matrix(X, X[:120], kernel, gamma=parameters["gamma"], degree=direct.degree, coef0=direct.coef0)
    machine = Machine(kernel="precomputed", tol=1e-6).fit(K[:120], y[:120])
    expected = scores(direct, X)
    np.testing.assert_allclose(scores(machine, K), expected, atol=1e-5 * max(1.0, np.abs(expected).max()))
    np.testing.assert_array_equal(machine.predict(K), direct.predict(X))
    assert machine.n_features_in_ == 120


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("garbage", [np.nan, np.inf, 1e300, -7.0])
def test_precomputed_reads_only_the_support_columns(Machine, garbage):
    X, y = wine()
    K = kernel_matrix(X, X, "linear")
    few = {"basis": "cholesky"} if Machine is SoftmaxSVC else {}  # its other bases take all examples
    machine = Machine(kernel="precomputed", **few).fit(K, y)
    others = np.setdiff1d(np.arange(len(X)), machine.support_)
    assert len(others) > 10
    K_test = K.copy()
    K_test[:, others] = garbage
    np.testing.assert_array_equal(machine.decision_function(K_test), machine.decision_function(K))
    np.testing.assert_array_equal(machine.predict(K_test), machine.predict(K))


@pytest.mark.parametrize("Machine", MACHINES)
def test_precomputed_refuses_nan_in_a_support_column(Machine):
    X, y = wine()
    K = kernel_matrix(X, X, "linear")
    machine = Machine(kernel="precomputed").fit(K, y)
    column = machine.support_[-1]
    K[3, column] = np.nan
    with pytest.raises(ValueError, match=f"NaN at row 3, column {column};"):
        machine.predict(K)


@pytest.mark.parametrize("Machine", MACHINES)
def test_callable_kernel(Machine):
    X, y = wine()
    machine = Machine(kernel=pairwise_rbf, tol=1e-6).fit(X[:120], y[:120])
    expected = Machine(kernel="rbf", gamma=0.05, tol=1e-6).fit(X[:120], y[:120])
    np.testing.assert_allclose(scores(machine, X), scores(expected, X), atol=1e-5)
    assert machine.n_features_in_ == X.shape[1]


@pytest.mark.parametrize("Machine", MACHINES)
def test_callable_kernel_gets_sparse_rows_as_they_are(Machine):
    X, y = digits(200)
    machine = Machine(kernel=plain_linear, tol=1e-6).fit(sparse.csr_matrix(X), y)
    expected = Machine(kernel="linear", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(scores(machine, sparse.csr_matrix(X)), scores(expected, X), atol=1e-4)


@pytest.mark.parametrize("Machine", MACHINES)
def test_callable_kernel_of_the_wrong_shape_is_refused(Machine):
    X, y = iris()
    with pytest.raises(ValueError, match="shape"):
        Machine(kernel=lambda A, B: np.ones((len(A), 2))).fit(X, y)


@pytest.mark.parametrize("Machine", MACHINES)
def test_what_a_callable_kernel_raises_arrives(Machine):
    def broken(A, B):
        raise ZeroDivisionError("from the kernel")

    with pytest.raises(ZeroDivisionError, match="from the kernel"):
        Machine(kernel=broken).fit(*iris())


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_float32_is_kept_and_close_to_float64(Machine, kernel, container):
    X, y = digits(300)
    X = X.astype(np.float32)
    single = Machine(tol=1e-5, **KERNELS[kernel]).fit(container(X), y)
    double = Machine(tol=1e-5, **KERNELS[kernel]).fit(container(X.astype(np.float64)), y)
    assert single.support_vectors_.dtype == np.float32
    assert double.support_vectors_.dtype == np.float64
    expected = scores(double, container(X.astype(np.float64)))
    np.testing.assert_allclose(scores(single, container(X)), expected, atol=1e-3 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.float16, bool])
def test_other_number_types_are_converted(Machine, dtype):
    X, y = digits(150)
    X = (16 * X).astype(dtype)
    machine = Machine(gamma=0.001).fit(X, y)
    expected = Machine(gamma=0.001).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(scores(machine, X), scores(expected, X.astype(np.float64)), atol=2e-3)


@pytest.mark.parametrize("Machine", MACHINES)
def test_near_equal_points_far_from_the_origin_keep_a_sound_kernel(Machine):
    X, y = iris()
    near, far = 1e-2 * X, 1e-2 * X + 1e3
    expected = Machine(gamma=2000.0, tol=1e-6).fit(near, y)
    machine = Machine(gamma=2000.0, tol=1e-6).fit(far, y)
    np.testing.assert_allclose(scores(machine, far), scores(expected, near), atol=1e-3)
