"""The layers of the project, read from its files: who may include, import or name whom."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import polymargin
import polymargin.estimators

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "src" / "core"
BINDINGS = ROOT / "src" / "bindings"
PACKAGE = ROOT / "src" / "polymargin"

CORE_FILES = sorted(p for p in CORE.rglob("*") if p.suffix in {".hpp", ".cpp", ".h"})
HEADERS = [p for p in CORE_FILES if p.suffix in {".hpp", ".h"}]
BINDING_FILES = sorted(p for p in BINDINGS.rglob("*") if p.suffix in {".hpp", ".cpp", ".h"})
PYTHON_FILES = sorted(PACKAGE.rglob("*.py"))

# What a folder of the core may include besides the standard library: itself and what lies below it.
MAY_INCLUDE = {
    "support": {"support"},
    "kernel": {"kernel", "support"},
    "linear": {"linear", "kernel", "support"},
    "problem": {"problem", "kernel", "support"},
    "solver": {"solver", "problem", "linear", "kernel", "support"},
    "machine": {"machine", "solver", "problem", "linear", "kernel", "support"},
    "storage": {"storage", "support"},
}
MACHINE_NAMES = re.compile(
    r"one.?vs.?(one|rest|all)|one.?against|weston|watkins|crammer|singer|softmax|uncertainty|linear.?program"
    r"|adag\b|\bdag\b|\bvotes?\b",
    re.IGNORECASE,
)


def relative(paths):
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in paths]


def includes(path):
    """Return what a C++ file includes, as written."""
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)


def imports(path):
    """Return the dotted names that a Python file imports anywhere in it; relative ones start with dots."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found |= {f"{module}.{alias.name}" for alias in node.names} | {module}
    return found


def in_folder(path, base):
    return path.relative_to(base).parts[0]


def test_the_layers_are_there():
    assert {in_folder(p, CORE) for p in CORE_FILES} >= {"kernel", "solver", "support"}
    assert BINDING_FILES
    assert (PACKAGE / "__init__.py").exists()
    assert list((PACKAGE / "estimators").glob("*.py"))
    assert list((PACKAGE / "decision").glob("*.py"))


@pytest.mark.parametrize("path", relative(CORE_FILES))
def test_core_knows_no_python(path):
    bad = [name for name in includes(path) if re.match(r"Python\.h|nanobind|pybind11|numpy/", name)]
    assert not bad


@pytest.mark.parametrize("path", relative(CORE_FILES))
def test_core_folders_include_only_what_lies_below(path):
    own = in_folder(path, CORE)
    for name in includes(path):
        parts = set(Path(name).parts[:-1])
        assert not parts & {"bindings"}
        assert parts & MAY_INCLUDE.keys() <= MAY_INCLUDE[own], f"{own} may not include {name}"


@pytest.mark.parametrize("path", relative(p for p in CORE_FILES if in_folder(p, CORE) == "solver"))
def test_a_solver_names_no_machine(path):
    assert not MACHINE_NAMES.search(path.read_text())


@pytest.mark.parametrize("path", relative(p for p in CORE_FILES if in_folder(p, CORE) == "problem"))
def test_a_problem_has_no_threads(path):
    assert not re.search(r"std::(jthread|thread|async|mutex)\b|thread_pool", path.read_text())


@pytest.mark.parametrize("path", relative(HEADERS))
def test_headers_are_short(path):
    assert len(path.read_text().splitlines()) <= 400


def functions_of(path):
    """Yield the first line and the length of each function of a C++ file, by its braces."""
    depth, begin, outside = 0, None, 0
    head = re.compile(r"\)\s*(const|noexcept|override|requires[^{]*|->[\w:<>&\s]+)*\s*(:\s.*)?\{\s*$")
    statement = re.compile(r"\s*(if|for|while|switch|else|do|namespace|struct|class|\})")
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code = re.sub(r'//.*|"(\\.|[^"])*"', "", line)
        if begin is None and head.search(code) and not statement.match(code) and "[" not in code:
            begin, outside = number, depth
        depth += code.count("{") - code.count("}")
        if begin is not None and depth <= outside:
            yield begin, number - begin + 1
            begin = None


