"""What is declared that a fit leaves: checked before predictions, stored as declared."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from reference.data import iris
from scipy import sparse

import polymargin
from polymargin import OneVsOneSVC, load_model, save_model
from polymargin.estimators.base import OWN_ATTRIBUTES
from polymargin.estimators.declaration import FITTED_PARTS, Fitted
from polymargin.kernels import Kernel
from polymargin.models import Outcome
from polymargin.models.declared import Declared, attributes, declarations, declare, defects, frozen
from polymargin.storage import safetensors_file

MACHINES = [getattr(polymargin, name) for name in polymargin.__all__ if name.endswith("SVC")]


def defect(declared, value, **sizes):
    """Return what is wrong with one attribute, None if nothing."""
    return next((text for _, text in defects({"a_": declared}, {"a_": value}, lambda: sizes)), None)


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_fit_leaves_what_is_declared_and_nothing_else(Machine):
    machine = Machine().fit(*iris())
    left = {name for name in vars(machine) if name not in machine.get_params()}
    assert {"n_features_in_", "classes_", "model_", "outcome_"} <= left <= {*OWN_ATTRIBUTES, *FITTED_PARTS}
    assert not list(machine.state_defects())
    for part in left & set(FITTED_PARTS):
        value = getattr(machine, part)
        for name, declared in declarations(type(value)).items():
            assert declared.optional or name in attributes(value)
            if not name.startswith("_") and name in attributes(value):
                assert getattr(machine, name) is attributes(value)[name]


@pytest.mark.parametrize("Machine", MACHINES)
def test_what_a_fit_leaves_cannot_be_written_to(Machine):
    machine = Machine().fit(*iris())
    for array in (machine.support_, machine.support_vectors_, machine.dual_coef_, machine.intercept_):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        machine.model_.tolerance = 1.0
    before = machine.predict(iris()[0])
    machine.intercept_ = machine.intercept_ + 100.0 * np.arange(1, len(machine.intercept_) + 1)
    assert not np.array_equal(machine.predict(iris()[0]), before)


def test_attributes_are_absent_before_a_fit():
    machine = OneVsOneSVC()
    assert not hasattr(machine, "dual_coef_")
    assert not hasattr(machine, "model_")
    with pytest.raises(AttributeError, match="set by fit"):
        machine.dual_coef_ = np.zeros((1, 1))


def test_sparse_matrices_are_frozen_without_a_copy():
    matrix = sparse.csr_array([[0.0, 1.0], [2.0, 0.0]])
    view = frozen(matrix)
    assert np.shares_memory(view.data, matrix.data)
    assert not view.data.flags.writeable
    assert matrix.data.flags.writeable


@pytest.mark.parametrize(
    ("declared", "sound", "unsound"),
    [
        (
            Declared("real", (2,)),
            np.zeros(2),
            [np.zeros(3), np.zeros((2, 1)), np.zeros(2, "f4"), np.array([0, np.nan])],
        ),
        (Declared("data", ("n", "n")), np.zeros((2, 2), "f4"), [np.zeros((2, 3)), np.zeros((2, 2), int), "text", None]),
        (Declared("real", (1, 2), sparse=True), sparse.csr_array([[0.0, 1.0]]), [sparse.csr_array([[np.inf, 1.0]])]),
        (Declared("real", (1, 2)), np.ones((1, 2)), [sparse.csr_array([[0.0, 1.0]])]),
        (Declared("count", (2,)), np.array([0, 5]), [np.array([0, -1]), np.array([0.0, 1.0]), np.array([True, False])]),
        (Declared("count", None), np.arange(6).reshape(2, 3), ["5", 1.5, -1, None, 10**30]),
        (Declared("count", (2,), below="k"), np.array([0, 2]), [np.array([0, 3])]),
        (Declared("labels", ("k",)), np.array(["a", "b", "c"]), [np.array(["a", "c", "b"]), np.array([1, 1, 2])]),
        (Declared("names", (2,)), np.array(["a", "b"], dtype=object), [np.array(["a", 1], dtype=object)]),
        (
            Declared("kernel"),
            Kernel("rbf", 0.5, 0.0, 3),
            [Kernel("rbf", -1.0, 0.0, 3), Kernel("x", 1.0, 0.0, 3), "rbf"],
        ),
        (Declared("number"), float("nan"), [1, "1", None]),
        (Declared("flag"), True, [1, None]),
        (Declared("text"), "text", [1, None]),
    ],
    ids=lambda value: repr(value) if isinstance(value, Declared) else "",
)
def test_defects_are_found(declared, sound, unsound):
    assert defect(declared, sound, k=3) is None
    for value in unsound:
        assert defect(declared, value, k=3), value


def test_large_finite_values_are_not_taken_for_infinite():
    assert defect(Declared("real", (2,)), np.array([1e308, 1e308])) is None


def test_a_dimension_without_a_size_has_that_of_the_first_array():
    kept = {"a_": Declared("real", ("pairs",)), "b_": Declared("real", ("pairs", 2))}
    assert not list(defects(kept, {"a_": np.zeros(3), "b_": np.zeros((3, 2))}))
    assert [name for name, _ in defects(kept, {"a_": np.zeros(3), "b_": np.zeros((4, 2))})] == ["b_"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TaughtOutcome(Outcome):
    """An outcome with more."""

    pairs: np.ndarray = declare("pairs_", "count", ("pairs", 2))
    shift: float = declare("shift_", "number", report=True)


class PairsSVC(OneVsOneSVC):
    """A machine that keeps more, and says so in a line each."""

    @classmethod
    def part_types(cls):
        return super().part_types() | {"outcome_": TaughtOutcome}

    pairs_ = Fitted()
    shift_ = Fitted()

    def fit(self, X, y):
        super().fit(X, y)
        more = {"pairs": np.array([[0, 1], [1, 2]]), "shift": 0.5}
        self.outcome_ = TaughtOutcome(**vars(self.outcome_), **more)
        return self


def test_a_machine_declares_in_one_line_what_more_is_stored(tmp_path, monkeypatch):
    monkeypatch.setitem(safetensors_file.MACHINES, "PairsSVC", PairsSVC)
    X, y = iris()
    machine = PairsSVC().fit(X, y)
    save_model(machine, tmp_path / "machine")
    loaded = load_model(tmp_path / "machine")
    np.testing.assert_array_equal(loaded.pairs_, machine.pairs_)
    assert loaded.shift_ == 0.5
    machine.pairs_ = -machine.pairs_
    with pytest.raises(ValueError, match="damaged: pairs_ must not be negative"):
        machine.predict(X)
    machine.model_ = replace(machine.model_, class_order=np.array([0, 0, 1]))
    with pytest.raises(ValueError, match="damaged: _tie_order must name every class once"):
        machine.predict(X)
