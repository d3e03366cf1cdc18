"""The Laplacian kernel in every machine and tool: against scikit-learn's function, given as a function."""

import numpy as np
import pytest
from reference.data import iris, overlapping
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import polymargin
from polymargin import OneVsOneSVC, certify, load_model, save_model
from polymargin.features import CholeskyFeatures, KernelPCAFeatures, SubsetFeatures
from polymargin.selection import KernelSearchCV
from polymargin.storage import export_libsvm, export_onnx

MACHINES = [getattr(polymargin, name) for name in polymargin.__all__ if name.endswith("SVC")]
GAMMA = 0.3
KINDS = pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "csr"])
TYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
X, y = iris()


def function(A, B):
    return laplacian_kernel(A, B, gamma=GAMMA)


@pytest.mark.parametrize("Machine", MACHINES)
@KINDS
@TYPES
def test_every_machine_is_optimal(Machine, make, dtype):
    data = make(X.astype(dtype))
    machine = Machine(kernel="laplacian", gamma=GAMMA, tol=1e-4).fit(data, y)
    assert machine.converged_
    assert machine.duality_gap_ <= 1e-4
    named = Machine(kernel=function, tol=1e-4).fit(data, y)
    assert machine.primal_objective_ == pytest.approx(named.primal_objective_, rel=2e-4)
    np.testing.assert_allclose(machine.decision_function(data), named.decision_function(data), atol=0.05)
    if Machine.__name__ not in ("SoftmaxSVC", "GenSVC"):
        assert certify(machine, data, y).duality_gap <= 1e-3


@KINDS
def test_one_against_one_is_scikit_learns(make):
    data = make(X)
    ours = OneVsOneSVC(kernel="laplacian", gamma=GAMMA, tol=1e-6).fit(data, y)
    theirs = SVC(kernel=function, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(ours.predict(data), theirs.predict(X))
    np.testing.assert_array_equal(np.sort(ours.support_), np.sort(theirs.support_))


@TYPES
def test_many_examples_in_single_precision(dtype):
    """More examples than are solved in double precision, far from the origin."""
    rng = np.random.default_rng(3)
    data = rng.normal(size=(1500, 10)).astype(dtype) + dtype(1000)
    labels = (np.abs(data - 1000).sum(axis=1) > 8).astype(int)
    machine = OneVsOneSVC(kernel="laplacian", gamma=0.1, C=10).fit(data, labels)
    assert machine.duality_gap_ <= 1e-3
    assert certify(machine, data, labels).duality_gap <= 2e-3
    values = laplacian_kernel(data.astype(float), machine.support_vectors_.astype(float), gamma=0.1)
    expected = values @ machine.dual_coef_[0] + machine.intercept_
    np.testing.assert_allclose(machine.decision_function(data), expected, atol=1e-3)


@pytest.mark.parametrize("Features", [KernelPCAFeatures, CholeskyFeatures, SubsetFeatures])
@KINDS
def test_features_give_back_the_kernel(Features, make):
    Z = Features(kernel="laplacian", gamma=GAMMA).fit_transform(make(X))
    np.testing.assert_allclose(Z @ Z.T, function(X, X), atol=1e-7)


@KINDS
def test_search_is_scikit_learns(make):
    data, labels = overlapping()
    grid = {"C": [0.5, 5.0], "gamma": [0.05, 0.2, 1.0]}
    ours = KernelSearchCV(OneVsOneSVC(kernel="laplacian"), grid, cv=3).fit(make(data), labels)
    theirs = GridSearchCV(OneVsOneSVC(kernel="laplacian"), grid, cv=3).fit(make(data), labels)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.011)


def test_models_on_disk(tmp_path):
    machine = OneVsOneSVC(kernel="laplacian").fit(X, y)
    save_model(machine, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").decision_function(X), machine.decision_function(X))
    with pytest.raises(ValueError, match="LIBSVM has no kernel 'laplacian', only linear, polynomial"):
        export_libsvm(machine, tmp_path / "model.txt")


@pytest.mark.parametrize("n_features", [3, 150])
def test_onnx(tmp_path, n_features):
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(4)
    data, labels = rng.normal(size=(90, n_features)), np.arange(90) % 3
    machine = OneVsOneSVC(kernel="laplacian").fit(data, labels)
    export_onnx(machine, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    label, scores = session.run(None, {session.get_inputs()[0].name: data})[:2]
    np.testing.assert_array_equal(label, machine.predict(data))
    np.testing.assert_allclose(scores, machine.decision_function(data), atol=1e-10)


def test_labels_do_not_depend_on_the_rows_beside_them():
    machine = OneVsOneSVC(kernel="laplacian", gamma=GAMMA).fit(X, y)
    alone = np.concatenate([machine.predict(row[None]) for row in X])
    np.testing.assert_array_equal(alone, machine.predict(X))
