"""ONNX graphs: onnxruntime gives the labels and scores of the machine."""

import sys

import numpy as np
import pytest
from reference.data import iris, random_classes
from reference.kernels import kernel_matrix
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs

from polymargin import (
    CrammerSingerSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    SoftmaxSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)
from polymargin.storage import export_onnx

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

ROWS = 10_000
KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.3, "coef0": 1.0, "degree": 3},
    "rbf": {"gamma": 0.2},
    "sigmoid": {"gamma": 0.01, "coef0": -0.1},
}
MACHINES = {
    "votes": OneVsOneSVC(),
    "dag": OneVsOneSVC(decision="dag"),
    "adag": OneVsOneSVC(decision="adag"),
    "one-vs-rest": OneVsRestSVC(),
    "weston-watkins": WestonWatkinsSVC(),
    "crammer-singer": CrammerSingerSVC(),
    "uncertainty": UncertaintySVC(min_distance=np.inf),
    "uncertainty by margins": UncertaintySVC(min_distance=np.inf, answers="margins"),
    "linear-program": LinearProgramSVC(),
    "softmax": SoftmaxSVC(),
    "softmax-one-vs-rest": SoftmaxSVC(strategy="one-vs-rest"),
}


def run(machine, X, folder):
    export_onnx(machine, folder / "machine.onnx")
    session = onnxruntime.InferenceSession(str(folder / "machine.onnx"), providers=["CPUExecutionProvider"])
    return session.run(["label", "scores"], {"X": np.ascontiguousarray(X, dtype=np.float64)})


def agrees(machine, X, folder):
    """Compare every label and score; the machine shall give scores to the last bits, not to ``tol``."""
    labels, scores = run(machine, X, folder)
    machine.set_params(tol=1e-12)
    expected = machine.decision_function(X)
    np.testing.assert_array_equal(labels, machine.predict(X))
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
    assert scores.shape == expected.shape


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MACHINES)
def test_labels_and_scores_are_those_of_the_machine(name, kernel, k, tmp_path):
    X, y = make_blobs(30 * k, n_features=5, centers=k, center_box=(-2, 2), random_state=k)
    machine = clone(MACHINES[name]).set_params(kernel=kernel, **KERNELS[kernel]).fit(X, 10 * y - 20)
    agrees(machine, np.random.default_rng(0).normal(scale=2, size=(ROWS, 5)), tmp_path)


@pytest.mark.parametrize("labels", [["a", "b", "ö"], [1.0, 2.0, -3.0]])
def test_labels_of_other_types(labels, tmp_path):
    X, y = iris()
    agrees(OneVsOneSVC().fit(X, np.array(labels)[y]), X, tmp_path)


def test_sparse_vectors_and_weights_of_features(tmp_path):
    X, y = random_classes(4, n=1500, n_features=6)
    thin = X * (X > 0)
    for machine in (OneVsRestSVC(), CrammerSingerSVC(kernel="linear"), OneVsOneSVC(kernel="linear")):
        agrees(machine.fit(sparse.csr_matrix(thin), y), thin, tmp_path)


def test_a_precomputed_kernel(tmp_path):
    X, y = iris()
    K = kernel_matrix(X, X, "rbf", gamma=0.3)
    agrees(OneVsOneSVC(kernel="precomputed").fit(K, y), K, tmp_path)


def test_ties_of_an_imported_machine(tmp_path):
    X, y = random_classes(6, n=300, n_features=3, seed=1)
    machine = OneVsOneSVC(kernel="linear").fit(X, y)
    before = machine.predict(X)
    machine._tie_order = np.array([5, 3, 1, 0, 2, 4])
    assert (machine.predict(X) != before).any()
    agrees(machine, X, tmp_path)


def test_no_rows(tmp_path):
    labels, scores = run(OneVsOneSVC(decision="dag").fit(*iris()), np.empty((0, 4)), tmp_path)
    assert labels.shape == (0,)
    assert scores.shape == (0, 3)


def test_what_has_no_graph_is_refused(tmp_path, monkeypatch):
    X, y = iris()
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        export_onnx(OneVsOneSVC(kernel=lambda A, B: A @ B.T).fit(X, y), tmp_path / "m")
    with pytest.raises(ValueError, match=r"set_params\(decision='votes'\)"):
        export_onnx(OneVsOneSVC(decision="coupling").fit(X, y), tmp_path / "m")
    with pytest.raises(TypeError, match="not dict"):
        export_onnx({}, tmp_path / "m")
    with pytest.raises(ValueError, match="not fitted"):
        export_onnx(OneVsOneSVC(), tmp_path / "m")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="needs the package onnx"):
        export_onnx(OneVsOneSVC().fit(X, y), tmp_path / "m")
    assert not list(tmp_path.iterdir())
