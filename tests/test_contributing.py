"""What CONTRIBUTING.md says, done: made-up parts of every kind, added as its sections tell.

Each test names the section that it keeps true. A kernel is added in tests/kernels/test_table.py, and a loss that no
solver of the core knows in tests/core/solver/test_foreign_loss.cpp.
"""

import pickle
import re
import subprocess
import sys
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils._param_validation import Interval

from polymargin import (
    CrammerSingerSVC,
    OneVsOneSVC,
    WestonWatkinsSVC,
    _core,
    certificate,
    certify,
    compare,
    load_model,
    save_model,
)
from polymargin.decision import LargestScore
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.declaration import Fitted, estimator
from polymargin.formulations import Joint, RunOptions, Solution, TrainingSet
from polymargin.formulations.formulation import expansion, outcome
from polymargin.kernels import Kernel, KernelSession
from polymargin.losses import JointLoss
from polymargin.models import ClassLayout, KernelModel, Outcome
from polymargin.models.declared import declare
from polymargin.selection import KernelSearchCV
from polymargin.solvers import Limits
from polymargin.storage import safetensors_file
from polymargin.support.numeric import relative_gap

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


# The files and names that the guide is about.


def paths_in_the_guide():
    """Return what the guide has in backticks and looks like a path of the repository."""
    folders = r"(?:src|tests|docs|tools|benchmarks|examples)/"
    files = r"(?:CHANGELOG|README|CODE_OF_CONDUCT)\.md|pyproject\.toml"
    return sorted(
        {path for path in re.findall(r"`([^`\n]+)`", GUIDE) if re.fullmatch(rf"{folders}[\w./-]*|{files}", path)}
    )


@pytest.mark.parametrize("path", paths_in_the_guide())
def test_every_path_that_the_guide_names_is_there(path):
    assert (ROOT / path).exists()


def test_the_guide_names_paths_of_every_section():
    sections = re.split(r"^## ", GUIDE, flags=re.MULTILINE)
    for kind in ("a kernel", "a loss", "a decision", "a solver", "a formulation", "an estimator"):
        section = next(text for text in sections if text.startswith(f"How to add {kind}\n"))
        assert re.findall(r"`(src/polymargin/[^`]+)`", section), kind
        assert "```python" in section, kind


def test_the_guide_has_every_folder_of_the_package():
    for base in ("src/polymargin", "src/core"):
        for folder in (ROOT / base).iterdir():
            if folder.is_dir() and folder.name not in ("__pycache__", "storage"):
                assert f"| `{base}/{folder.name}/` |" in GUIDE


WORDS = {  # that the guide tells to touch, and where
    "src/polymargin/kernels/table.py": ("_ENTRIES", "KernelName", "KernelEntry"),
    "src/polymargin/losses.py": ("JointLoss", "CoreLoss"),
    "src/core/problem/multiclass.hpp": ("RowLoss", "MulticlassLoss", "RowLimits", "exact_step", "SimplexLoss"),
    "src/core/problem/losses.hpp": ("AnyLoss",),
    "src/core/kernel/function.hpp": ("KernelType", "KernelSpec"),
    "src/core/kernel/function.cpp": ("Kernels", "Rbf", "Laplacian"),
    "src/core/machine/train_linear.cpp": ("LinearMethod",),
    "src/polymargin/decision/rule.py": ("PAIR_DECISIONS", "DecisionRule"),
    "src/polymargin/decision/coupling.py": ("PairProbabilities",),
    "src/polymargin/support/typing.py": ("Decision",),
    "src/polymargin/comparison/contestants.py": ("DECISIONS", "SAME_FIT", "NAMES"),
    "src/polymargin/certificate.py": ("_CERTIFIERS",),
    "src/polymargin/solvers/__init__.py": ("_MODULES",),
    "src/polymargin/solvers/limits.py": ("Limits", "Progress"),
    "src/polymargin/formulations/pairs.py": ("problems", "is_family", "family"),
    "src/polymargin/formulations/primal_softmax.py": ("PrimalOutcome", "declare"),
    "tests/core/fixtures.hpp": ("plain_kernel",),
}


