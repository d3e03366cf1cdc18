"""Machines saved and loaded: the same to the last bit, or a refusal that says where the file is wrong."""

import copy
import itertools
import json
import pickle
from dataclasses import fields, is_dataclass

import joblib
import numpy as np
import pandas as pd
import pytest
from reference.compare import scores
from reference.data import digits, iris, wine
from reference.kernels import kernel_matrix
from reference.mutations import mutated, outcome
from safetensors.numpy import load, save
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import polymargin
from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, load_model, save_model
from polymargin.models import LinearModel
from polymargin.storage.safetensors_file import _digest, _header_digest

MACHINES = [getattr(polymargin, name) for name in polymargin.__all__ if name.endswith("SVC")]
LABELS = {
    "int": np.array([-5, 0, 7]),
    "int32": np.array([1, 2, 3], dtype=np.int32),
    "uint8": np.array([1, 2, 255], dtype=np.uint8),
    "float": np.array([-1.0, 1.0, 4.0]),
    "large": np.array([np.iinfo(np.int64).min, 0, 2**62]),
    "str": np.array(["b", "ä", "a longer one"]),
    "wide str": np.array(["b", "c", "d"], dtype="<U40"),
    "object": np.array(["b", "\U0001f600", "\ud800 alone"], dtype=object),
}


def same(one, other):
    """Tell whether two fitted attributes are the same: type, shape, order in memory and every bit."""
    if sparse.issparse(one):
        return type(one) is type(other) and all(
            same(getattr(one, part), getattr(other, part)) for part in ("data", "indices", "indptr")
        )
    if isinstance(one, np.ndarray) and one.dtype != object:
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == other.tobytes()
            and one.flags.f_contiguous == other.flags.f_contiguous
        )
    if isinstance(one, np.ndarray):
        return other.dtype == object and one.tolist() == other.tolist()
    if is_dataclass(one) and not isinstance(one, type):
        parts = [field.name for field in fields(one)]
        return type(one) is type(other) and all(same(getattr(one, part), getattr(other, part)) for part in parts)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or one != one)


def round_trip(machine, folder):
    save_model(machine, folder / "machine.safetensors")
    return load_model(folder / "machine.safetensors")


def assert_same_machine(loaded, machine, X):
    assert type(loaded) is type(machine)
    assert vars(loaded).keys() == vars(machine).keys()
    for name, value in vars(machine).items():
        assert same(value, vars(loaded)[name]), name
    np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))
    assert loaded.predict(X).dtype == machine.predict(X).dtype
    assert scores(loaded, X).tobytes() == scores(machine, X).tobytes()


# What comes back


@pytest.mark.parametrize(
    ("Machine", "kernel"),
    [*itertools.product(MACHINES, ["linear", "poly", "rbf"]), (OneVsOneSVC, "sigmoid"), (CrammerSingerSVC, "sigmoid")],
)
def test_every_attribute_and_prediction_comes_back_to_the_last_bit(Machine, kernel, tmp_path):
    X, y = wine()
    machine = Machine(C=3, kernel=kernel, coef0=0.5, degree=2).fit(X[::2], y[::2])
    assert_same_machine(round_trip(machine, tmp_path), machine, X)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("Machine", MACHINES)
def test_two_classes_and_more(Machine, k, tmp_path):
    X, y = iris()
    X, y = X[y < k], y[y < k]
    machine = Machine().fit(X, y)
    assert_same_machine(round_trip(machine, tmp_path), machine, X)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("Machine", MACHINES)
def test_labels_of_every_type_come_back(Machine, labels, tmp_path):
    X, y = iris()
    machine = Machine().fit(X, LABELS[labels][y])
    assert_same_machine(round_trip(machine, tmp_path), machine, X)


@pytest.mark.parametrize("Machine", MACHINES)
def test_boolean_labels_come_back(Machine, tmp_path):
    X, y = iris()
    machine = Machine().fit(X, y == 1)
    assert_same_machine(round_trip(machine, tmp_path), machine, X)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("Machine", MACHINES)
def test_sparse_support_vectors_come_back(Machine, real, container, index, tmp_path):
    X, y = digits(150)
    X = container(X.astype(real))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    machine = Machine().fit(X, y)
    if sparse.issparse(getattr(machine, "support_vectors_", None)):
        vectors = machine.support_vectors_
        vectors.indices, vectors.indptr = vectors.indices.astype(index), vectors.indptr.astype(index)
    assert_same_machine(round_trip(machine, tmp_path), machine, X)


