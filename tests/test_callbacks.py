"""scikit-learn's fit callbacks see every problem as a task of the fit, and may stop it."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, SoftmaxSVC, UncertaintySVC, WestonWatkinsSVC

pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")


class Recorder:
    """Counts what it is told; stops the fit after `stop_after` tasks."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context, **kwargs):
        self.events.append("begin")

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.events.append("end")
        return self.stop_after is not None and self.events.count("end") >= self.stop_after

    def teardown(self, estimator, context):
        self.events.append("teardown")


MACHINES = [OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC, UncertaintySVC, SoftmaxSVC]
PROBLEMS = [(OneVsOneSVC, 45), (OneVsRestSVC, 10), (WestonWatkinsSVC, 1), (CrammerSingerSVC, 1), (SoftmaxSVC, 1)]


@pytest.mark.parametrize(("Machine", "problems"), PROBLEMS)
def test_every_problem_is_a_task(Machine, problems):
    X, y = load_digits(return_X_y=True)
    recorder = Recorder()
    told = Machine().set_callbacks(recorder).fit(X, y)
    assert recorder.events[:2] == ["setup", "begin"]
    assert recorder.events[-2:] == ["end", "teardown"]
    assert recorder.events.count("begin") == recorder.events.count("end") == problems + 1
    np.testing.assert_array_equal(told.dual_coef_, Machine().fit(X, y).dual_coef_)


def test_a_callback_can_stop_a_long_fit():
    X, y = make_classification(6000, 30, n_informative=15, n_classes=6, flip_y=0.3, random_state=0)
    machine = OneVsOneSVC(C=1e4, tol=1e-6).set_callbacks(Recorder(stop_after=1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine.fit(X, y)
    assert machine.stop_reason_ == "stopped"
    assert not machine.converged_
    assert any(issubclass(w.category, ConvergenceWarning) and "callback" in str(w.message) for w in caught)
    assert machine.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("min_distance", [0.8, np.inf])
def test_every_pair_that_was_chosen_is_a_task(min_distance):
    X, y = load_digits(return_X_y=True)
    recorder = Recorder()
    told = UncertaintySVC(min_distance=min_distance).set_callbacks(recorder).fit(X, y)
    assert recorder.events.count("begin") == recorder.events.count("end") == len(told.pairs_) + 1
    assert (len(told.pairs_) == 23) == (min_distance == np.inf)
    np.testing.assert_array_equal(told.dual_coef_, UncertaintySVC(min_distance=min_distance).fit(X, y).dual_coef_)


def test_a_callback_can_stop_the_choosing_of_pairs():
    X, y = load_digits(return_X_y=True)
    machine = UncertaintySVC(min_distance=np.inf).set_callbacks(Recorder(stop_after=4))
    with pytest.warns(ConvergenceWarning, match="callback"):
        machine.fit(X, y)
    assert machine.stop_reason_ == "stopped"
    assert len(machine.pairs_) == 4
    assert machine.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_failing_callback_leaves_the_machine_as_it_was(Machine):
    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context, **kwargs):
            raise RuntimeError("no")

    X, y = load_digits(return_X_y=True)
    machine = Machine().fit(X, y)
    before = dict(vars(machine))
    machine.set_callbacks(Failing())
    with pytest.raises(RuntimeError, match="no"):
        machine.fit(X[:200], y[:200])
    assert machine.dual_coef_ is before["dual_coef_"]