@pytest.mark.parametrize("path", WORDS)
def test_what_the_guide_tells_to_touch_is_where_it_says(path):
    text = (ROOT / path).read_text()
    for word in WORDS[path]:
        assert re.search(rf"\b{word}\b", text), word
        assert re.search(rf"\b{word}\b", GUIDE), word


# How to add a decision: the entry in the table is all that estimators, searches, commands and files need.

DECISION = r"""
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from polymargin.decision import PAIR_DECISIONS, pair_list, pair_values
from polymargin.decision.voting import pair_decision_function, second_of_two


@dataclass(frozen=True, eq=False)
class LargestSum:
    '''The class whose summed values are the largest.'''

    n_classes: int

    def public_scores(self, scores):
        return scores

    def decide(self, values):
        if self.n_classes == 2:
            return second_of_two(values[:, 0], None)
        sums = np.zeros((len(values), self.n_classes))
        for (i, j), value in zip(pair_list(self.n_classes), values.T, strict=True):
            sums[:, i] += value
            sums[:, j] -= value
        return sums.argmax(axis=1)

    def predict(self, model, X, threads):
        return self.decide(pair_values(model, X, threads))

    def decision_function(self, model, X, threads):
        values = pair_values(model, X, threads)
        return pair_decision_function(self.decide(values), values, model)


PAIR_DECISIONS["sums"] = lambda layout, class_order, sigmoids: LargestSum(layout.n_classes)

from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from typer.testing import CliRunner
from polymargin import OneVsOneSVC, certify, compare, load_model, save_model
from polymargin.cli._app import app
from polymargin.selection import KernelSearchCV
from polymargin.storage import export_libsvm, export_onnx

X, y = load_iris(return_X_y=True)
folder = Path(tempfile.mkdtemp())
machine = OneVsOneSVC(decision="sums").fit(X, y)
assert type(machine.decision_rule) is LargestSum
predicted = machine.predict(X)
sums = np.zeros((len(X), 3))
for p, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
    sums[:, i] += machine.pairwise_decision_function(X)[:, p]
    sums[:, j] -= machine.pairwise_decision_function(X)[:, p]
np.testing.assert_array_equal(predicted, sums.argmax(axis=1))
np.testing.assert_array_equal(machine.decision_function(X).argmax(axis=1), predicted)
np.testing.assert_array_equal(machine.predict_by("sums", X), predicted)
np.testing.assert_array_equal(OneVsOneSVC().fit(X, y).predict_by("sums", X), predicted)
np.testing.assert_array_equal(machine.predict_by("votes", X), OneVsOneSVC().fit(X, y).predict(X))
assert certify(machine, X, y).duality_gap < 1e-6
two = OneVsOneSVC(decision="sums").fit(X[50:], y[50:])
np.testing.assert_array_equal(two.predict(X[50:]), OneVsOneSVC().fit(X[50:], y[50:]).predict(X[50:]))

save_model(machine, folder / "model")
loaded = load_model(folder / "model")
assert loaded.decision == "sums"
np.testing.assert_array_equal(loaded.predict(X), predicted)
with pytest.raises(ValueError, match="LIBSVM decides by votes"):
    export_libsvm(machine, folder / "libsvm")
with pytest.raises(ValueError, match="no ONNX graph of decision='sums'"):
    export_onnx(machine, folder / "onnx")
with pytest.raises(ValueError, match="'decision' parameter"):
    OneVsOneSVC(decision="whistle").fit(X, y)

grid = {"C": [0.1, 10], "gamma": [0.1, 1.0]}
ours = KernelSearchCV(OneVsOneSVC(decision="sums"), grid, cv=3).fit(X, y)
theirs = GridSearchCV(OneVsOneSVC(decision="sums"), grid, cv=3).fit(X, y)
np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
found = compare(X, y, machines=[OneVsOneSVC(decision="sums"), OneVsOneSVC()], grid=grid, cv=3)
assert {row["machine"] for row in found.table} == {"sums", "one-against-one"}
assert found.rates["sums"] > 0.9

np.savetxt(folder / "train.csv", np.column_stack([X, y]), delimiter=",", fmt="%g")
options = ["--set", "decision=sums", "--label", "last", str(folder / "train.csv"), str(folder / "m")]
done = CliRunner().invoke(app, ["train", *options])
assert done.exit_code == 0, done.output
assert load_model(folder / "m").decision == "sums"
done = CliRunner().invoke(app, ["predict", "--label", "last", str(folder / "train.csv"), str(folder / "m")])
assert done.exit_code == 0, done.output
"""


