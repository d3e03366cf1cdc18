"""The command as people and scripts use it: files in, files out, exit codes, JSON, messages."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from reference.data import digits, iris, wine
from reference.kernels import kernel_matrix
from reference.mutations import mutated
from sklearn.datasets import dump_svmlight_file

from polymargin import OneVsOneSVC, load_model
from polymargin.cli import _app, main
from polymargin.kernels import KERNELS
from polymargin.storage import export_libsvm, read_data


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with training and test data of wine."""
    monkeypatch.chdir(tmp_path)
    X, y = wine()
    X = 5 * X + 20
    dump_svmlight_file(X[::2], y[::2] + 1, "train.svm", zero_based=False)
    dump_svmlight_file(X[1::2], y[1::2] + 1, "test.svm", zero_based=False)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Return a function that runs the command and gives its exit code and what it printed."""

    def command(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def json_of(run):
    """Return a function that runs a command with --json and gives the document."""

    def document(*arguments):
        code, out, err = run(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return document


def lines(path):
    return path.read_text().splitlines()


# The workflow


def test_scale_tune_train_predict(folder, run, json_of):
    assert json_of("check", "train.svm")["files"][0]["classes"] == {"1": 30, "2": 35, "3": 24}
    assert run("scale", "-s", "range", "train.svm", "train.scale") == (0, "", "")
    assert run("scale", "-r", "range", "test.svm", "test.scale") == (0, "", "")
    X, _ = read_data("train.scale")
    assert (X.min(), X.max()) == (-1, 1)
    tuned = json_of("tune", "train.scale", "-log2c", "-1,5,2", "-log2g", "-5,1,2", "-v", 3)
    assert tuned["rate"] == max(candidate["rate"] for candidate in tuned["candidates"]) > 0.95
    C, gamma = tuned["best"]["C"], tuned["best"]["gamma"]
    code, out, _ = run("train", "-c", C, "-g", gamma, "train.scale", "model")
    assert (code, "relative gap" in out) == (0, True)
    code, out, _ = run("predict", "test.scale", "model", "output")
    found = re.fullmatch(r"Accuracy = ([\d.]+)% \((\d+)/89\) \(classification\)\n", out)
    assert float(found[1]) == pytest.approx(100 * int(found[2]) / 89, abs=1e-4)
    _, y = read_data("test.svm")
    assert sum(int(line) == label for line, label in zip(lines(folder / "output"), y, strict=True)) == int(found[2])
    assert int(found[2]) > 84


def test_easy(folder, json_of):
    found = json_of("easy", "train.svm", "test.svm")
    assert found["rate"] > 0.95
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".svm") == [
        "test.svm.predict",
        "train.svm.range",
        "train.svm.safetensors",
    ]
    again = json_of("predict", "--range", "train.svm.range", "test.svm", "train.svm.safetensors", "again")
    assert again["rate"] == found["rate"]
    assert lines(folder / "again") == lines(folder / "test.svm.predict")


def test_easy_takes_a_linear_kernel_for_many_features_and_draws_rows(folder, json_of):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = (rng.random((120, 500)) < 0.02).astype(float)
    X[np.arange(120), y] = 3.0
    dump_svmlight_file(X, y, "text.svm", zero_based=False)
    found = json_of("easy", "text.svm", "text.svm", "--rows", 60)
    assert found["parameters"]["kernel"] == "linear"
    assert found["rate"] == 1.0


def test_the_options_of_svm_train_mean_what_they_mean_there(folder, run):
    X, y = read_data("train.svm")
    options = {
        "-t 0 -c 2": {"kernel": "linear", "C": 2},
        "-t 1 -d 2 -g 0.01 -r 1": {"kernel": "poly", "degree": 2, "gamma": 0.01, "coef0": 1},
        "-t 2 -e 0.01 -m 50": {"gamma": "auto", "tol": 0.01, "cache_size": 50},
        "-t 3 -g 0.001 -r -1": {"kernel": "sigmoid", "gamma": 0.001, "coef0": -1},
        "-w1 2.5 -w3 0.5 -g 0.01": {"class_weight": {1: 2.5, 3: 0.5}, "gamma": 0.01},
        "-s 0 -h 0 -q": {"gamma": "auto"},
        "--set decision=dag -g scale": {"decision": "dag"},
    }
    for text, parameters in options.items():
        assert run("train", *text.split(), "train.svm", "model")[0] == 0
        expected = OneVsOneSVC(**parameters).fit(X, y)
        found = load_model("model")
        np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))


@pytest.mark.parametrize(
    "name",
    ["one-vs-rest", "weston-watkins", "crammer-singer", "uncertainty", "softmax", "linear-program", "OneVsOneSVC"],
)
def test_every_machine(name, folder, run, json_of):
    assert run("train", "-a", name, "-g", 0.005, "train.svm", "model")[0] == 0
    assert (
        json_of("info", "model")["machine"].replace("SVC", "").lower()
        == name.replace("-", "").replace("SVC", "").lower()
    )
    assert json_of("predict", "test.svm", "model")["rate"] > 0.8


def test_cross_validation_writes_no_model(folder, run, json_of):
    code, out, _ = run("train", "-v", 4, "-g", 0.001, "train.svm")
    assert code == 0
    assert re.fullmatch(r"Cross Validation Accuracy = [\d.]+%\n", out)
    assert json_of("train", "-v", 4, "-g", 0.001, "train.svm")["folds"] == 4
    assert not list(folder.glob("*.safetensors"))


def test_a_precomputed_kernel_in_libsvms_format(folder, run, json_of):
    X, y = wine()
    K = kernel_matrix(X, X, "rbf", gamma=0.05)
    serial = np.arange(1, 1 + len(X))
    dump_svmlight_file(np.column_stack([serial, K]), y, "kernel", zero_based=True)
    assert run("train", "-t", 4, "kernel", "model")[0] == 0
    labels = json_of("predict", "kernel", "model")["labels"]
    np.testing.assert_array_equal(labels, OneVsOneSVC(kernel="precomputed").fit(K, y).predict(K))
    np.savez("kernel.npz", X=K, y=y)
    assert run("train", "-t", "precomputed", "kernel.npz", "model")[0] == 0
    assert json_of("predict", "kernel.npz", "model")["labels"] == labels
    code, _, err = run("train", "-t", 4, "train.svm", "model")
    assert code == 1
    assert "expected 0:1 in example 1, got 0:0" in err


# Predictions


def test_scores_and_probabilities(folder, run, json_of):
    run("train", "-g", 0.001, "train.svm", "model")
    X, _ = read_data("test.svm")
    machine = load_model("model")
    assert run("predict", "--values", "test.svm", "model", "output")[0] == 0
    first, *rest = lines(folder / "output")
    assert first == "labels 1 2 3"
    table = np.array([line.split() for line in rest], dtype=float)
    np.testing.assert_array_equal(table[:, 1:], machine.decision_function(X))
    np.testing.assert_array_equal(table[:, 0], machine.predict(X))
    assert np.array_equal(json_of("predict", "--values", "test.svm", "model")["scores"], table[:, 1:])
    code, _, err = run("predict", "-b", 1, "test.svm", "model", "output")
    assert (code, "has no probabilities" in err, "hint: train it with -b 1" in err) == (1, True, True)
    for machine, *asked in (
        ("one-vs-one", "-b", 1),
        ("softmax", "-b", 1),
        ("crammer-singer", "-b", 1),
        ("one-vs-rest", "--calibration", "temperature"),
    ):
        assert run("train", "-a", machine, *asked, "-g", 0.001, "train.svm", "model")[0] == 0
        assert run("predict", "-b", 1, "test.svm", "model", "output")[0] == 0
        table = np.array([line.split() for line in lines(folder / "output")[1:]], dtype=float)
        np.testing.assert_allclose(table[:, 1:].sum(axis=1), 1)
        np.testing.assert_array_equal(table[:, 0] - 1, table[:, 1:].argmax(axis=1))


def test_models_of_svm_train_with_probabilities_are_asked_as_svm_predict_asks_them(folder, run, json_of):
    svmutil = pytest.importorskip("libsvm.svmutil", reason="libsvm-official is not installed")
    X, y = digits(400)
    X = X + np.random.default_rng(0).normal(scale=0.4, size=X.shape)  # so that votes and probabilities differ
    dump_svmlight_file(X, y, "digits.svm", zero_based=False)
    model = svmutil.svm_train(y[:200].tolist(), X[:200].tolist(), "-b 1 -q")
    svmutil.svm_save_model("libsvm.model", model)
    votes = svmutil.svm_predict([], X.tolist(), model, "-q")[0]
    likely, _, theirs = svmutil.svm_predict([], X.tolist(), model, "-b 1 -q")
    assert votes != likely
    found = json_of("predict", "digits.svm", "libsvm.model", "-b", 1)
    order = np.argsort(model.get_labels())
    np.testing.assert_allclose(found["scores"], np.array(theirs)[:, order], atol=5e-3)  # it stops its iteration early
    assert np.mean(np.array(found["labels"]) == likely) > 0.99
    assert json_of("predict", "digits.svm", "libsvm.model")["labels"] == votes
    scores = np.array(json_of("predict", "--values", "digits.svm", "libsvm.model")["scores"])
    assert scores.argmax(axis=1).tolist() == votes
    assert run("export", "libsvm.model", "--safetensors", "model", "--libsvm", "again.model")[0] == 0
    for copy in ("model", "again.model"):
        assert json_of("predict", "digits.svm", copy, "-b", 1)["labels"] == found["labels"]
        assert json_of("predict", "digits.svm", copy)["labels"] == votes
    svmutil.svm_save_model("plain.model", svmutil.svm_train(y.tolist(), X.tolist(), "-q"))
    code, _, err = run("predict", "-b", 1, "digits.svm", "plain.model", "output")
    assert (code, "plain.model has no probabilities" in err) == (1, True)


def test_labels_on_standard_output_and_the_rate_beside(folder, run):
    run("train", "train.svm", "model")
    code, out, err = run("predict", "test.svm", "model")
    assert (code, len(out.splitlines())) == (0, 89)
    assert err.startswith("Accuracy = ")


def test_texts_as_labels_and_data_without_labels(folder, run, json_of):
    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    rows = [",".join([name, *map(str, row)]) for name, row in zip(names, X.tolist(), strict=True)]
    (folder / "iris.csv").write_text("\n".join(rows))
    (folder / "new.csv").write_text("\n".join(row.split(",", 1)[1] for row in rows))
    assert run("train", "-wsetosa", 2, "iris.csv", "model")[0] == 0
    known = json_of("predict", "iris.csv", "model")
    new = json_of("predict", "--label", "none", "new.csv", "model")
    assert new["labels"] == known["labels"]
    assert (known["rate"] > 0.9, new["rate"]) == (True, None)
    code, _, err = run("predict", "new.csv", "model")
    assert (code, "hint: --label" in err) == (1, True)


def test_a_test_file_may_leave_out_the_last_features_but_not_have_more(folder, run, json_of):
    run("train", "train.svm", "model")
    (folder / "short").write_text("1 1:20\n2 2:5\n")
    assert len(json_of("predict", "short", "model")["labels"]) == 2
    (folder / "wide").write_text("1 1:20 14:5\n")
    code, _, err = run("predict", "wide", "model")
    assert code == 1
    assert err == "error: wide has 14 features, but model was trained with 13\n"


# Models


def test_models_of_libsvm_and_exports(folder, run, json_of):
    X, y = read_data("train.svm")
    machine = OneVsOneSVC(gamma=0.001).fit(X, y)
    export_libsvm(machine, "libsvm.model")
    assert json_of("info", "libsvm.model")["stop_reason"] == "imported"
    labels = json_of("predict", "test.svm", "libsvm.model")["labels"]
    assert labels == machine.predict(read_data("test.svm")[0]).tolist()
    assert run("export", "libsvm.model", "--safetensors", "ours")[0] == 0
    assert json_of("predict", "test.svm", "ours")["labels"] == labels
    assert run("export", "ours", "--libsvm", "back")[0] == 0
    assert lines(folder / "back") == lines(folder / "libsvm.model")


def test_export_to_onnx(folder, run):
    pytest.importorskip("onnx", reason="onnx is not installed")
    run("train", "train.svm", "model")
    assert run("export", "model", "--onnx", "model.onnx") == (0, "onnx: model.onnx\n", "")
    assert (folder / "model.onnx").stat().st_size > 1000
    code, out, _ = run("export", "model", "--onnx", "single.onnx", "--float32", "--safetensors", "again")
    assert (code, out) == (0, "onnx: single.onnx\nsafetensors: again\n")
    import onnx

    kinds = {name: onnx.load(name).graph.input[0].type.tensor_type.elem_type for name in ("model.onnx", "single.onnx")}
    assert kinds == {"model.onnx": onnx.TensorProto.DOUBLE, "single.onnx": onnx.TensorProto.FLOAT}
    code, _, err = run("export", "model", "--float32", "--safetensors", "again")
    assert (code, "--float32 is about --onnx" in err) == (2, True)


def test_machines_are_listed(run, json_of):
    assert "one-vs-one" in run("info", "--machines")[1]
    assert set(json_of("info", "--machines")["machines"]) >= {"one-vs-one", "crammer-singer"}


def test_version(run):
    code, out, _ = run("--version")
    assert code == 0
    assert re.match(r"polymargin \d+\.\d+\.\d+\n +core +(avx512|avx2|baseline) instructions, (GCC|Clang) ", out)
    assert re.search(r"BLAS +\w+ [\d.]+", out)


# What goes wrong

WRONG_USAGE = {
    "": "",
    "frobnicate": "No such command",
    "train": "Missing argument",
    "train --bogus train.svm": "No such option",
    "train -t 99 train.svm": f"-t 99: expected a kernel from 0 to {max(entry.number for entry in KERNELS.values())}",
    "train -g abc train.svm": "-g abc: expected a number, auto or scale",
    "train -c abc train.svm": "'-c'",
    "train -s 3 train.svm": "-s 3: polymargin trains classifiers",
    "train -a nearest train.svm": "-a nearest: there is no such machine",
    "train --set bias=free train.svm": "OneVsOneSVC has no such parameter",
    "train -a uncertainty -b 1 train.svm": "UncertaintySVC has no probabilities",
    "train -a softmax --calibration sigmoid train.svm": "--calibration: SoftmaxSVC has none",
    "tune -log2c 1,2 train.svm": "--log2c 1,2: expected BEGIN,END,STEP",
    "tune -log2c 1,2,0 train.svm": "expected BEGIN,END,STEP",
    "scale -s a -r b train.svm": "not both",
    "scale --json train.svm": "give OUTPUT",
    "info": "give a MODEL",
    "export train.svm": "give at least one of",
}
FAILURES = {
    "train nothing.svm": "error: nothing.svm: No such file or directory\n",
    "train trian.svm": "hint: there is `train.svm`",
    "train train.svm folder/model": "folder: No such folder",
    "train .": "error: . is not a file",
    "train -c -1 train.svm": "error: The 'C' parameter of OneVsOneSVC must be a float in the range (0.0, inf]",
    "train -w7 2 train.svm": "-w7: there is no class 7 in the data, whose classes are 1, 2, 3",
    "train -w1 x train.svm": "-w1: expected a number, got 'x'",
    "train -w1": "No such file",
    "train one_class": "class",
    "train bad": "error: bad, line 2, column 5: expected index:value, a whole and a finite number, got '1:x'\n",
    "train zero": "hint: indices start at 1",
    "train --label none train.svm": "nothing to learn without labels",
    "check train.svm bad": "error: bad, line 2, column 5",
    "tune bad": "error: bad, line 2, column 5",
    "easy bad": "error: bad, line 2, column 5",
    "scale bad": "error: bad, line 2, column 5",
    "scale -r bad train.svm": "error: bad, line 1, column 1: expected a file of svm-scale",
    "scale -l 2 -u 1 train.svm": "two finite ends in order",
    "predict train.svm bad": "error: bad is not a sound model file",
    "predict train.svm truncated": "error: truncated, line 2, column 1: the line SV",
    "info bad": "error: bad is not a sound model file",
    "export bad --libsvm x": "error: bad is not a sound model file",
}


@pytest.fixture
def bad_files(folder):
    (folder / "bad").write_text("1 1:1\n -1 1:x\n")
    (folder / "zero").write_text("1 0:1\n")
    (folder / "one_class").write_text("1 1:1\n1 1:2\n")
    (folder / "truncated").write_text("svm_type c_svc\n")
    return folder


def test_warnings_are_told_but_not_what_is_deprecated(monkeypatch, run):
    def app(*_, **__):
        warnings.warn("out of use", DeprecationWarning, stacklevel=1)
        warnings.warn("mind the gap", UserWarning, stacklevel=1)

    monkeypatch.setattr(_app, "app", app)
    assert run("check") == (0, "", "warning: mind the gap\n")


def test_no_command_is_2_whatever_click_says(monkeypatch, run):
    code, out, _ = run()
    assert (code, "Usage: polymargin" in out) == (2, True)
    monkeypatch.setattr(_app, "app", lambda *_, **__: 0)  # so do versions of click before 8.2, after the help
    assert run()[0] == 2


@pytest.mark.parametrize("arguments", WRONG_USAGE)
def test_wrong_usage_is_2(arguments, bad_files, run):
    code, _, err = run(*arguments.split())
    assert code == 2
    if arguments:
        assert err.startswith("error: ")
        assert "\nhint: " in err
        assert WRONG_USAGE[arguments] in err


@pytest.mark.parametrize("arguments", [text for text in FAILURES if text != "train -w1"])
def test_a_failure_is_1_and_says_why(arguments, bad_files, run):
    before = sorted(bad_files.iterdir())
    code, out, err = run(*arguments.split())
    assert code == 1
    assert err.startswith("error: ")
    assert FAILURES[arguments] in err
    assert "Traceback" not in err
    assert sorted(bad_files.iterdir()) == before
    code, out, _ = (
        run(*arguments.split(), "--json") if "scale" not in arguments else run(*arguments.split(), "o", "--json")
    )
    assert code == 1
    assert json.loads(out)["error"] in err


def test_an_error_that_nobody_expected_is_told_in_the_same_form(folder, run, monkeypatch):
    def broken(*_, **__):
        raise KeyError("inside")

    monkeypatch.setattr(sys.modules["polymargin.cli.check"], "summary_of", broken)
    assert run("check", "train.svm") == (1, "", "error: KeyError: 'inside'\n")


def test_warnings_are_told_in_the_same_form(folder, run):
    run("scale", "-s", "range", "train.svm", "out")
    (folder / "range").write_text("\n".join(lines(folder / "range")[:-1]) + "\n")
    code, _, err = run("scale", "-r", "range", "train.svm", "out")
    assert (code, err) == (0, "warning: features 13 to 13 are not in the ranges and are left out\n")


def test_a_thousand_mutations_through_the_command(folder, run):
    good, rng = (folder / "train.svm").read_bytes()[:3000].rsplit(b"\n", 1)[0], np.random.default_rng(0)
    codes = {0: 0, 1: 0}
    for _ in range(1000):
        (folder / "data").write_bytes(mutated(good, rng, b"0123456789.:,+-e# \n"))
        code, _, err = run("check", "data")
        codes[code] += 1
        assert code == 0 or re.match(r"error: data, line \d+, column \d+: ", err), err
    assert min(codes.values()) > 100


@pytest.mark.parametrize("rule", ["violation", "gap"])
def test_the_rule_that_tol_is_of_goes_to_the_machine(rule, folder, run):
    code, out, _ = run("train", "-c", "1000", "-e", "1e-6", "--stop", rule, "--json", "train.svm", "model")
    assert code == 0
    assert json.loads(out)["parameters"]["stop"] == rule
    assert json.loads(out)["relative_gap"] <= 1e-6


def test_a_rule_that_is_none_is_refused(folder, run):
    code, _, err = run("train", "--stop", "gaps", "train.svm", "model")
    assert code == 2
    assert "gaps" in err


# Processes


STARTED = "import sys; from polymargin.cli import main; print('ready', file=sys.stderr, flush=True); sys.exit(main())"


def process(*arguments, program=("-m", "polymargin")):
    command = [sys.executable, *program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("command", ["train", "tune", "easy"])
def test_ctrl_c_is_130_without_a_traceback_or_a_partial_file(command, folder):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8000, 10)), rng.integers(0, 3, 8000)  # nothing to learn: it takes minutes
    dump_svmlight_file(X, y, "long.svm", zero_based=False)
    options = ["-g", "0.5", "-c", "1e6", "-e", "1e-9"] if command == "train" else []
    before = sorted(folder.iterdir())
    with process(command, *options, "long.svm", program=("-c", STARTED)) as running:
        assert running.stderr.readline() == "ready\n"
        time.sleep(2)
        assert running.poll() is None, running.stderr.read()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert running.returncode == 130
    assert (out, err) == ("", "")
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3, 0.6])
def test_ctrl_c_while_the_command_is_being_loaded(delay, folder):
    with process("check", "nothing", program=("-c", STARTED)) as running:
        assert running.stderr.readline() == "ready\n"
        time.sleep(delay)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    if running.returncode != 1:  # it was quicker
        assert (running.returncode, out, err) == (130, "", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "data", "data"),
        ("scale", "data", "data"),
        ("scale", "-s", "data", "data", "scaled"),
        ("tune", "--out", "data", "data"),
        ("predict", "data", "data.safetensors", "data"),
        ("predict", "data", "data.safetensors", "data.safetensors"),
    ],
)
def test_no_output_takes_the_place_of_an_input(arguments, run, folder):
    X, y = digits()
    dump_svmlight_file(X[:100], y[:100], "data", zero_based=False)
    assert run("train", "-q", "data")[0] == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    code, _, err = run(*arguments)
    assert code == 1
    assert "is a file that is read: give the output another name" in err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_ranges_that_cannot_be_saved_leave_no_scaled_data(run, folder):
    X, y = digits()
    dump_svmlight_file(X[:20], y[:20], "data", zero_based=False)
    code, _, err = run("scale", "-s", "nowhere/ranges", "data", "scaled")
    assert code == 1
    assert "No such folder" in err
    assert not (folder / "scaled").exists()


def test_an_astronomical_index_is_one_feature_more(run, folder):
    (folder / "data").write_text("1 1:2 3:1\n2 99999999999:1\n")
    code, out, _ = run("check", "data")
    assert code == 0
    assert "2 examples, 99,999,999,999 features, 3 values" in out
    assert "99999999996 features are constant" in out


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away(unbuffered, folder, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    X, y = digits()
    dump_svmlight_file(X, y, "digits.svm", zero_based=False)
    with process("scale", "digits.svm") as running:
        running.stdout.readline()
        running.stdout.close()
        assert running.wait(timeout=60) == 1
        assert running.stderr.read() == ""


def test_completion_is_there(folder):
    environment = os.environ | {
        "_POLYMARGIN_COMPLETE": "complete_bash",
        "COMP_WORDS": "polymargin tr",
        "COMP_CWORD": "1",
    }
    command = [sys.executable, "-c", "import sys; from polymargin.cli import main; sys.exit(main())"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert run.stdout.split() == ["train"]
