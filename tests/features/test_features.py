"""Features whose scalar products are the kernel: exactly, or as well as their rank allows."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from reference.data import digits, iris, wine
from reference.kernels import kernel_matrix
from scipy import sparse
from sklearn.pipeline import make_pipeline

from polymargin import CrammerSingerSVC
from polymargin.features import CholeskyFeatures, KernelPCAFeatures, SubsetFeatures

MAPS = [KernelPCAFeatures, SubsetFeatures, CholeskyFeatures]
KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1},
    "rbf": {"kernel": "rbf", "gamma": 0.05},
}


def plain(A, B, kernel="rbf", gamma=1.0, degree=3, coef0=0.0):
    return kernel_matrix(A, B, kernel, gamma=gamma, degree=degree, coef0=coef0)


def callable_rbf(A, B):
    """A kernel that a person might write."""
    return kernel_matrix(A, B, "rbf", gamma=0.05)


@pytest.mark.parametrize("Map", MAPS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_full_rank_reproduces_the_gram_matrix(Map, kernel, container):
    X, _ = wine()
    K = plain(X, X, **KERNELS[kernel])
    features = Map(**KERNELS[kernel])
    Z = features.fit_transform(container(X))
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-8 * np.abs(K).max())
    np.testing.assert_allclose(features.transform(container(X)), Z, atol=1e-6 * np.abs(Z).max())


@pytest.mark.parametrize("Map", MAPS)
def test_features_of_new_examples_have_the_kernel_with_training_examples(Map):
    X, _ = wine()
    features = Map(gamma=0.05).fit(X[:100])
    product = features.transform(X[100:]) @ features.transform(X[:100]).T
    np.testing.assert_allclose(product, plain(X[100:], X[:100], gamma=0.05), atol=1e-8)


@pytest.mark.parametrize("Map", MAPS)
@pytest.mark.parametrize("rank", [1, 7, 60])
def test_the_basis_is_orthonormal_and_as_large_as_asked_for(Map, rank):
    X, _ = wine()
    features = Map(rank, gamma=0.05).fit(X)
    A, points = features.coefficients_, features.points_
    assert A.shape[1] == rank
    np.testing.assert_allclose(A.T @ plain(points, points, gamma=0.05) @ A, np.eye(rank), atol=1e-8)
    np.testing.assert_array_equal(points, X[features.indices_])
    assert len(features.get_feature_names_out()) == rank
    assert features.get_feature_names_out()[0] == f"{Map.__name__.lower()}0"


@pytest.mark.parametrize("Map", MAPS)
def test_more_rank_is_a_better_approximation_from_below(Map):
    X, _ = digits(300)
    K = plain(X, X, gamma=0.02)
    traces = []
    for rank in (5, 20, 80, 300):
        Z = Map(rank, gamma=0.02).fit_transform(X)
        assert np.linalg.eigvalsh(K - Z @ Z.T).min() > -1e-8
        traces.append(np.trace(K - Z @ Z.T))
    assert traces == sorted(traces, reverse=True)
    assert traces[-1] < 1e-8


def test_principal_components_are_the_best_of_their_rank():
    X, _ = digits(300)
    K = plain(X, X, gamma=0.02)
    values = np.linalg.eigvalsh(K)[::-1]
    Z = KernelPCAFeatures(20, gamma=0.02).fit_transform(X)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=0) ** 2, values[:20], rtol=1e-9)
    assert np.trace(K - Z @ Z.T) == pytest.approx(values[20:].sum(), rel=1e-9)


def test_pivots_have_large_residuals():
    X, _ = digits(400)
    features = CholeskyFeatures(100, gamma=0.02)
    L = features.fit_transform(X)
    residual = np.ones(len(X))
    for column, pivot in enumerate(features.indices_):
        assert residual[pivot] >= 0.5 * residual.max()
        residual -= L[:, column] ** 2
    np.testing.assert_array_equal(np.triu(L[features.indices_], 1), 0.0)


@pytest.mark.parametrize("Map", MAPS)
def test_precomputed_and_callable_kernels_give_the_same_features(Map):
    X, _ = wine()
    K = plain(X, X, gamma=0.05)
    expected = Map(30, gamma=0.05).fit(X[:120]).transform(X)
    precomputed = Map(30, kernel="precomputed").fit(K[:120, :120]).transform(K[:, :120])
    called = Map(30, kernel=callable_rbf).fit(X[:120]).transform(X)
    for got in (precomputed, called):
        np.testing.assert_allclose(got @ got.T, expected @ expected.T, atol=1e-9)


@pytest.mark.parametrize("Map", MAPS)
def test_dependent_and_repeated_examples_give_fewer_features(Map):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    X = np.vstack([X, X, X[:10]])
    linear = Map(kernel="linear").fit(X)
    assert linear.transform(X).shape == (70, 5)
    rbf = Map(gamma=0.3)
    Z = rbf.fit_transform(X)
    assert Z.shape == (70, 30)
    np.testing.assert_allclose(Z @ Z.T, plain(X, X, gamma=0.3), atol=1e-8)


@pytest.mark.parametrize("Map", MAPS)
def test_constant_and_zero_examples(Map):
    assert Map(gamma=1.0).fit_transform(np.ones((6, 2))).shape == (6, 1)
    np.testing.assert_array_equal(Map(kernel="linear").fit_transform(np.zeros((6, 2))), np.zeros((6, 1)))


@pytest.mark.parametrize("Map", MAPS)
def test_a_kernel_that_is_not_positive_leaves_its_negative_part_out(Map):
    X, _ = wine()
    Z = Map(kernel="sigmoid", gamma=0.1, coef0=-0.5).fit_transform(X)
    assert np.isfinite(Z).all()
    assert Z.shape[1] < len(X)


@pytest.mark.parametrize("Map", MAPS)
def test_single_precision_stays_single(Map):
    X, _ = digits(300)
    features = Map(40, gamma=0.02)
    Z = features.fit_transform(X.astype(np.float32))
    assert Z.dtype == features.transform(X.astype(np.float32)).dtype == np.float32
    exact = Map(40, gamma=0.02).fit_transform(X)
    assert exact.dtype == np.float64
    np.testing.assert_allclose(Z @ Z.T, exact @ exact.T, atol=1e-4)


@pytest.mark.parametrize("Map", MAPS)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_threads_change_no_bit(Map, container):
    X, _ = digits()
    bits = set()
    for n_jobs in (1, 2, 4):
        features = Map(30, gamma=0.02, n_jobs=n_jobs)
        Z = features.fit_transform(container(X[:700]))
        bits.add(Z.tobytes() + features.transform(container(X)).tobytes())
    assert len(bits) == 1


def test_the_subset_is_chosen_by_its_parameters():
    X, _ = digits(200)
    np.testing.assert_array_equal(SubsetFeatures(9, choice="first").fit(X).indices_, np.arange(9))
    same, again, other = (SubsetFeatures(9, random_state=seed).fit(X).indices_ for seed in (None, None, 1))
    np.testing.assert_array_equal(same, again)
    assert not np.array_equal(same, other)


@pytest.mark.parametrize("Map", [SubsetFeatures, CholeskyFeatures])
def test_low_rank_takes_no_square_of_the_examples(Map):
    X = np.random.default_rng(0).normal(size=(12_000, 3))
    tracemalloc.start()
    try:
        Map(20, gamma=0.5).fit(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(X) ** 2 / 20


@pytest.mark.parametrize("Map", MAPS)
def test_too_little_memory_is_said_before_it_is_taken(Map, monkeypatch):
    monkeypatch.setattr("polymargin.features.basis.available_bytes", lambda: 10**8)
    with pytest.raises(MemoryError, match="rank"):
        Map().fit(np.random.default_rng(0).normal(size=(7000, 2)))


@pytest.mark.parametrize("Map", MAPS)
def test_before_a_linear_machine_they_make_a_kernel_machine(Map):
    X, y = iris()
    pipeline = make_pipeline(Map(gamma=0.3), CrammerSingerSVC(kernel="linear", tol=1e-7)).fit(X, y)
    machine = CrammerSingerSVC(gamma=0.3, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(pipeline.decision_function(X), machine.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("Map", MAPS)
def test_a_pickled_map_is_the_same_map(Map):
    X, _ = iris()
    features = Map(10).fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features)).transform(X), features.transform(X))


# Bad input


@pytest.mark.parametrize("Map", MAPS)
@pytest.mark.parametrize(
    ("name", "value"),
    [("rank", 0), ("rank", 2.5), ("kernel", "gauss"), ("gamma", -1.0), ("gamma", "x"), ("degree", -1), ("coef0", "a")],
)
def test_a_wrong_parameter_is_named(Map, name, value):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        Map(**{name: value}).fit(iris()[0])


def test_a_wrong_choice_is_named():
    with pytest.raises(ValueError, match="choice"):
        SubsetFeatures(choice="last").fit(iris()[0])


@pytest.mark.parametrize("Map", MAPS)
def test_values_that_are_no_numbers_are_named_and_change_nothing(Map):
    X, _ = iris()
    features = Map(10).fit(X)
    before = copy.deepcopy(vars(features))
    X[7, 2] = np.nan
    for call in (features.fit, features.transform, features.fit_transform):
        with pytest.raises(ValueError, match="row 7, column 2"):
            call(X)
    assert vars(features).keys() == before.keys()
    np.testing.assert_array_equal(features.coefficients_, before["coefficients_"])


@pytest.mark.parametrize("Map", MAPS)
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_a_huge_value_is_named_or_gives_finite_features(Map, kernel):
    X, _ = iris()
    X[7, 2] = 1e200
    try:
        Z = Map(kernel=kernel, gamma=0.1).fit_transform(X)
    except ValueError as error:
        assert "row 7, column 2" in str(error)  # noqa: PT017
    else:
        assert np.isfinite(Z).all()


@pytest.mark.parametrize("Map", MAPS)
def test_a_precomputed_kernel_must_be_square(Map):
    with pytest.raises(ValueError, match="square"):
        Map(kernel="precomputed").fit(np.ones((6, 5)))