def test_a_decision_is_added_by_an_object_and_an_entry_in_the_table(tmp_path):
    """In a process of its own: the table is read when estimators are defined."""
    script = tmp_path / "added.py"
    script.write_text(DECISION)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


# How to add a solver: arrays and limits in, a frozen result out.


@dataclass(frozen=True, eq=False)
class RidgeResult:
    """Coefficients of shape (n, k), and how they came about."""

    coefficients: np.ndarray
    primal: float
    dual: float
    status: str
    iterations: int


def solve_ridge(K: np.ndarray, targets: np.ndarray, cost_bounds: np.ndarray, limits: Limits) -> RidgeResult:
    r"""Minimise :math:`\tfrac12 \operatorname{tr}(A'KA) + \tfrac12 \sum_i C_i |(KA)_i - t_i|^2` by a linear system.

    The dual maximises :math:`\operatorname{tr}(T'A - \tfrac12 A'KA) - \tfrac12 \sum_i |A_i|^2 / C_i`.
    """
    A = np.linalg.solve(K + np.diag(1.0 / cost_bounds), targets)
    products = K @ A
    square = 0.5 * np.sum(A * products)
    primal = square + 0.5 * np.sum(cost_bounds[:, None] * (products - targets) ** 2)
    dual = np.sum(targets * A) - square - 0.5 * np.sum(A**2 / cost_bounds[:, None])
    if limits.progress is not None:
        limits.progress(1, 1, 1, relative_gap(primal, dual))
    return RidgeResult(A, primal, dual, "converged", 1)


# How to add a formulation: a value with four methods; what its outcome has beyond others is declared.


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgeOutcome(Outcome):
    """The largest residual beside how the problem was solved."""

    residual: float = declare("residual_", "number", report=True)


@dataclass(frozen=True)
class Ridge:
    """A squared loss of every score, with targets 1 and -1 times a strength."""

    strength: float = 1.0

    def layout(self, n_classes: int) -> ClassLayout:
        return ClassLayout(n_classes, n_classes)

    def n_problems(self, n_classes: int) -> int:
        return 1

    def measure(self, training: TrainingSet, kernel: Kernel) -> str:
        return "gap"

    def targets(self, training: TrainingSet) -> np.ndarray:
        return self.strength * (2.0 * (training.labels[:, None] == np.arange(training.n_classes)) - 1.0)

    def solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        n = np.arange(training.n_examples)
        budget = options.budget_bytes(training.X)
        values = KernelSession(kernel, training.X, training.order, budget, options.threads)
        limits = Limits(tolerance=options.tolerance, threads=options.threads, progress=options.progress)
        K, targets = values.block(n, n), self.targets(training)
        result = solve_ridge(K, targets, training.cost_bounds, limits)
        layout = self.layout(training.n_classes)
        model = KernelModel(
            **expansion(training, kernel, n),
            coefficients=np.ascontiguousarray(result.coefficients.T),
            intercept=layout.kept(np.zeros(layout.n_scores)),
            layout=layout,
            tolerance=options.tolerance,
        )
        ended = outcome(
            primal=result.primal,
            dual=result.dual,
            status=result.status,
            iterations=result.iterations,
            solver="ridge",
            evaluations=values.evaluations,
        )
        residual = float(np.abs(K @ result.coefficients - targets).max())
        return Solution(model=model, outcome=RidgeOutcome(**vars(ended), residual=residual))


# How to add an estimator: parameters, a formulation, a decision.


