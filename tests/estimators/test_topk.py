"""The classes with the largest scores, of every machine."""

import numpy as np
import pytest
from reference.data import digits, random_classes

import polymargin
from polymargin import OneVsOneSVC

MACHINES = [getattr(polymargin, name) for name in polymargin.__all__ if name.endswith("SVC")]
every_machine = pytest.mark.parametrize("Machine", MACHINES)


@every_machine
def test_classes_come_by_falling_score_and_the_first_is_that_of_predict(Machine):
    X, y = digits(300)
    machine = Machine().fit(X[:200], y[:200])
    scores = machine.decision_function(X)
    top = machine.predict_topk(X, 4)
    assert top.shape == (300, 4)
    np.testing.assert_array_equal(top[:, 0], machine.predict(X))
    shown = np.take_along_axis(scores, np.searchsorted(machine.classes_, top), axis=1)
    assert (np.diff(shown, axis=1) <= 0).all()
    assert (shown[:, -1] >= np.sort(scores, axis=1)[:, -4]).all()
    everything = machine.predict_topk(X, 10)
    np.testing.assert_array_equal(np.sort(everything, axis=1), np.tile(machine.classes_, (300, 1)))
    np.testing.assert_array_equal(everything[:, :4], top)


@every_machine
def test_two_classes(Machine):
    X, y = random_classes(2, n=60, seed=1)
    machine = Machine().fit(X, np.array(["no", "yes"])[y])
    top = machine.predict_topk(X, 2)
    np.testing.assert_array_equal(top[:, 0], machine.predict(X))
    assert (top[:, 0] != top[:, 1]).all()


@pytest.mark.parametrize("k", [0, 4, 1.5, "2", None])
def test_how_many_is_checked(k):
    X, y = random_classes(3, n=60, seed=2)
    with pytest.raises(ValueError, match="k must be a whole number from 1 to 3"):
        OneVsOneSVC().fit(X, y).predict_topk(X, k)
