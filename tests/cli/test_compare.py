"""``polymargin compare``: what it prints and writes, and how it ends."""

import contextlib
import io
import json
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from reference.data import random_classes
from sklearn.datasets import dump_svmlight_file

from polymargin import Comparison
from polymargin.cli import main
from polymargin.comparison.experiment import Experiment

PROGRAM = [sys.executable, "-c", "import sys; from polymargin.cli import main; sys.exit(main())", "compare"]
FAST = ["--machines", "dag,crammer-singer", "--cv", "2"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with data in all formats, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    X, y = random_classes(3, n=60, n_features=3, seed=5)
    dump_svmlight_file(X, y, "data.svm", zero_based=False)
    np.savez("data.npz", X=X, y=y)
    lines = [f"class {label},{a!r},{b!r},{c!r}" for (a, b, c), label in zip(X.tolist(), y, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["class,a,b,c", *lines]))
    return tmp_path


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["compare", *map(str, arguments)])
    return SimpleNamespace(exit_code=code, stdout=out.getvalue(), stderr=err.getvalue())


@pytest.mark.parametrize("name", ["data.svm", "data.npz", "data.csv"])
def test_files_of_every_kind(folder, name):
    result = run(name, *FAST, "--json")
    assert result.exit_code == 0, result.stderr
    comparison = Comparison.from_json(result.stdout)
    assert [row["machine"] for row in comparison.table] == ["DAG", "Crammer-Singer"]
    assert comparison.data["name"] == name
    assert comparison.data["n_train"] == 60
    assert comparison.settings["command"] == f"polymargin compare {name} --machines dag,crammer-singer --cv 2 --json"
    assert not (folder / "polymargin-report.html").exists()


def test_table_and_report(folder):
    result = run("data.csv", *FAST, "--grid", "coarse", "--scaling", "range", "--seed", 3)
    assert result.exit_code == 0, result.stderr
    assert "DAG" in result.stdout
    assert "report: polymargin-report.html" in result.stdout
    page = (folder / "polymargin-report.html").read_text()
    assert "polymargin compare data.csv --machines dag,crammer-singer --cv 2 --scaling range --seed 3" in page
    assert "read_data('data.csv', label='first')" in page
    assert "class 2" in page


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_the_ending_says_what_is_written(folder, ending):
    result = run("data.npz", *FAST, "--output", f"out.{ending}")
    assert result.exit_code == 0, result.stderr
    text = (folder / f"out.{ending}").read_text()
    begins = {"html": "<!DOCTYPE html>", "md": "# data.npz", "json": "{"}
    assert text.startswith(begins[ending])


def test_a_test_file_holds_out_once_unless_there_are_folds(folder):
    held = json.loads(run("data.svm", "--test", "data.svm", "--machines", "dag", "--json").stdout)
    assert held["data"]["n_test"] == 60
    assert held["settings"]["holdout"] == 0.3
    folds = json.loads(run("data.svm", "--test", "data.svm", "--machines", "dag", "--cv", 2, "--json").stdout)
    assert folds["settings"]["holdout"] is None
    assert folds["settings"]["validation"] == "2-fold cross-validation"