@estimator
class RidgeSVC(MulticlassSVC):
    """Kernel ridge regression on the classes.

    Parameters
    ----------
    <C>
    strength : float, default=1.0
        Of the targets.
    <parameters>
    """

    strength: float = 1.0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "strength": [Interval(Real, 0, None, closed="neither")],
    }

    @classmethod
    def part_types(cls):
        return super().part_types() | {"outcome_": RidgeOutcome}

    residual_: ClassVar[Fitted[float]] = Fitted()

    @property
    def formulation(self) -> Ridge:
        """What is optimised."""
        return Ridge(self.strength)

    @property
    def decision_rule(self) -> LargestScore:
        """The largest score wins."""
        return LargestScore()


def test_an_estimator_has_its_parameters_and_those_of_all():
    assert list(RidgeSVC().get_params(deep=False)).count("strength") == 1
    assert {"C", "kernel", "tol", "strength"} <= set(RidgeSVC._get_param_names())
    assert "<C>" not in RidgeSVC.__doc__
    assert clone(RidgeSVC(strength=2.0)).strength == 2.0
    with pytest.raises(ValueError, match="'strength' parameter"):
        RidgeSVC(strength=-1.0).fit(X, Y)
    with pytest.raises(TypeError, match=r"RidgeSVC\(\)"):
        RidgeSVC(power=2)


@pytest.mark.parametrize("labels", [Y, NAMES, Y > 0], ids=["numbers", "texts", "two classes"])
def test_a_formulation_with_a_solver_in_python_makes_an_estimator(labels):
    machine = RidgeSVC(C=10, gamma=0.5).fit(X, labels)
    assert machine.score(X, labels) > 0.95
    scores = machine.decision_function(X)
    chosen = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    np.testing.assert_array_equal(machine.classes_[chosen], machine.predict(X))
    assert machine.converged_
    assert machine.duality_gap_ < 1e-9
    assert machine.solver_used_ == "ridge"
    assert machine.residual_ == machine.outcome_.residual > 0
    assert not machine.dual_coef_.flags.writeable


def test_the_optimum_is_that_of_the_plain_system():
    machine = RidgeSVC(C=4.0, gamma=0.5).fit(X, Y)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    targets = 2.0 * (Y[:, None] == np.arange(3)) - 1.0
    np.testing.assert_allclose(
        machine.decision_function(X), K @ np.linalg.solve(K + np.eye(len(Y)) / 4.0, targets), atol=1e-8
    )


def test_what_all_estimators_have_comes_with_it(monkeypatch, tmp_path, capsys):
    machine = RidgeSVC(gamma=0.5).fit(X, NAMES)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).predict(X), machine.predict(X))
    doubled = RidgeSVC(gamma=0.5).fit(X, Y, sample_weight=np.full(len(Y), 2.0))
    np.testing.assert_allclose(doubled.decision_function(X), RidgeSVC(C=2, gamma=0.5).fit(X, Y).decision_function(X))
    RidgeSVC(verbose=1).fit(X, Y)
    assert "RidgeSVC" in capsys.readouterr().err
    before = vars(machine).copy()
    with pytest.raises(ValueError, match="NaN"):
        machine.fit(np.full((3, 2), np.nan), [0, 1, 2])
    assert vars(machine) == before
    machine.dual_coef_ = np.ones((2, 2))
    with pytest.raises(ValueError, match="dual_coef_ has shape"):
        machine.predict(X)