@pytest.mark.parametrize("Machine", MACHINES)
def test_single_precision_stays_single(Machine, tmp_path):
    X, y = digits(150)
    X = X.astype(np.float32)
    machine = Machine().fit(X, y)
    assert_same_machine(round_trip(machine, tmp_path), machine, X)


@pytest.mark.parametrize("Machine", MACHINES)
def test_precomputed_kernels_come_back(Machine, tmp_path):
    X, y = wine()
    K = kernel_matrix(X, X, "rbf", gamma=0.05)
    machine = Machine(kernel="precomputed").fit(K, y)
    assert_same_machine(round_trip(machine, tmp_path), machine, K)


@pytest.mark.parametrize("Machine", MACHINES)
def test_feature_names_come_back(Machine, tmp_path):
    X, y = iris()
    frame = pd.DataFrame(X, columns=["a", "b b", "\u03b3", ""])
    machine = Machine().fit(frame, y)
    loaded = round_trip(machine, tmp_path)
    assert_same_machine(loaded, machine, frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"a": "other"}))


@pytest.mark.parametrize("solver", ["sequential-dual", "cutting-plane"])
@pytest.mark.parametrize("Machine", [OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC])
def test_linear_machines_keep_their_weights(Machine, solver, tmp_path):
    if (Machine, solver) == (OneVsRestSVC, "cutting-plane"):
        solver = "auto"
    X, y = wine()
    machine = Machine(kernel="linear", solver=solver, bias="regularized").fit(X, y)
    assert isinstance(machine.model_, LinearModel)
    loaded = round_trip(machine, tmp_path)
    assert_same_machine(loaded, machine, X)
    assert same(loaded.coef_, machine.coef_)


def test_sparse_coefficients_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr("polymargin.formulations.linear._DENSE", 10)
    X, y = wine()
    machine = CrammerSingerSVC(kernel="linear", solver="sequential-dual").fit(X, y)
    assert sparse.issparse(machine.dual_coef_)
    assert_same_machine(round_trip(machine, tmp_path), machine, X)


@pytest.mark.parametrize("Machine", [OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC])
def test_parameters_come_back_with_their_types(Machine, tmp_path):
    X, y = wine()
    weight = {0: 1.0, np.int64(1): np.float32(2.5), 2: 3}
    given = {"C": np.inf, "gamma": np.float64(0.1), "class_weight": weight, "time_limit": 1e3, "max_iter": 10**6}
    machine = Machine(**given).fit(X, y)
    params = round_trip(machine, tmp_path).get_params()
    assert params == machine.get_params()
    assert params["C"] == float("inf")
    assert list(params["class_weight"]) == [0, 1, 2]


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_loaded_machine_can_be_fitted_on(Machine, tmp_path):
    X, y = iris()
    machine = Machine().fit(X, y)
    if "warm_start" in machine.get_params():
        machine.set_params(warm_start=True)
    loaded = round_trip(machine, tmp_path)
    assert all(value.flags.writeable for value in vars(loaded).values() if isinstance(value, np.ndarray))
    assert loaded.set_params(C=2.0).fit(X, y).score(X, y) > 0.9


