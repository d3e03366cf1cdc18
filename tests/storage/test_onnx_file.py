"""ONNX graphs: onnxruntime gives the labels, probabilities and scores of the machine."""

import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from reference.data import iris, random_classes
from reference.kernels import kernel_matrix
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs

from polymargin import (
    CrammerSingerSVC,
    LeeLinWahbaSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    SoftmaxSVC,
    TotalMaximumSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)
from polymargin.storage import export_onnx, import_libsvm

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
    "coupling": OneVsOneSVC(decision="coupling"),
    "one-vs-rest": OneVsRestSVC(),
    "weston-watkins": WestonWatkinsSVC(),
    "crammer-singer": CrammerSingerSVC(),
    "lee-lin-wahba": LeeLinWahbaSVC(),
    "total-maximum": TotalMaximumSVC(bias="free"),
    "uncertainty": UncertaintySVC(min_distance=np.inf),
    "uncertainty by margins": UncertaintySVC(min_distance=np.inf, answers="margins"),
    "codes": OutputCodeSVC(code="sparse"),
    "codes by loss": OutputCodeSVC(code="sparse", decoding="loss"),
    "linear-program": LinearProgramSVC(),
    "sigmoids": OneVsRestSVC(calibration="sigmoid"),
    "temperature": OutputCodeSVC(code="sparse", decoding="loss", calibration="temperature"),
    "softmax": SoftmaxSVC(),
    "softmax-one-vs-rest": SoftmaxSVC(strategy="one-vs-rest"),
}


def run(machine, X, folder, dtype="float64"):
    """Return what the graph gives, by the names of its outputs."""
    export_onnx(machine, folder / "machine.onnx", dtype=dtype)
    session = onnxruntime.InferenceSession(str(folder / "machine.onnx"), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": np.ascontiguousarray(X, dtype=dtype)}), strict=True))


def agrees(machine, X, folder, dtype="float64"):
    """Compare every label, probability and score; the machine shall give scores to the last bits, not to ``tol``."""
    found = run(machine, X, folder, dtype)
    machine.set_params(tol=1e-12)
    expected = {"label": machine.predict(X)}
    if hasattr(machine, "predict_proba"):
        expected["probabilities"] = machine.predict_proba(X)
    expected["scores"] = machine.decision_function(X)
    assert list(found) == list(expected)
    np.testing.assert_array_equal(found["label"], expected["label"])
    for name in list(found)[1:]:
        assert found[name].dtype == dtype
        assert found[name].shape == expected[name].shape
        close = 1e-6 if name == "probabilities" else 1e-5
        np.testing.assert_allclose(found[name], expected[name], rtol=close, atol=close)


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MACHINES)
def test_labels_and_scores_are_those_of_the_machine(name, kernel, k, tmp_path):
    X, y = make_blobs(30 * k, n_features=5, centers=k, center_box=(-2, 2), random_state=k)
    machine = clone(MACHINES[name]).set_params(kernel=kernel, **KERNELS[kernel]).fit(X, 10 * y - 20)
    agrees(machine, np.random.default_rng(0).normal(scale=2, size=(ROWS, 5)), tmp_path)


@pytest.mark.parametrize("labels", [["a", "b", "ö"], [1.0, 2.0, -3.0], [True, False]])
@pytest.mark.parametrize("name", ["votes", "coupling", "softmax"])
def test_labels_of_other_types(name, labels, tmp_path):
    X, y = iris()
    X, y = X[y < len(labels)], y[y < len(labels)]
    agrees(clone(MACHINES[name]).fit(X, np.array(labels)[y]), X, tmp_path)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("name", MACHINES)
def test_single_precision_rounds_the_input_and_the_results_alone(name, k, tmp_path):
    X, y = make_blobs(40 * k, n_features=5, centers=k, center_box=(-2, 2), random_state=k)
    machine = clone(MACHINES[name]).fit(X, y)
    agrees(machine, X.astype(np.float32), tmp_path, "float32")


@pytest.mark.parametrize("k", [12, 30])
def test_probabilities_of_many_classes_and_of_sure_pairs(k, tmp_path):
    X, y = make_blobs(12 * k, n_features=6, centers=k, center_box=(-4, 4), random_state=k)
    machine = OneVsOneSVC(decision="coupling", C=10.0).fit(X, y)
    machine.probA_ = 20.0 * machine.probA_
    assert machine.predict_proba(X).min() < 1e-7
    agrees(machine, np.vstack([X, 5 * X]), tmp_path)


def test_probabilities_that_are_next_to_nothing(tmp_path):
    X, y = iris()
    machine = SoftmaxSVC(strategy="one-vs-rest", kernel="linear", C=100.0).fit(X, y)
    machine.intercept_ = machine.intercept_ - 400.0  # no class is likely, only exponents are left
    assert machine.decision_function(X).max() < -350
    agrees(machine, X, tmp_path)


def test_data_far_from_zero_keep_their_digits(tmp_path):
    X, y = iris()
    agrees(OneVsOneSVC().fit(X + 1e5, y), X + 1e5, tmp_path)


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1), (1, 2), (2, 1)], ids=str)
def test_values_of_zero_are_votes_as_in_the_machine(order, tmp_path):
    k = len(order)
    lines = ["svm_type c_svc", "kernel_type linear", f"nr_class {k}", f"total_sv {k}", "rho" + k * (k - 1) // 2 * " 0"]
    lines += [f"label {' '.join(map(str, order))}", "nr_sv" + k * " 1", "SV"]
    lines += ["1 1 1:1", "-1 1 2:1", "-1 -1 3:1"] if k == 3 else ["1 1:1", "-1 2:1"]
    (tmp_path / "zero").write_text("\n".join(lines) + "\n")
    X = np.array(list(product([-1.0, 0.0, 1.0], repeat=k)))
    agrees(import_libsvm(tmp_path / "zero"), X, tmp_path)


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
    machine.model_ = replace(machine.model_, class_order=np.array([5, 3, 1, 0, 2, 4]))
    assert (machine.predict(X) != before).any()
    agrees(machine, X, tmp_path)


def test_no_rows(tmp_path):
    for decision in ("dag", "coupling"):
        found = run(OneVsOneSVC(decision=decision).fit(*iris()), np.empty((0, 4)), tmp_path)
        assert found.pop("label").shape == (0,)
        assert {values.shape for values in found.values()} == {(0, 3)}


def test_what_has_no_graph_is_refused(tmp_path, monkeypatch):
    X, y = iris()
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        export_onnx(OneVsOneSVC(kernel=lambda A, B: A @ B.T).fit(X, y), tmp_path / "m")
    with pytest.raises(ValueError, match="dtype must be one of 'float64', 'float32', got 'float16'"):
        export_onnx(OneVsOneSVC().fit(X, y), tmp_path / "m", dtype="float16")
    with pytest.raises(ValueError, match="calibration='isotonic': fit with 'sigmoid' or 'temperature'"):
        export_onnx(OneVsRestSVC(calibration="isotonic").fit(X, y), tmp_path / "m")
    with pytest.raises(TypeError, match="not dict"):
        export_onnx({}, tmp_path / "m")
    with pytest.raises(ValueError, match="not fitted"):
        export_onnx(OneVsOneSVC(), tmp_path / "m")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="needs the package onnx"):
        export_onnx(OneVsOneSVC().fit(X, y), tmp_path / "m")
    assert not list(tmp_path.iterdir())