def test_an_estimator_that_is_exported_can_be_saved(monkeypatch, tmp_path):
    machine = RidgeSVC(strength=2.0).fit(X, NAMES)
    with pytest.raises(TypeError, match="saves the machines of polymargin"):
        save_model(machine, tmp_path / "model")
    monkeypatch.setitem(safetensors_file.MACHINES, "RidgeSVC", RidgeSVC)  # what polymargin.estimators exports
    save_model(machine, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert (type(loaded), loaded.strength, loaded.residual_) == (RidgeSVC, 2.0, machine.residual_)
    np.testing.assert_array_equal(loaded.decision_function(X), machine.decision_function(X))


def test_an_estimator_goes_into_searches_and_comparisons():
    grid = {"C": [0.1, 10.0], "gamma": [0.1, 1.0]}
    search = KernelSearchCV(RidgeSVC(), grid, cv=3).fit(X, Y)
    assert search.best_score_ > 0.9
    found = compare(X, Y, machines=[RidgeSVC(), CrammerSingerSVC()], grid=grid, cv=3)
    assert {row["machine"] for row in found.table} == {"RidgeSVC", "Crammer-Singer"}
    assert {row["status"] for row in found.table} == {"done"}


def test_a_formulation_is_certified_by_what_is_registered(monkeypatch):
    machine = RidgeSVC().fit(X, Y)
    with pytest.raises(TypeError, match="certify needs"):
        certify(machine, X, Y)

    def certified(*_: Any) -> certificate.Certificate:
        return certificate.Certificate(1.0, 1.0, 0.0)

    monkeypatch.setattr(certificate, "_CERTIFIERS", [*certificate._CERTIFIERS, (Ridge, certified)])
    assert certify(machine, X, Y).duality_gap == 0.0


# How to add a loss, its third and fourth step: a value, and a formulation made of it.


@dataclass(frozen=True)
class WideMargin(JointLoss):
    """Weston and Watkins' loss with the margin 3, whose arithmetic the core has."""

    name: ClassVar[str] = "wide-margin"
    on_simplex: ClassVar[bool] = False
    margin: float = 3.0

    def values(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        own = np.arange(len(labels)), labels
        hinges = np.maximum(0.0, self.margin - scores[own][:, None] + scores)
        return hinges.sum(axis=1) - hinges[own]

    def excess(self, coefficients: np.ndarray, labels: np.ndarray, cost_bounds: np.ndarray) -> float:
        wrong = np.arange(coefficients.shape[1]) != labels[:, None]
        outside = np.maximum(coefficients, -coefficients - cost_bounds[:, None])
        return float(outside[wrong].max(initial=0.0))

    def active_hinges(self, hinges: np.ndarray) -> np.ndarray:
        return np.flatnonzero(hinges > 0)

    @property
    def core(self) -> _core.WestonWatkins:
        return _core.WestonWatkins(self.margin)


@estimator
class WideMarginSVC(MulticlassSVC):
    """A machine of one loss.

    Parameters
    ----------
    <C>
    <parameters>
    """

    bias: str | None = None
    solver: str = "auto"

    @property
    def formulation(self) -> Joint:
        """What is optimised."""
        return Joint(WideMargin(), self.bias, self.solver)

    @property
    def decision_rule(self) -> LargestScore:
        """The largest score wins."""
        return LargestScore()


SOLVERS = ["decomposition", "sequential-dual", "cutting-plane"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_loss_as_a_value_is_solved_and_certified(solver):
    kernel = "rbf" if solver == "decomposition" else "linear"
    ours = WideMarginSVC(solver=solver, kernel=kernel, tol=1e-6).fit(X, Y)
    same = WestonWatkinsSVC(margin=3.0, bias=None, solver=solver, kernel=kernel, tol=1e-6).fit(X, Y)
    np.testing.assert_array_equal(ours.decision_function(X), same.decision_function(X))
    proof = certify(ours, X, Y)
    assert proof.duality_gap < 1e-5
    assert proof.infeasibility < 1e-12
    assert ours.score(X, Y) > 0.9


def test_a_loss_that_is_no_simplex_is_refused_where_one_is_needed():
    with pytest.raises(ValueError, match="exponentiated-gradient"):
        WideMarginSVC(solver="exponentiated-gradient", kernel="linear").fit(X, Y)


# Where the guide points to tests of other parts.


def test_the_tests_of_the_other_sections_are_there():
    assert "test_a_kernel_is_added_by_touching_the_table" in (ROOT / "tests/kernels/test_table.py").read_text()
    foreign = (ROOT / "tests/core/solver/test_foreign_loss.cpp").read_text()
    assert "static_assert(MulticlassLoss<SquaredCosts>" in foreign


def test_one_class_of_ours_stands_above_a_made_up_estimator():
    for machine in (RidgeSVC, WideMarginSVC, OneVsOneSVC):
        ours = [cls for cls in machine.__mro__[1:] if issubclass(cls, MulticlassSVC)]
        assert ours == [MulticlassSVC]
