"""The table of kernels: it agrees with the core, and whoever needs a kernel asks it."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from reference.kernels import kernel_matrix
from scipy import sparse

from polymargin import _core
from polymargin.kernels import (
    KERNELS,
    Kernel,
    KernelName,
    formula_values,
    is_precomputed,
    kernel_documentation,
    names_of_functions,
    resolve_gamma,
    uses_gamma,
)

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = names_of_functions()
VALUES = {"gamma": 0.3, "coef0": 0.5, "degree": 3}
OTHERS = {"gamma": 0.4, "coef0": 0.7, "degree": 2}
X = np.random.default_rng(0).normal(size=(12, 5))


def spec(name, **changed):
    numbers = VALUES | changed
    return Kernel(name, numbers["gamma"], numbers["coef0"], numbers["degree"])


def core_values(kernel):
    return kernel.matrix(X, np.arange(len(X)), X, np.arange(len(X)), 1)


# The table and the core.


def test_the_core_has_the_kernels_of_the_table_and_no_others():
    assert {name: entry.core for name, entry in KERNELS.items()} == {kind.name: kind for kind in _core.KernelType}
    assert set(KERNELS) == set(get_args(KernelName))


def test_numbers_are_distinct_and_libsvms_come_first():
    assert [entry.number for entry in KERNELS.values()] == list(range(len(KERNELS)))
    assert [name for name, entry in KERNELS.items() if entry.libsvm] == list(KERNELS)[:5]


@pytest.mark.parametrize("name", KERNELS)
def test_the_core_reads_what_the_table_says(name):
    assert Kernel(name, 0.3, 0.0, 3).spec.reads is KERNELS[name].reads


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("parameter", VALUES)
def test_a_kernel_reads_the_parameters_of_its_entry_and_no_others(name, parameter):
    """A kernel whose entry lacks gamma would be trained with gamma = 0."""
    changed = spec(name, **{parameter: OTHERS[parameter]})
    for values in (core_values, lambda kernel: formula_values(kernel, X, X)):
        assert np.array_equal(values(spec(name)), values(changed)) == (parameter not in KERNELS[name].parameters)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_the_formula_and_the_core_and_the_reference_agree(name, make):
    kernel, data = spec(name), make(np.where(np.abs(X) > 0.5, X, 0.0))
    plain = data.toarray() if sparse.issparse(data) else data
    expected = kernel_matrix(plain, plain, name, **VALUES)
    rows = np.arange(len(X))
    np.testing.assert_allclose(formula_values(kernel, data, data), expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(kernel.matrix(data, rows, data, rows, 1), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(data, rows), expected.diagonal(), rtol=1e-13, atol=1e-14)
    norms = (plain**2).sum(axis=1)
    np.testing.assert_allclose([kernel.spec.diagonal(v) for v in norms], expected.diagonal(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_positive_kernels_are_those_between_zero_and_one(name):
    far = np.vstack([X, X + 50])
    values = formula_values(spec(name), far, far)
    assert KERNELS[name].positive == bool(values.min() >= 0 and values.max() <= 1 and values.min() < 1e-10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_kernel_reads_grows_with_its_dimension(name):
    kernel = replace(spec(name), gamma=1.0, coef0=0.0, degree=1)
    larger = replace(kernel, gamma=3.0 ** KERNELS[name].dimension)
    if KERNELS[name].needs_gamma:
        np.testing.assert_allclose(core_values(larger), kernel.matrix(3 * X, np.arange(12), 3 * X, np.arange(12), 1))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if KERNELS[name].needs_gamma])
def test_gamma_scale_makes_values_independent_of_the_unit(name):
    rows = np.arange(len(X))
    for factor in (1e-3, 1e3):
        ours = Kernel.resolved(name, "scale", 0.0, 1, factor * X, None)
        np.testing.assert_allclose(
            ours.matrix(factor * X, rows, factor * X, rows, 1),
            Kernel.resolved(name, "scale", 0.0, 1, X, None).matrix(X, rows, X, rows, 1),
            rtol=1e-10,
        )


def test_gamma_is_resolved_for_those_that_read_it():
    assert resolve_gamma("rbf", "scale", X, None) == pytest.approx(1 / (5 * X.var()))
    assert resolve_gamma("laplacian", "scale", X, None) == pytest.approx(1 / (5 * X.std()))
    assert resolve_gamma("laplacian", "auto", X, None) == 0.2
    assert resolve_gamma("linear", "scale", X, None) == 0.0
    assert resolve_gamma(np.dot, "scale", X, None) == 0.0
    assert uses_gamma("poly")
    assert not uses_gamma("precomputed")
    assert not uses_gamma(max)
    assert is_precomputed("precomputed")
    assert not is_precomputed("rbf")
    assert not is_precomputed(max)


def test_an_entry_that_does_not_fit_together_is_refused():
    rbf = KERNELS["rbf"]
    with pytest.raises(ValueError, match="no parameter width"):
        replace(rbf, parameters=("width",))
    with pytest.raises(ValueError, match="has a term if, and only if"):
        replace(rbf, term=lambda x, y: x * y)
    with pytest.raises(ValueError, match="has a term if, and only if"):
        replace(KERNELS["laplacian"], term=None)
    with pytest.raises(ValueError, match="ONNX needs the term"):
        replace(KERNELS["laplacian"], onnx_term=None)


# Nobody else names a kernel.


def sources():
    table = {ROOT / "src/polymargin/kernels/table.py", *(ROOT / "src/core/kernel").glob("function.?pp")}
    for suffix in ("*.py", "*.cpp", "*.hpp"):
        yield from (path for path in (ROOT / "src").rglob(suffix) if path not in table)


def test_only_the_table_and_the_function_in_the_core_name_a_kernel():
    found = [path for path in sources() if re.search("laplacian", path.read_text(), re.IGNORECASE)]
    assert not found


def test_documentation_lists_the_table():
    text = kernel_documentation()
    for name, entry in KERNELS.items():
        assert f'"{name}"' in text
        assert entry.precomputed or f"``{entry.formula}``" in text
    assert max(map(len, text.splitlines())) <= 116


ADDED = """
from dataclasses import replace
from polymargin.kernels import KERNELS