def test_the_same_model_makes_the_same_file(tmp_path):
    machine = OneVsOneSVC().fit(*iris())
    save_model(machine, tmp_path / "a")
    save_model(load_model(tmp_path / "a"), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_any_reader_of_safetensors_sees_the_arrays(tmp_path):
    X, y = iris()
    machine = OneVsOneSVC().fit(X, y)
    save_model(machine, tmp_path / "machine.safetensors")
    tensors = load((tmp_path / "machine.safetensors").read_bytes())
    np.testing.assert_array_equal(tensors["dual_coef_"], machine.dual_coef_)
    np.testing.assert_array_equal(tensors["support_vectors_"], machine.support_vectors_)


@pytest.mark.parametrize("Machine", MACHINES)
def test_skops_round_trip(Machine, tmp_path):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    X, y = wine()
    machine = Machine().fit(X, y)
    io.dump(machine, tmp_path / "machine.skops")
    loaded = io.load(tmp_path / "machine.skops", trusted=io.get_untrusted_types(file=tmp_path / "machine.skops"))
    assert scores(loaded, X).tobytes() == scores(machine, X).tobytes()


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_loaded_machine_goes_through_joblib_and_pickle(Machine, tmp_path):
    X, y = wine()
    machine = round_trip(Machine().fit(X, y), tmp_path)
    joblib.dump(machine, tmp_path / "machine.joblib")
    for loaded in (joblib.load(tmp_path / "machine.joblib"), pickle.loads(pickle.dumps(machine))):
        assert_same_machine(loaded, machine, X)


# What is not saved


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_python_function_is_refused_with_what_to_do(Machine, tmp_path):
    machine = Machine(kernel=lambda A, B: A @ B.T).fit(*iris())
    with pytest.raises(ValueError, match=r"Python function.*kernel='precomputed'"):
        save_model(machine, tmp_path / "machine")
    assert not list(tmp_path.iterdir())


def test_a_random_state_with_a_state_of_its_own_is_refused(tmp_path):
    machine = OneVsOneSVC(random_state=np.random.RandomState(0)).fit(*iris())
    with pytest.raises(ValueError, match=r"random_state.*set_params"):
        save_model(machine, tmp_path / "machine")


@pytest.mark.parametrize("other", [SVC(), make_pipeline(StandardScaler(), OneVsOneSVC()), None, "text"])
def test_other_objects_are_refused(other, tmp_path):
    with pytest.raises(TypeError, match="machines of polymargin"):
        save_model(other, tmp_path / "machine")


def test_a_subclass_is_refused(tmp_path):
    class OneVsOneSVC(polymargin.OneVsOneSVC):
        pass

    with pytest.raises(TypeError, match="machines of polymargin"):
        save_model(OneVsOneSVC().fit(*iris()), tmp_path / "machine")


@pytest.mark.parametrize("Machine", MACHINES)
def test_unfitted_and_damaged_machines_are_not_saved(Machine, tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save_model(Machine(), tmp_path / "machine")
    machine = Machine().fit(*iris())
    machine.classes_ = machine.classes_[:-1]
    with pytest.raises(ValueError, match="damaged"):
        save_model(machine, tmp_path / "machine")
    assert not list(tmp_path.iterdir())


def test_an_attribute_that_is_not_declared_is_not_lost_in_silence(tmp_path):
    machine = OneVsOneSVC().fit(*iris())
    machine.humidity_ = 1.0
    with pytest.raises(TypeError, match="humidity_"):
        save_model(machine, tmp_path / "machine")


# Bad files


@pytest.fixture(scope="module")
def model_files(tmp_path_factory):
    """The bytes of small model files of every kind, with queries for each."""
    folder = tmp_path_factory.mktemp("models")
    X, y = iris()
    names = np.array(["a", "bb", "c"])
    machines = {
        "dense": (OneVsOneSVC(C=0.1).fit(X, y), X),
        "csr": (WestonWatkinsSVC(class_weight={"a": 1.0, "bb": 2.0, "c": 1.0}).fit(sparse.csr_array(X), names[y]), X),
        "linear": (CrammerSingerSVC(kernel="linear", solver="sequential-dual").fit(X, y), X),
        "precomputed": (OneVsRestSVC(kernel="precomputed").fit(X @ X.T, y), X @ X.T),
    }
    files = {}
    for kind, (machine, queries) in machines.items():
        save_model(machine, folder / kind)
        files[kind] = (folder / kind).read_bytes(), machine, queries
    return files


@pytest.mark.parametrize("kind", ["dense", "csr", "linear", "precomputed"])
def test_a_thousand_mutations_are_refused_or_change_nothing(kind, model_files, tmp_path):
    data, machine, X = model_files[kind]
    expected = scores(machine, X)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(1000):
        (tmp_path / "mutated").write_bytes(mutated(data, rng, b'0123456789-.e"{}[],:nN \\'))
        loaded = outcome(load_model, tmp_path / "mutated")
        if isinstance(loaded, str):
            refused += 1
            assert "mutated is not a sound model file: " in loaded
        else:
            assert scores(loaded, X).tobytes() == expected.tobytes()
    assert refused > 800  # to exchange a line with itself changes nothing


def signed(tensors, header):
    """Return the bytes of a file whose digests are right, whatever is in it."""
    header["digests"] = {name: _digest(tensor) for name, tensor in tensors.items()}
    header["digest"] = _header_digest(header)
    return save(tensors, {"polymargin": json.dumps(header)})


def parts(data):
    """Return the tensors and the header of a file."""
    text = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["polymargin"]
    return {name: tensor.copy() for name, tensor in load(data).items()}, json.loads(text)


SPECIAL = [0, -1, 1, 2**31, 2**63 - 1, -(2**63), 1.5, 1e308, {"float": "nan"}, {"float": "inf"}, None, True, "", "rbf"]
SPECIAL += ["precomputed", "__import__('os')", [], ["csr_array", 1, 1], {"dict": []}, {"dict": [[{"dict": []}, 1]]}, {}]


def tampered(tensors, header, rng):
    """Change one tensor or one entry of the header by intent, as somebody would who signs it anew."""
    if rng.random() < 0.6:
        name = str(rng.choice(sorted(tensors)))
        tensor = tensors[name]
        match int(rng.integers(7)):
            case 0 if tensor.size:
                tensor.flat[rng.integers(tensor.size)] = rng.integers(0, 100)
            case 1 if tensor.size and tensor.dtype.kind == "f":
                tensor.flat[rng.integers(tensor.size)] = rng.choice([np.nan, np.inf, 1e300, -1e300])
            case 2 if tensor.size and tensor.dtype.kind == "i":
                tensor.flat[rng.integers(tensor.size)] = rng.choice([-1, 2**31 - 1, np.iinfo(tensor.dtype).min])
            case 3:
                tensors[name] = tensor.astype(rng.choice(["f4", "f8", "i4", "i8", "u1", "bool"]))
            case 4:
                tensors[name] = tensor.reshape(-1)[: int(rng.integers(tensor.size + 1))].copy()
            case 5:
                tensors[name] = tensor.reshape(tensor.shape[::-1]).copy() if rng.random() < 0.5 else tensor[None].copy()
            case _:
                del tensors[name]
        return
    entry = str(rng.choice([name for name in header if name not in ("digest", "digests")]))
    value = SPECIAL[int(rng.integers(len(SPECIAL)))]
    if isinstance(header[entry], dict) and header[entry] and rng.random() < 0.9:
        header[entry][str(rng.choice(sorted(header[entry])))] = value
    else:
        header[entry] = value


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["dense", "csr", "linear", "precomputed"])
def test_a_thousand_forged_files_are_refused_or_give_a_machine_that_works(kind, model_files, tmp_path):
    data, _, X = model_files[kind]
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(1000):
        tensors, header = copy.deepcopy(parts(data))
        tampered(tensors, header, rng)
        (tmp_path / "forged").write_bytes(signed(tensors, header))
        loaded = outcome(load_model, tmp_path / "forged")
        if isinstance(loaded, str):
            refused += 1
            assert "forged is not a sound model file: " in loaded
            continue
        values = outcome(scores, loaded, X)  # numbers so large that scores overflow are named when they do
        assert "overflow" in values or "too large" in values if isinstance(values, str) else np.isfinite(values).all()
    assert refused > 400


FORGERIES = {
    "a tensor missing": ("'support_'", lambda t, h: t.pop("support_")),
    "a tensor too many": ("'other'", lambda t, h: t.update(other=np.zeros(2))),
    "a wrong shape": ("'intercept_' has shape", lambda t, h: t.update(intercept_=np.zeros(7))),
    "a wrong type": ("'dual_coef_' has type", lambda t, h: t.update(dual_coef_=t["dual_coef_"].astype("f4"))),
    "not a number": ("'dual_coef_' is not finite", lambda t, h: t["dual_coef_"].fill(np.nan)),
    "negative rows": ("'support_' must not be neg", lambda t, h: t["support_"].fill(-1)),
    "a count that is wrong": ("'n_support_' does not", lambda t, h: t["n_support_"].fill(1)),
    "classes not sorted": ("'classes_' must hold", lambda t, h: t.update(classes_=t["classes_"][::-1].copy())),
    "one class": ("'classes_' must hold", lambda t, h: t.update(classes_=t["classes_"][:1].copy())),
    "labels of another type": ("'classes_' has type", lambda t, h: h.update(labels="<i4")),
    "labels that name a type": ("'classes_' has type", lambda t, h: h.update(labels="V8,O")),
    "an unknown machine": ("'machine' must be one of", lambda t, h: h.update(machine="SVC")),
    "a machine from elsewhere": ("'machine' must be one of", lambda t, h: h.update(machine="os.system")),
    "another machine": ("'dual_coef_' has shape", lambda t, h: h.update(machine="CrammerSingerSVC", parameters={})),
    "an unknown parameter": ("'depth' is none of", lambda t, h: h["parameters"].update(depth=1)),
    "a wrong parameter": ("'C' parameter", lambda t, h: h["parameters"].update(C=-1.0)),
    "an unknown kernel": ("'_kernel' is not one", lambda t, h: h["kernel"].update(kind="gaussian")),
    "a kernel without gamma": ("'kernel' must have", lambda t, h: h["kernel"].pop("gamma")),
    "a degree too large": ("'_kernel' must have", lambda t, h: h["kernel"].update(degree=2**31)),
    "a value missing": ("'converged_' is missing", lambda t, h: h["values"].pop("converged_")),
    "a value of another type": ("'converged_' must be", lambda t, h: h["values"].update(converged_=1)),
    "a value too many": ("'note_' is none of", lambda t, h: h["values"].update(note_=1)),
    "no features": ("'support_vectors_' has shape", lambda t, h: h["values"].update(n_features_in_=0)),
    "a newer format": ("reads up to format 2: upgrade", lambda t, h: h.update(format_version=3)),
    "no format": ("'format_version' must be", lambda t, h: h.update(format_version="1")),
    "an entry missing": ("must have the entries", lambda t, h: h.pop("layouts")),
    "an entry of another type": ("'layouts' must be of type", lambda t, h: h.update(layouts=[])),
}
SPARSE_FORGERIES = {
    "falling indptr": ("'support_vectors_.indptr'", lambda t, h: t["support_vectors_.indptr"].__setitem__(2, 0)),
    "indptr from 1": ("'support_vectors_.indptr'", lambda t, h: t["support_vectors_.indptr"].__setitem__(0, 1)),
    "an index too large": ("'support_vectors_.indptr'", lambda t, h: t["support_vectors_.indices"].fill(4)),
    "an index twice": ("'support_vectors_.indices'", lambda t, h: t["support_vectors_.indices"].fill(0)),
    "infinite data": ("'support_vectors_' is not finite", lambda t, h: t["support_vectors_.data"].fill(np.inf)),
    "no data": ("'support_vectors_.data' is missing", lambda t, h: t.pop("support_vectors_.data")),
    "another layout": ("'support_vectors_' must be a list", lambda t, h: h["layouts"].update(support_vectors_="csr")),
    "too many rows": (
        "'support_vectors_.indptr'",
        lambda t, h: h["layouts"].update(support_vectors_=["csr_array", 2**62 - 1, 4]),
    ),
    "labels too wide": ("'classes_' would need", lambda t, h: h.update(labels="<U999999999")),
    "labels too narrow": ("'classes_' has labels that", lambda t, h: h.update(labels="<U1")),
    "labels not text": ("'classes_' must hold the bytes", lambda t, h: t.update(classes_=np.zeros(3))),
    "labels not JSON": ("'classes_'", lambda t, h: t.update(classes_=np.full(9, 250, dtype=np.uint8))),
}


@pytest.mark.parametrize("forgery", [*FORGERIES, *SPARSE_FORGERIES])
def test_a_forged_file_is_refused_by_place(forgery, model_files, tmp_path):
    tensors, header = parts(model_files["dense" if forgery in FORGERIES else "csr"][0])
    place, forge = (FORGERIES | SPARSE_FORGERIES)[forgery]
    forge(tensors, header)
    (tmp_path / "forged").write_bytes(signed(tensors, header))
    with pytest.raises(ValueError, match="forged is not a sound model file: ") as caught:
        load_model(tmp_path / "forged")
    assert place in str(caught.value)


def test_a_changed_digit_is_named_by_its_tensor(model_files, tmp_path):
    tensors, header = parts(model_files["dense"][0])
    tensors["dual_coef_"].flat[7] *= 1 + 1e-15
    (tmp_path / "changed").write_bytes(save(tensors, {"polymargin": json.dumps(header)}))
    with pytest.raises(ValueError, match="tensor 'dual_coef_' does not match its digest"):
        load_model(tmp_path / "changed")


@pytest.mark.parametrize("depth", [500, 900, 1500, 100_000])
@pytest.mark.parametrize("letters", ["[]", "{}"])
def test_a_header_nested_deeply_is_refused(depth, letters, tmp_path):
    opening = letters[0] if letters == "[]" else '{"a":'
    nested = opening * depth + ("1" if letters == "{}" else "") + letters[1] * depth
    (tmp_path / "nested").write_bytes(save({}, {"polymargin": '{"format_version": 1, "values": ' + nested + "}"}))
    with pytest.raises(ValueError, match="nested is not a sound model file"):
        load_model(tmp_path / "nested")


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 8, b"\xff" * 100, b"svm_type c_svc\n", save({"a": np.zeros(3)}), pickle.dumps({"a": 1})],
    ids=["empty", "zeros", "ones", "libsvm", "other safetensors", "pickle"],
)
def test_other_files_are_refused(data, tmp_path):
    (tmp_path / "other").write_bytes(data)
    with pytest.raises(ValueError, match="other is not a sound model file"):
        load_model(tmp_path / "other")


def test_folders_devices_and_missing_files(tmp_path):
    machine = OneVsOneSVC().fit(*iris())
    for path in (tmp_path, "/dev/null", "/dev/zero"):
        with pytest.raises(ValueError, match="is not a file"):
            load_model(path)
        with pytest.raises(ValueError, match="is not a file"):
            save_model(machine, path)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        save_model(machine, tmp_path / "missing" / "machine")