def test_without_a_file_it_is_iris(folder):
    result = run(*FAST, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["data"]["name"], document["data"]["n_train"]) == ("iris", 150)
    assert document["data"]["classes"] == ["setosa", "versicolor", "virginica"]
    assert document["table"][0]["rate"] > 0.9


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["nothing.svm"], "there is no file `nothing.svm`", "runs on built-in data"),
        (["bad.csv"], "bad.csv, line 2, column 3: expected a finite number", None),
        (["bad.npz"], "bad.npz, array 'data' is missing", "numpy.savez(file, X=X, y=y)"),
        (["last.csv"], "`last.csv` has numbers such as 1.25 where the classes should be", "--label last"),
        (["real.svm"], "`real.svm` has numbers such as 1.5 where the classes should be", None),
        (["bad.svm"], "bad.svm, line 1, column 1: expected a label", None),
        (["data.svm", "--machines", "nobody"], "there is no machine 'nobody'", None),
        (["data.svm", "--cv", "50"], "the number of examples of the smallest class", None),
        (["data.svm", "--output", "report.pdf"], "`report.pdf` is no name of a report", ".html, .md or .json"),
        (["data.svm", "--output", "none/report.html"], "there is no folder `none`", "make it"),
        (["--test", "data.svm"], "`--test` needs a file to train on", "TRAIN --test TEST"),
        (["data.npz", "--test", "wide.npz"], "X_test has 9 features", None),
    ],
)
def test_errors_end_with_1_and_say_what_to_do(folder, arguments, error, hint):
    (folder / "bad.csv").write_text("a,1,2\nb,1,x\n")
    (folder / "bad.svm").write_text("hello world\n")
    (folder / "last.csv").write_text("5.0,1,2\n1.25,3,1\n")
    (folder / "real.svm").write_text("1.5 1:1\n2.25 1:2\n")
    np.savez("bad.npz", Z=np.zeros(3))
    np.savez("wide.npz", X=np.zeros((4, 9)), y=np.array([0, 1, 2, 0]))
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert error in result.stderr
    assert hint is None or f"hint: {hint}" in result.stderr or hint in result.stderr.split("hint: ")[1]
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("arguments", ["--cv many", "--cv 1", "--grid fine", "--scaling big", "--unknown"])
def test_usage_errors_end_with_2(folder, arguments):
    assert run("data.svm", *arguments.split()).exit_code == 2


def test_with_json_an_error_is_a_document_too(folder):
    result = run("nothing.svm", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"] == "there is no file `nothing.svm`"


def test_the_class_may_come_last(folder):
    X, y = random_classes(3, n=60, n_features=3, seed=5)
    lines = [f"{a!r},{b!r},{c!r},{label}" for (a, b, c), label in zip(X.tolist(), y, strict=True)]
    (folder / "last.csv").write_text("\n".join(lines))
    document = json.loads(run("last.csv", "--label", "last", *FAST, "--json").stdout)
    assert document["data"]["classes"] == ["0", "1", "2"]
    assert document["data"]["n_features"] == 3


def test_test_files_of_svmlight_may_be_narrower(folder):
    X, y = random_classes(3, n=60, n_features=3, seed=5)
    X[:, 2] = 0.0
    dump_svmlight_file(X, y, "narrow.svm", zero_based=False)
    document = json.loads(run("data.svm", "--test", "narrow.svm", "--machines", "dag", "--json").stdout)
    assert document["data"]["n_features"] == 3
    assert document["table"][0]["status"] == "done"


def test_as_a_program_json_is_all_that_is_printed(folder):
    done = subprocess.run([*PROGRAM, "data.svm", *FAST, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["format"] == "polymargin-comparison"


def test_ctrl_c_ends_with_130_without_a_traceback(folder):
    rng = np.random.default_rng(0)
    np.savez("large.npz", X=rng.normal(size=(4000, 20)), y=rng.integers(0, 5, 4000))
    program = "import sys, polymargin.cli as cli; print('ready', file=sys.stderr, flush=True); sys.exit(cli.main())"
    arguments = ["compare", "large.npz", "--machines", "weston-watkins", "--grid", "hsu-lin"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr.readline() == "ready\n"
            time.sleep(2)  # into the search: it takes hours
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_ctrl_c_keeps_the_machines_that_are_done(folder, monkeypatch):
    searched = Experiment._searched

    def interrupted(self, group, on_count):
        if group[0].name == "Crammer-Singer":
            raise KeyboardInterrupt
        return searched(self, group, on_count)

    monkeypatch.setattr(Experiment, "_searched", interrupted)
    result = run("data.npz", *FAST)
    assert result.exit_code == 130
    assert "interrupted" in result.stdout
    assert "DAG" in (folder / "polymargin-report.html").read_text()
    document = json.loads(run("data.npz", *FAST, "--json").stdout)
    assert [row["status"] for row in document["table"]] == ["done", "interrupted"]


def test_when_no_machine_could_run_it_failed(folder, monkeypatch):
    def failing(self, group, on_count):
        raise MemoryError("too many rows")

    monkeypatch.setattr(Experiment, "_searched", failing)
    result = run("data.npz", *FAST, "--json")
    assert result.exit_code == 1
    assert {row["reason"] for row in json.loads(result.stdout)["table"]} == {"MemoryError: too many rows"}
