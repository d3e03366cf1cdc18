"""Every machine, tool and command once, on small data.

`make minimum` runs this with the oldest versions that pyproject.toml allows; what it runs must touch everything that
the package asks of its dependencies. What the answers should be is the matter of the other tests.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from reference.data import iris, overlapping, wine
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polymargin
from polymargin import (
    Comparison,
    CrammerSingerSVC,
    JointSVC,
    LeeLinWahbaSVC,
    LinearProgramSVC,
    MaximumMarginRegressionSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    ReinforcedSVC,
    SoftmaxSVC,
    TotalSumSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
    certify,
    compare,
    load_model,
    save_model,
)
from polymargin.cli import main
from polymargin.features import CholeskyFeatures, KernelPCAFeatures, SubsetFeatures
from polymargin.selection import (
    KernelSearchCV,
    default_cost,
    default_width,
    hsu_lin_grid,
    known_cost,
    regularization_path,
    zien_grid,
)
from polymargin.storage import export_libsvm, export_onnx, import_libsvm

LINEAR = (OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC)
MACHINES = [
    *(OneVsOneSVC(decision=decision) for decision in ("votes", "dag", "adag", "coupling")),
    OneVsRestSVC(),
    *(Machine(bias=bias) for Machine in (WestonWatkinsSVC, CrammerSingerSVC) for bias in ("regularized", "free", None)),
    *(Machine(kernel="linear", solver="sequential-dual") for Machine in LINEAR),
    *(Machine(kernel="linear", solver="cutting-plane") for Machine in (WestonWatkinsSVC, CrammerSingerSVC)),
    CrammerSingerSVC(kernel="linear", solver="exponentiated-gradient"),
    # Not linear ones of a maximum: where no class is more likely than not they leave scores tied.
    *(Machine() for Machine in (ReinforcedSVC, TotalSumSVC, MaximumMarginRegressionSVC)),
    *(LeeLinWahbaSVC(bias=bias) for bias in ("regularized", "free", None)),
    *(Machine(kernel="linear", solver="sequential-dual") for Machine in (LeeLinWahbaSVC, ReinforcedSVC)),
    JointSVC(margins="absolute", aggregation="total"),
    OneVsOneSVC(kernel="linear"),
    LinearProgramSVC(),
    LinearProgramSVC(kernel="linear"),
    UncertaintySVC(min_distance=np.inf),
    OutputCodeSVC(code="dense", decoding="probability"),
    UncertaintySVC(min_distance=np.inf, answers="margins"),
    *(SoftmaxSVC(aggregation=aggregation) for aggregation in (0.0, 0.5, 1.0, np.inf)),
    *(SoftmaxSVC(basis=basis, rank=20, bias="regularized") for basis in ("kpca", "cholesky", "subset")),
    SoftmaxSVC(strategy="one-vs-rest"),
    SoftmaxSVC(kernel="linear"),
    SoftmaxSVC(class_kernel=np.eye(3) + 0.5),
]
CLASSES = list(dict.fromkeys(map(type, MACHINES)))
COMMANDS = ("compare", "easy", "check", "scale", "tune", "train", "predict", "info", "export")
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=repr)
every_container = pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csr_array])


# Machines


@every_container
@every_machine
def test_fit_predict_certify_save_and_load(machine, container, tmp_path):
    X, y = iris()
    X = container(X)
    fitted = clone(machine).fit(X, y)
    assert fitted.converged_
    assert np.mean(fitted.predict(X) == y) > 0.8
    if not isinstance(machine, SoftmaxSVC):  # the only one that is trained in the primal
        assert certify(fitted, X, y).duality_gap < 0.01
    elif machine.aggregation != 0.5:  # not convex
        assert fitted.duality_gap_ < 0.01
    if hasattr(fitted, "predict_proba"):
        np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0)
    save_model(fitted, tmp_path / "model.safetensors")
    joblib.dump(fitted, tmp_path / "model.joblib")
    for loaded in (load_model(tmp_path / "model.safetensors"), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize("Machine", CLASSES)
def test_progress_is_shown(Machine, capfd):
    X, y = iris()
    Machine(verbose=1, n_jobs=2).fit(X, y)
    assert re.search(r"(\d+)/\1 problems", capfd.readouterr().err)


@pytest.mark.parametrize("Machine", CLASSES)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library, Machine):
    frames = pytest.importorskip(library, reason=f"{library} is not installed")
    X, y = iris()
    frame, names = frames.DataFrame(dict(zip("abcd", X.T, strict=True))), np.array(["x", "y", "z"])[y]
    machine = Machine().fit(frame, frames.Series(names))
    assert machine.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(machine.predict(frame), Machine().fit(X, names).predict(X))


def test_interior_point_method():
    machine = LinearProgramSVC(C=0.1).fit(*overlapping(1030))
    assert machine.solver_used_ == "interior-point"
    assert machine.converged_


@pytest.mark.parametrize("Machine", [WestonWatkinsSVC, CrammerSingerSVC])
def test_cutting_planes_to_a_small_gap(Machine):
    X, y = wine()
    assert Machine(kernel="linear", solver="cutting-plane", C=5.0, tol=1e-8).fit(X, y).converged_


def test_many_examples_without_a_kernel_matrix():
    X, y = overlapping(4200, n_features=6, n_classes=3)  # on fewer a kernel matrix is tried first
    for Machine in LINEAR:
        machine = Machine(kernel="linear").fit(X, y)
        assert machine.solver_used_ != "decomposition"
        assert certify(machine, X, y).duality_gap < 0.01


@pytest.mark.parametrize("Machine", CLASSES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_onnx_graphs(kernel, Machine, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    X, y = iris()
    machine = Machine(kernel=kernel).fit(X, y)
    export_onnx(machine, tmp_path / "machine.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "machine.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(["label"], {"X": X})[0], machine.predict(X))


def test_models_of_libsvm(tmp_path):
    X, y = iris()
    machine = OneVsOneSVC().fit(X, y)
    export_libsvm(machine, tmp_path / "model")
    np.testing.assert_array_equal(import_libsvm(tmp_path / "model").predict(X), machine.predict(X))


# Tools


@pytest.mark.parametrize("Machine", CLASSES)
@pytest.mark.parametrize("cv", [3, 0.3])
def test_search(cv, Machine, capfd):
    X, y = iris()
    search = KernelSearchCV(Machine(), {"C": [0.5, 4.0], "gamma": [0.1, 1.0]}, cv=cv, n_jobs=2, verbose=1).fit(X, y)
    assert search.shared_
    assert search.best_score_ > 0.9
    assert np.mean(search.predict(X) == y) > 0.9
    assert "left" in capfd.readouterr().err


def test_search_in_a_pipeline_of_sparse_data_with_early_stopping():
    X, y = iris()
    pipeline = make_pipeline(StandardScaler(with_mean=False), OneVsRestSVC())
    grid = {"onevsrestsvc__C": [1e-3, 1.0], "onevsrestsvc__gamma": [0.1]}
    search = KernelSearchCV(pipeline, grid, cv=5, early_stop=0.05).fit(sparse.csr_array(X), y)
    assert search.best_params_["onevsrestsvc__C"] == 1.0


def test_what_else_chooses_parameters():
    X, y = iris()
    assert set(hsu_lin_grid()) == {"C", "gamma"}
    assert len(zien_grid(X, y)) > 1
    gamma = 1 / (2 * default_width(X, 3) ** 2)
    assert default_cost(X, gamma) > 0
    machine = WestonWatkinsSVC(kernel="linear", solver="sequential-dual")
    least = known_cost(machine, X, y)
    path = regularization_path(machine, X, y, [least, 1.0])
    assert path[1].score(X, y) > 0.9


@every_container
@pytest.mark.parametrize("Features", [KernelPCAFeatures, SubsetFeatures, CholeskyFeatures])
def test_features(Features, container):
    X = container(iris()[0])
    features = Features(rank=10).fit(X)
    assert features.transform(X).shape == (150, 10)


def test_comparison(tmp_path):
    X, y = iris()
    found = compare(X[::2], y[::2], X[1::2], y[1::2], grid={"C": [1, 8], "gamma": [0.1]}, n_jobs=2)
    assert all(row["status"] == "done" for row in found.table), found.to_markdown()
    assert min(found.rates.values()) > 0.8
    assert "| Crammer-Singer |" in found.to_markdown()
    assert "</html>" in found.to_html(tmp_path / "report.html")
    found.to_json(tmp_path / "report.json")
    assert Comparison.from_json(tmp_path / "report.json").rates == found.rates


def test_pictures():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from matplotlib import pyplot

    X, y = iris()
    machine = OneVsOneSVC().fit(X[:, :2], y)
    assert polymargin.plots.decision_regions(machine, X[:, :2], y, resolution=20).collections
    assert compare(X[:, :2], y, machines="hsu-lin", grid={"C": [1], "gamma": [0.1]}, cv=3).plot() is not None
    pyplot.close("all")


# Commands


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the command in a folder with data and a model, and gives its standard output."""
    monkeypatch.chdir(tmp_path)
    X, y = iris()
    dump_svmlight_file(X[::2], y[::2], "train", zero_based=False)
    dump_svmlight_file(X[1::2], y[1::2], "test", zero_based=False)
    save_model(OneVsOneSVC().fit(X[::2], y[::2]), "model")

    def command(*arguments):
        program = Path(sys.executable).with_name("polymargin")
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return command


