"""LIBSVM's own programs: they and polymargin read each other's files and give the same labels."""

import bz2
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from reference.data import paper_file
from reference.kernels import kernel_matrix
from sklearn.datasets import dump_svmlight_file

from polymargin.cli import main
from polymargin.storage import read_data

TOOLS = ("svm-train", "svm-predict", "svm-scale")
pytestmark = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in TOOLS), reason="svm-train, svm-predict and svm-scale are not installed"
)
KERNELS = {
    "linear": "-t 0 -c 1",
    "poly": "-t 1 -d 3 -g 0.1 -r 1 -c 1",
    "rbf": "-t 2 -g 1 -c 16",
    "sigmoid": "-t 3 -g 0.01 -r -0.5 -c 4",
}


@pytest.fixture(scope="module")
def satimage(tmp_path_factory):
    """The training and the test part of satimage, scaled by svm-scale."""
    folder = tmp_path_factory.mktemp("satimage")
    for part in ("train", "test"):
        (folder / part).write_bytes(bz2.decompress(paper_file("satimage", part).read_bytes()))
        ranges = ["-s" if part == "train" else "-r", folder / "range"]
        scaled = tool("svm-scale", *ranges, folder / part)
        (folder / f"{part}.scale").write_text(scaled)
    return folder


def tool(name, *arguments):
    return subprocess.run([name, *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def ours(*arguments):
    assert main([str(argument) for argument in arguments]) == 0


def labels(path):
    return np.array([float(line) for line in Path(path).read_text().splitlines()])


@pytest.mark.parametrize("kernel", KERNELS)
def test_svm_predict_gives_the_labels_of_our_models(kernel, satimage, tmp_path):
    ours("train", "-q", *KERNELS[kernel].split(), satimage / "train.scale", tmp_path / "model")
    ours("export", tmp_path / "model", "--libsvm", tmp_path / "libsvm.model")
    ours("predict", "-q", satimage / "test.scale", tmp_path / "model", tmp_path / "ours")
    tool("svm-predict", satimage / "test.scale", tmp_path / "libsvm.model", tmp_path / "theirs")
    assert len(labels(tmp_path / "ours")) == 2000
    np.testing.assert_array_equal(labels(tmp_path / "ours"), labels(tmp_path / "theirs"))


@pytest.mark.parametrize("kernel", KERNELS)
def test_we_give_the_labels_of_models_of_svm_train(kernel, satimage, tmp_path):
    tool("svm-train", "-q", *KERNELS[kernel].split(), satimage / "train.scale", tmp_path / "libsvm.model")
    tool("svm-predict", satimage / "test.scale", tmp_path / "libsvm.model", tmp_path / "theirs")
    ours("predict", "-q", satimage / "test.scale", tmp_path / "libsvm.model", tmp_path / "ours")
    np.testing.assert_array_equal(labels(tmp_path / "ours"), labels(tmp_path / "theirs"))
    ours("export", tmp_path / "libsvm.model", "--libsvm", tmp_path / "again.model")
    tool("svm-predict", satimage / "test.scale", tmp_path / "again.model", tmp_path / "again")
    np.testing.assert_array_equal(labels(tmp_path / "again"), labels(tmp_path / "theirs"))


def test_precomputed_kernels_both_ways(satimage, tmp_path):
    (X, y), (Q, q) = (read_data(satimage / f"{part}.scale") for part in ("train", "test"))
    X, y = X[::5], y[::5]
    for name, rows, classes in (("train", X, y), ("test", Q, q)):
        K = kernel_matrix(rows, X, "rbf", gamma=1.0)
        numbered = np.column_stack([np.arange(1, 1 + len(K)), K])
        dump_svmlight_file(numbered, classes, str(tmp_path / name), zero_based=True)
    ours("train", "-q", "-t", 4, "-c", 16, tmp_path / "train", tmp_path / "model")
    ours("export", tmp_path / "model", "--libsvm", tmp_path / "libsvm.model")
    tool("svm-train", "-q", "-t", 4, "-c", 16, tmp_path / "train", tmp_path / "their.model")
    for model in ("libsvm.model", "their.model"):
        tool("svm-predict", tmp_path / "test", tmp_path / model, tmp_path / "theirs")
        ours("predict", "-q", tmp_path / "test", tmp_path / model, tmp_path / "ours")
        np.testing.assert_array_equal(labels(tmp_path / "ours"), labels(tmp_path / "theirs"))


def test_ranges_of_svm_scale_and_ours_are_exchanged(satimage, tmp_path):
    ours("scale", "-s", tmp_path / "range", satimage / "train", tmp_path / "train.scale")
    ours("scale", "-r", satimage / "range", satimage / "test", tmp_path / "test.scale")
    theirs = tool("svm-scale", "-r", tmp_path / "range", satimage / "test")
    (tmp_path / "theirs").write_text(theirs)
    found, expected = read_data(tmp_path / "test.scale")[0], read_data(tmp_path / "theirs")[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)  # svm-scale writes six digits


def test_easy_beats_91_percent_on_satimage_with_one_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ours("easy", paper_file("satimage", "train"), paper_file("satimage", "test"), "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["rate"] > 0.91
    assert found["seconds"] < 120
