"""What machines declare that a fit leaves: checked before predictions, stored as declared."""

import numpy as np
import pytest
from reference.data import iris
from scipy import sparse

import polymargin
from polymargin import OneVsOneSVC, load_model, save_model
from polymargin.kernels import Kernel
from polymargin.models.declared import Kept, flaws
from polymargin.storage import safetensors_file

MACHINES = [getattr(polymargin, name) for name in polymargin.__all__ if name.endswith("SVC")]


def flaw(declared, value, **sizes):
    """Return what is wrong with one attribute, None if nothing."""
    return next((text for _, text in flaws({"a_": declared}, {"a_": value}, lambda: sizes)), None)


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_fit_leaves_what_is_declared_and_nothing_else(Machine):
    machine = Machine().fit(*iris())
    left = {name for name in vars(machine) if name not in machine.get_params()}
    required = {name for name, kept in machine._kept.items() if not kept.optional}
    assert required <= left <= machine._kept.keys()
    assert not list(flaws(machine._kept, vars(machine), machine._dimensions))
    assert not list(machine._flaws())


@pytest.mark.parametrize(
    ("declared", "sound", "unsound"),
    [
        (Kept("real", (2,)), np.zeros(2), [np.zeros(3), np.zeros((2, 1)), np.zeros(2, "f4"), np.array([0, np.nan])]),
        (Kept("data", ("n", "n")), np.zeros((2, 2), "f4"), [np.zeros((2, 3)), np.zeros((2, 2), int), "text", None]),
        (Kept("real", (1, 2), sparse=True), sparse.csr_array([[0.0, 1.0]]), [sparse.csr_array([[np.inf, 1.0]])]),
        (Kept("real", (1, 2)), np.ones((1, 2)), [sparse.csr_array([[0.0, 1.0]])]),
        (Kept("count", (2,)), np.array([0, 5]), [np.array([0, -1]), np.array([0.0, 1.0]), np.array([True, False])]),
        (Kept("count", None), np.arange(6).reshape(2, 3), ["5", 1.5, -1, None, 10**30]),
        (Kept("count", (2,), below="k"), np.array([0, 2]), [np.array([0, 3])]),
        (Kept("labels", ("k",)), np.array(["a", "b", "c"]), [np.array(["a", "c", "b"]), np.array([1, 1, 2])]),
        (Kept("names", (2,)), np.array(["a", "b"], dtype=object), [np.array(["a", 1], dtype=object)]),
        (Kept("kernel"), Kernel("rbf", 0.5, 0.0, 3), [Kernel("rbf", -1.0, 0.0, 3), Kernel("x", 1.0, 0.0, 3), "rbf"]),
        (Kept("number"), float("nan"), [1, "1", None]),
        (Kept("flag"), True, [1, None]),
        (Kept("text"), "text", [1, None]),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kept) else "",
)
def test_flaws_are_found(declared, sound, unsound):
    assert flaw(declared, sound, k=3) is None
    for value in unsound:
        assert flaw(declared, value, k=3), value


def test_large_finite_values_are_not_taken_for_infinite():
    assert flaw(Kept("real", (2,)), np.array([1e308, 1e308])) is None


def test_a_dimension_without_a_size_has_that_of_the_first_array():
    kept = {"a_": Kept("real", ("pairs",)), "b_": Kept("real", ("pairs", 2))}
    assert not list(flaws(kept, {"a_": np.zeros(3), "b_": np.zeros((3, 2))}))
    assert [name for name, _ in flaws(kept, {"a_": np.zeros(3), "b_": np.zeros((4, 2))})] == ["b_"]


class PairsSVC(OneVsOneSVC):
    """A machine that keeps more, and says so in one line."""

    _kept = OneVsOneSVC._kept | {"pairs_": Kept("count", ("pairs", 2), below="classes"), "shift_": Kept("number")}

    def fit(self, X, y):
        super().fit(X, y)
        self.pairs_, self.shift_ = np.array([[0, 1], [1, 2]]), 0.5
        return self


def test_a_machine_declares_in_one_line_what_more_is_stored(tmp_path, monkeypatch):
    monkeypatch.setitem(safetensors_file.MACHINES, "PairsSVC", PairsSVC)
    X, y = iris()
    machine = PairsSVC().fit(X, y)
    save_model(machine, tmp_path / "machine")
    loaded = load_model(tmp_path / "machine")
    np.testing.assert_array_equal(loaded.pairs_, machine.pairs_)
    assert loaded.shift_ == 0.5
    machine.pairs_ = machine.pairs_ + 1
    with pytest.raises(ValueError, match="damaged: pairs_ has 3, but must be below 3"):
        machine.predict(X)