KERNELS["bell"] = replace(KERNELS["rbf"], name="bell", number=6, libsvm=None, onnx=None, formula="exp(-gamma d)")
"""

USED = r"""
import sys, tempfile
from pathlib import Path
import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner
import polymargin
from polymargin import certify, compare, load_model, save_model
from polymargin.cli._app import app
from polymargin.features import CholeskyFeatures
from polymargin.selection import KernelSearchCV
from polymargin.storage import export_libsvm, export_onnx

X, y = load_iris(return_X_y=True)
folder = Path(tempfile.mkdtemp())
machines = [getattr(polymargin, name) for name in polymargin.__all__ if name.endswith("SVC")]
for Machine in machines:
    ours, same = Machine(kernel="bell").fit(X, y), Machine(kernel="rbf").fit(X, y)
    assert ours.model_.kernel.gamma == same.model_.kernel.gamma > 0, Machine
    np.testing.assert_array_equal(ours.decision_function(X), same.decision_function(X))
    assert '"bell"' in Machine.__doc__ and "exp(-gamma d)" in Machine.__doc__
    save_model(ours, folder / "model.pm")
    np.testing.assert_array_equal(load_model(folder / "model.pm").decision_function(X), same.decision_function(X))
    if Machine.__name__ not in ("SoftmaxSVC", "GenSVC"):
        assert certify(ours, X, y).duality_gap < 1e-2, Machine
machine = polymargin.OneVsOneSVC(kernel="bell").fit(X, y)
with pytest.raises(ValueError, match="LIBSVM has no kernel 'bell'"):
    export_libsvm(machine, folder / "model.txt")
with pytest.raises(ValueError, match="no ONNX graph of the kernel 'bell'"):
    export_onnx(machine, folder / "model.onnx")
with pytest.raises(ValueError, match="'kernel' parameter"):
    polymargin.OneVsOneSVC(kernel="whistle").fit(X, y)
assert CholeskyFeatures(5, kernel="bell").fit_transform(X).shape == (150, 5)
search = KernelSearchCV(polymargin.OneVsOneSVC(kernel="bell"), {"C": [1, 10], "gamma": [0.1, 1]}, cv=3).fit(X, y)
assert search.best_score_ > 0.9
np.savetxt(folder / "train.csv", np.column_stack([X, y]), delimiter=",", fmt="%g")
runner = CliRunner()
for kernel in ("bell", "6"):
    done = runner.invoke(app, ["train", "-t", kernel, "--label", "last", str(folder / "train.csv"), str(folder / "m")])
    assert done.exit_code == 0, done.output
    assert load_model(folder / "m").kernel == "bell"
assert "6 bell" in runner.invoke(app, ["train", "--help"], env={"COLUMNS": "200"}).output
assert compare(X, y, machines=["one-vs-one"], kernel="bell", grid={"C": [1], "gamma": [1]}, cv=3)
"""


def test_a_kernel_is_added_by_touching_the_table_and_nothing_else(tmp_path):
    """The made-up kernel has a function of the core that is there; all the rest is its entry."""
    script = tmp_path / "added.py"
    script.write_text(ADDED + USED)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