def test_every_command_is_here():
    from polymargin.cli._app import app

    assert {command.callback.__name__ for command in app.registered_commands} == set(COMMANDS)
    for name in COMMANDS:
        assert f"test_{name}_command" in globals(), name


@pytest.mark.parametrize("command", COMMANDS)
def test_help_and_wrong_usage(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"Usage: polymargin {command}" in capsys.readouterr().out
    assert main([command, "--no-such-option"]) == 2
    assert f"see `polymargin {command} --help`" in capsys.readouterr().err


def test_versions_and_no_command(capsys):
    assert main(["--version"]) == 0
    assert f"polymargin {polymargin.__version__}" in capsys.readouterr().out
    assert main([]) == 2
    assert "Usage: polymargin" in capsys.readouterr().out


def test_compare_command(run, tmp_path):
    printed = run("compare", "train", "--test", "test", "--output", "report.html", "--time-limit", "60")
    assert all(name in printed for name in ("one-against-one", "linear-program", "softmax", "uncertainty"))
    assert "</html>" in (tmp_path / "report.html").read_text()


def test_easy_command(run, tmp_path):
    assert json.loads(run("easy", "train", "test", "--json"))["rate"] > 0.8
    assert {"train.range", "train.safetensors", "test.predict"} <= {path.name for path in tmp_path.iterdir()}


def test_check_command(run):
    assert "75 examples, 4 features" in run("check", "train", "test")


def test_scale_command(run, tmp_path):
    assert run("scale", "-s", "range", "train").startswith("0 1:")
    assert (tmp_path / "range").read_text().startswith("x\n")


def test_tune_command(run):
    printed = run("tune", "train", "-log2c", "-1,3,2", "-log2g", "-3,1,2", "-v", "3")
    assert len(printed.splitlines()[-1].split()) == 3


def test_train_command(run):
    assert "relative gap" in run("train", "-c", "4", "-w1", "2", "-b", "1", "train", "trained")
    assert load_model("trained").C == 4.0


def test_predict_command(run, tmp_path):
    assert "Accuracy = " in run("predict", "test", "model", "output")
    assert len((tmp_path / "output").read_text().splitlines()) == 75


def test_info_command(run):
    assert "OneVsOneSVC" in run("info", "model")


def test_export_command(run):
    pytest.importorskip("onnx", reason="onnx is not installed")
    run("export", "model", "--libsvm", "libsvm", "--safetensors", "again", "--onnx", "graph")
    assert import_libsvm("libsvm").predict([[0.0] * 4]) == load_model("again").predict([[0.0] * 4])
