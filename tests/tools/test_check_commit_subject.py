"""The check of commit subjects, which pre-commit runs on the file that has the message."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_commit_subject.py"
SPEC = importlib.util.spec_from_file_location("check_commit_subject", SCRIPT)
check = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check)

SOUND = [
    "Add a Laplacian kernel",
    "Pass the tolerance to the session",
    "Process rows in blocks",
    "Need no copy of the data",
    "Bring the stub up to date",
    "Focus the tests on one promise",
    "Name C_i `cost_bounds` in Python and in C++",
    "Merge branch 'kernels' into main",
    'Revert "Added a kernel."',
    "x".upper() * 72,
]
UNSOUND = {
    "Add a kernel.": "ends with a period",
    "add a kernel": "has no capital",
    "Added a kernel": "not an imperative",
    "Adding a kernel": "not an imperative",
    "Adds a kernel": "not an imperative",
    "The kernel is faster": "not an imperative",
    "A" + "b" * 72: "has 73 characters",
    " Add a kernel": "begins or ends with a space",
    "": "there is none",
}


@pytest.mark.parametrize("subject", SOUND)
def test_sound_subjects(subject):
    assert check.complaints(subject) == []


@pytest.mark.parametrize("subject", UNSOUND)
def test_unsound_subjects(subject):
    assert any(UNSOUND[subject] in complaint for complaint in check.complaints(subject))


def test_every_complaint_is_made():
    assert len(check.complaints("added " + "x" * 70 + ".")) == 3


def run(message, tmp_path):
    path = tmp_path / "COMMIT_EDITMSG"
    path.write_text(message)
    return subprocess.run([sys.executable, str(SCRIPT), str(path)], capture_output=True, text=True, check=False)


def test_the_script_reads_the_first_line_that_is_no_comment(tmp_path):
    assert run("# Please enter the message.\n\nAdd a kernel\n\nIt was missed.\n", tmp_path).returncode == 0
    done = run("Added a kernel\n\nIt was missed.\n", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the commit's subject: its first word 'Added' is not an imperative")


def test_the_script_wants_a_file():
    assert subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, check=False).returncode == 2


def test_pre_commit_knows_it():
    settings = (SCRIPT.parents[1] / ".pre-commit-config.yaml").read_text()
    assert "tools/check_commit_subject.py" in settings
    assert "stages: [commit-msg]" in settings
