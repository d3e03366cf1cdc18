"""What solvers may know: arrays, what they ask for by a protocol, and nothing of the layers above."""

import ast
import re
from pathlib import Path

import pytest

import polymargin
from polymargin import solvers

FOLDER = Path(polymargin.__file__).parent / "solvers"
FILES = sorted(FOLDER.glob("*.py"))
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@every_file
def test_solvers_import_only_support_and_each_other(path):
    modules = {
        node.module
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    ours = {module for module in modules if module.split(".")[0] == "polymargin"}
    assert {module.split(".")[1] for module in ours} <= {"solvers", "support"}


@every_file
def test_solvers_name_no_joint_loss(path):
    assert not re.search(r"weston|watkins|crammer|singer", path.read_text(), re.IGNORECASE)


def test_every_public_name_is_there():
    for name in solvers.__all__:
        assert getattr(solvers, name) is not None
    assert set(solvers.__all__) <= set(dir(solvers))