@pytest.mark.parametrize("path", relative(CORE_FILES + BINDING_FILES))
def test_functions_are_short(path):
    assert not [(line, length) for line, length in functions_of(path) if length > 60]


def test_functions_are_found():
    assert sum(1 for path in CORE_FILES for _ in functions_of(path)) > 400


@pytest.mark.parametrize("path", relative(BINDING_FILES))
def test_binding_files_are_short(path):
    assert len(path.read_text().splitlines()) < 200


def code_lines(paths):
    """Return the lines that are neither empty, nor comments, nor directives of the preprocessor."""
    lines = [line.strip() for path in paths for line in path.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith(("//", "#"))]


# The aim is 5 %. A typed boundary has a line for each field and argument, with its name and documentation in Python: a
# quarter of the bindings. The rest is that of the classes themselves, and small beside what it replaced: arrays that
# own their memory one by one need a struct of arrays for each result. More than this is arithmetic that belongs into
# the core.
def test_bindings_are_a_small_part_of_the_core():
    core, bindings = len(code_lines(CORE_FILES)), code_lines(BINDING_FILES)
    assert len(bindings) <= 0.095 * core
    assert len([line for line in bindings if '"' not in line]) <= 0.07 * core


def test_bindings_hold_no_arithmetic():
    text = "\n".join(path.read_text() for path in BINDING_FILES)
    assert not re.search(r"std::(sqrt|exp|log|max|min|accumulate|inner_product|clamp)\b", text)


@pytest.mark.parametrize("path", relative(p for p in PYTHON_FILES if in_folder(p, PACKAGE) == "estimators"))
def test_an_estimator_holds_no_arithmetic(path):
    forbidden = ("scipy.linalg", "scipy.optimize", "scipy.spatial", "scipy.special", "numpy.linalg")
    forbidden += ("sklearn.svm", "sklearn.metrics.pairwise")
    bad = [name for name in imports(path) if name.startswith(forbidden)]
    assert not bad
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in {("np", "linalg"), ("np", "exp"), ("np", "einsum")}


@pytest.mark.parametrize("path", relative(p for p in PYTHON_FILES if in_folder(p, PACKAGE) == "decision"))
def test_a_decision_knows_no_machine(path):
    assert not [name for name in imports(path) if "estimators" in name.split(".")]


# The command is made of typer and starts with nothing else; the package does not import it.
@pytest.mark.parametrize("path", relative(p for p in PYTHON_FILES if in_folder(p, PACKAGE) != "cli"))
def test_optional_libraries_are_imported_where_they_are_used(path):
    tree = ast.parse(path.read_text())
    top = {
        (alias.name if isinstance(node, ast.Import) else node.module or "").split(".")[0]
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    command = (
        {"typer"} if in_folder(path, PACKAGE) in ("cli", "__main__.py") else set()
    )  # made of it, imported by nobody
    assert not top & ({"rich", "pandas", "polars", "matplotlib", "jinja2", "onnx", "skl2onnx", "typer"} - command)


def modules_after(statement):
    program = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in run.stdout.split()}


def test_importing_adds_no_heavy_library_to_what_scikit_learn_imports():
    before = modules_after("import sklearn.svm, joblib, threadpoolctl, scipy.sparse")
    added = modules_after("import polymargin") - before
    assert "polymargin" in added
    assert not added & {"rich", "pandas", "polars", "matplotlib", "jinja2", "typer", "hypothesis", "pytest"}
    assert not added & {"polymargin.comparison", "polymargin.storage", "polymargin.certificate", "highspy"}


@pytest.mark.parametrize("package", [polymargin, polymargin.estimators], ids=lambda package: package.__name__)
def test_names_that_are_loaded_when_asked_are_there_from_the_start(package):
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is getattr(package, name)
    with pytest.raises(AttributeError, match="has no attribute 'NothingSVC'"):
        _ = package.NothingSVC
