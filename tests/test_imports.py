"""The Python package as a tree of folders: who imports whom, how long functions are, what stands above an estimator."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import polymargin

PACKAGE = Path(polymargin.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# From the bottom to the top: a folder, or module, imports only what stands before it.
LAYERS = [
    "support",
    "costs",
    "losses",
    "kernels",
    "documentation",
    "features",
    "solvers",
    "models",
    "decision",
    "formulations",
    "estimators",
    "certificate",
    "storage",
    "selection",
    "plots",
    "comparison",
    "cli",
    "__init__",
    "__main__",
]
# What may import the compiled core; everybody else asks these.
USES_CORE = {"support", "losses", "kernels", "models", "formulations", "storage", "selection", "comparison", "cli"}
LONGEST = 60  # lines of a function, its docstring aside
ESTIMATORS = [getattr(polymargin, name) for name in polymargin.__all__ if name.endswith("SVC")]


def layer(path):
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def module(path):
    parts = ["polymargin", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module(path) for path in FILES}


def imported(tree):
    """Yield the modules of the package that a syntax tree imports, wherever it does so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("polymargin."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "polymargin":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in MODULES or name == "polymargin._core" else node.module


def at_import(path):
    """Return the modules that are imported when a file is, those for type checkers aside."""
    body = [node for node in ast.parse(path.read_text()).body if not is_for_type_checkers(node)]
    statements = [node for node in body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return set(imported(ast.Module(body=statements, type_ignores=[])))


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


every_file = pytest.mark.parametrize("path", [pytest.param(p, id=str(p.relative_to(PACKAGE))) for p in FILES])


@every_file
def test_imports_go_down(path):
    own = layer(path)
    for name in imported(ast.parse(path.read_text())):
        if name == "polymargin._core":
            assert own in USES_CORE, f"{own} may not import the compiled core"
        elif name != "polymargin":  # for the version, or a public name by the command
            other = name.split(".")[1]
            assert other == own or LAYERS.index(other) < LAYERS.index(own), f"{own} may not import {name}"


@every_file
def test_private_modules_stay_in_their_folder(path):
    for name in imported(ast.parse(path.read_text())):
        parts = name.split(".")
        private = any(part.startswith("_") for part in parts[2:])
        assert not private or parts[1] == layer(path), name


def test_no_module_is_imported_while_it_is():
    order = TopologicalSorter({module(path): at_import(path) & MODULES - {"polymargin"} for path in FILES})
    assert len(list(order.static_order())) >= len(MODULES) - 1  # CycleError names a cycle


@every_file
def test_only_formulations_know_solvers(path):
    users = {"solvers", "formulations", "certificate"}
    names = set(imported(ast.parse(path.read_text())))
    assert layer(path) in users or not any(name.split(".")[1:2] == ["solvers"] for name in names)


@every_file
def test_functions_are_short(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            has_docstring = ast.get_docstring(node) is not None
            first = node.body[min(has_docstring, len(node.body) - 1)].lineno
            assert node.end_lineno - first < LONGEST, node.name


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_one_class_of_ours_stands_above_an_estimator(Estimator):
    ours = [kind for kind in Estimator.__mro__ if kind.__module__.startswith("polymargin.estimators")]
    assert [kind.__name__ for kind in ours] == [Estimator.__name__, "MulticlassSVC"]
    assert not [kind for kind in Estimator.__mro__ if kind.__module__.startswith("polymargin") and kind not in ours]


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_an_estimator_is_a_formulation_a_model_and_a_decision(Estimator):
    own = {name for name, value in vars(Estimator).items() if callable(value) or isinstance(value, property)}
    assert {"formulation", "decision_rule"} <= own
