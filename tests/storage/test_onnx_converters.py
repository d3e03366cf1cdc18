"""skl2onnx knows the machines: pipelines with them become graphs that onnxruntime runs with the same answers."""

import sys

import numpy as np
import pandas as pd
import pytest
from reference.data import digits, iris, wine
from reference.kernels import kernel_matrix
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from polymargin import (
    CrammerSingerSVC,
    LeeLinWahbaSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    SoftmaxSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
    estimators,
)
from polymargin.storage import register_onnx_converters

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")

MACHINES = {
    "votes": OneVsOneSVC(),
    "dag": OneVsOneSVC(decision="dag"),
    "adag": OneVsOneSVC(decision="adag"),
    "coupling": OneVsOneSVC(decision="coupling"),
    "one-vs-rest": OneVsRestSVC(),
    "weston-watkins": WestonWatkinsSVC(),
    "crammer-singer": CrammerSingerSVC(kernel="linear"),
    "lee-lin-wahba": LeeLinWahbaSVC(),
    "linear-program": LinearProgramSVC(),
    "uncertainty": UncertaintySVC(),
    "softmax": SoftmaxSVC(),
    "softmax-one-vs-rest": SoftmaxSVC(strategy="one-vs-rest", kernel="poly", degree=2, coef0=1.0),
}
DATA = {"iris": iris, "wine": wine, "digits": lambda: digits(300), "two": lambda: tuple(a[:100] for a in iris())}
# What single precision may change: the scaler in front of the machine computes in it.
CLOSE = {"float64": 1e-6, "float32": 1e-3}


@pytest.fixture(autouse=True)
def registered():
    register_onnx_converters()


def outcome(estimator, X, **options):
    """Return what the graph of an estimator gives, by the names of its outputs."""
    model = skl2onnx.to_onnx(estimator, X[:1], **options)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": X}), strict=True))


def agrees(estimator, X, close=1e-6, **options):
    """Compare labels, where the classes are not closer than numbers may be, and the second output."""
    found = outcome(estimator, X, **options)
    expected = {"label": estimator.predict(X.astype(np.float64))}
    if hasattr(estimator, "predict_proba"):
        expected["probabilities"] = estimator.predict_proba(X.astype(np.float64))
    else:
        expected["scores"] = estimator.decision_function(X.astype(np.float64))
    assert list(found) == list(expected)
    second = list(found)[1]
    assert found[second].dtype == X.dtype
    assert found[second].shape == expected[second].shape
    scores = expected[second]
    margin = np.abs(scores) if scores.ndim == 1 else np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
    sure = margin > 10 * close
    assert sure.mean() > 0.95
    np.testing.assert_array_equal(found["label"][sure], expected["label"][sure])
    np.testing.assert_allclose(found[second][sure], scores[sure], rtol=close, atol=close)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", MACHINES)
def test_pipelines(name, data, dtype):
    X, y = DATA[data]()
    X = 3.0 * X + 1.0
    pipeline = make_pipeline(StandardScaler(), clone(MACHINES[name])).fit(X, y)
    agrees(pipeline, X.astype(dtype), CLOSE[dtype])


@pytest.mark.parametrize("name", MACHINES)
def test_machines_alone(name):
    X, y = wine()
    agrees(clone(MACHINES[name]).fit(X, y), X)


@pytest.mark.parametrize("labels", [["a", "b", "ö"], [1.0, 2.0, -3.0], [7, -1, 2**40], [True, False]])
@pytest.mark.parametrize("name", ["votes", "coupling", "one-vs-rest", "softmax"])
def test_labels_of_every_type(name, labels):
    X, y = iris()
    X, y = X[y < len(labels)], y[y < len(labels)]
    agrees(make_pipeline(StandardScaler(), clone(MACHINES[name])).fit(X, np.array(labels)[y]), X)


@pytest.mark.parametrize("name", ["coupling", "softmax"])
@pytest.mark.parametrize("k", [2, 3])
def test_scores_instead_of_probabilities(name, k):
    X, y = (part[: 50 * k] for part in iris())
    machine = clone(MACHINES[name]).fit(X, y)
    found = outcome(machine, X, options={type(machine): {"raw_scores": True}})
    assert list(found) == ["label", "scores"]
    np.testing.assert_allclose(found["scores"], machine.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("zipmap", [True, False])
def test_results_are_tensors_whatever_zipmap_says(zipmap):
    X, y = iris()
    pipeline = make_pipeline(StandardScaler(), OneVsOneSVC(decision="coupling")).fit(X, y)
    agrees(pipeline, X, options={"zipmap": zipmap})
    agrees(pipeline[-1], X, options={OneVsOneSVC: {"zipmap": zipmap}})


def test_whole_numbers_and_precomputed_kernels():
    X, y = digits(200)
    machine = OneVsOneSVC(decision="coupling").fit(np.round(16 * X), y)
    whole = np.round(16 * X).astype(np.int64)
    found = outcome(machine, whole)
    np.testing.assert_array_equal(found["label"], machine.predict(whole))
    np.testing.assert_allclose(found["probabilities"], machine.predict_proba(whole), atol=1e-6)
    assert found["probabilities"].dtype == np.float32
    X, y = iris()
    K = kernel_matrix(X, X, "rbf", gamma=0.3)
    agrees(OneVsOneSVC(kernel="precomputed").fit(K, y), K)


def test_columns_of_a_table():
    X, y = iris()
    names = ["a", "b", "c", "d"]
    table = pd.DataFrame(X, columns=names)
    columns = ColumnTransformer([("scaled", StandardScaler(), ["a", "c"]), ("ranged", MinMaxScaler(), ["b"])])
    pipeline = make_pipeline(columns, SoftmaxSVC()).fit(table, y)
    model = skl2onnx.to_onnx(pipeline, table[:1])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = {value.name for value in session.get_inputs()}
    label, probabilities = session.run(None, {name: table[[name]].to_numpy() for name in names if name in wanted})
    np.testing.assert_array_equal(label, pipeline.predict(table))
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(table), atol=1e-6)


def test_several_machines_in_one_graph():
    X, y = iris()
    members = [("one", OneVsOneSVC(decision="coupling")), ("two", SoftmaxSVC()), ("three", LogisticRegression())]
    vote = VotingClassifier(members, voting="soft", flatten_transform=False).fit(X, y)
    label, probabilities = outcome(vote, X, options={"zipmap": False}).values()
    np.testing.assert_array_equal(label, vote.predict(X))
    np.testing.assert_allclose(probabilities, vote.predict_proba(X), atol=1e-6)


def test_every_public_machine_is_registered():
    from skl2onnx._supported_operators import sklearn_operator_name_map

    for name in estimators.__all__:
        assert sklearn_operator_name_map[getattr(estimators, name)] == f"Polymargin{name}"


def test_what_has_no_graph_is_refused(monkeypatch):
    X, y = iris()
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        skl2onnx.to_onnx(OneVsOneSVC(kernel=lambda A, B: A @ B.T).fit(X, y), X)
    with pytest.raises(ValueError, match="target_opset must be 13 or later, got 12"):
        skl2onnx.to_onnx(OneVsOneSVC().fit(X, y), X, target_opset=12)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match="needs the package skl2onnx") as caught:
        register_onnx_converters()
    assert 'pip install "polymargin[onnx]"' in caught.value.__notes__[0]
