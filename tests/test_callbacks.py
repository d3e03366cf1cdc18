"""scikit-learn's fit callbacks see every problem as a task of the fit, and may stop it."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from polymargin import (
    CrammerSingerSVC,
    GenSVC,
    LeeLinWahbaSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    SoftmaxSVC,
    TotalMaximumSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)
from polymargin.selection import KernelSearchCV

ScoringMonitor = pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks").ScoringMonitor


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


MACHINES = [OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC, UncertaintySVC, OutputCodeSVC, SoftmaxSVC]
MACHINES += [LeeLinWahbaSVC, TotalMaximumSVC]
PROBLEMS = [(OneVsOneSVC, 45), (OneVsRestSVC, 10), (WestonWatkinsSVC, 1), (CrammerSingerSVC, 1)]


@pytest.mark.parametrize(("Machine", "problems"), PROBLEMS)
def test_every_problem_is_a_task(Machine, problems):
    X, y = load_digits(return_X_y=True)
    recorder = Recorder()
    watched = Machine().set_callbacks(recorder).fit(X, y)
    assert recorder.events[:2] == ["setup", "begin"]
    assert recorder.events[-2:] == ["end", "teardown"]
    assert recorder.events.count("begin") == recorder.events.count("end") == problems + 1
    np.testing.assert_array_equal(watched.dual_coef_, Machine().fit(X, y).dual_coef_)


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
    watched = UncertaintySVC(min_distance=min_distance).set_callbacks(recorder).fit(X, y)
    assert recorder.events.count("begin") == recorder.events.count("end") == len(watched.pairs_) + 1
    assert (len(watched.pairs_) == 23) == (min_distance == np.inf)
    np.testing.assert_array_equal(watched.dual_coef_, UncertaintySVC(min_distance=min_distance).fit(X, y).dual_coef_)


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
    before = machine.dual_coef_
    machine.set_callbacks(Failing())
    with pytest.raises(RuntimeError, match="no"):
        machine.fit(X[:200], y[:200])
    assert machine.dual_coef_ is before


# Rounds

ROUNDS = [
    SoftmaxSVC(),
    GenSVC(),
    SoftmaxSVC(kernel="linear", strategy="one-vs-rest"),
    LinearProgramSVC(),
    UncertaintySVC(min_distance=np.inf),
    CrammerSingerSVC(kernel="linear", bias="regularized", solver="cutting-plane", tol=1e-2),
    WestonWatkinsSVC(kernel="linear", bias=None, solver="cutting-plane", tol=1e-2),
]


@pytest.mark.parametrize("machine", ROUNDS, ids=repr)
@pytest.mark.parametrize("k", [2, 4])
def test_rounds_have_scores_that_end_at_that_of_the_machine(machine, k):
    X, y = make_classification(
        200, 10, n_informative=6, n_redundant=0, n_classes=k, n_clusters_per_class=1, flip_y=0.2, random_state=0
    )
    monitor = ScoringMonitor(scoring="accuracy")
    fitted = clone(machine).set_callbacks(monitor).fit(X, y)
    logged = monitor.get_logs().data
    scores = [row["accuracy"] for row in logged if row["task_name"] != "fit"]
    assert len(scores) >= (1 if isinstance(machine, UncertaintySVC) and k == 2 else 2)
    assert scores[-1] == pytest.approx(fitted.score(X, y), abs=0.02)  # what follows the last round is polishing
    assert len(scores) <= 2 or len(set(scores)) > 1
    assert next(row["accuracy"] for row in logged if row["task_name"] == "fit") == fitted.score(X, y)
    np.testing.assert_array_equal(fitted.decision_function(X), clone(machine).fit(X, y).decision_function(X))


@pytest.mark.parametrize("Machine", [OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC])
def test_fits_without_rounds_have_the_score_at_their_end(Machine):
    X, y = load_digits(return_X_y=True)
    monitor = ScoringMonitor(scoring="accuracy")
    machine = Machine().set_callbacks(monitor).fit(X[:300], y[:300])
    assert [row["accuracy"] for row in monitor.get_logs().data] == [machine.score(X[:300], y[:300])]


@pytest.mark.parametrize("machine", [SoftmaxSVC(), GenSVC(), LinearProgramSVC(C=100.0, tol=1e-9)], ids=repr)
def test_a_callback_can_stop_after_a_round(machine):
    X, y = load_digits(return_X_y=True)
    stopped = clone(machine).set_callbacks(Recorder(stop_after=2))
    with pytest.warns(ConvergenceWarning, match="callback"):
        stopped.fit(X, y)
    assert stopped.stop_reason_ == "stopped"
    assert stopped.predict(X[:5]).shape == (5,)


# Searches


class Teller(Recorder):
    """Remembers the names of tasks, those that begin and those that end, and the sizes of what they are about."""

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.events.append(("begin", context.task_name, context.task_id, X is not None and X.shape))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        weighted = metadata is not None and "sample_weight" in metadata
        self.events.append(("end", context.task_name, context.task_id, weighted))

    def named(self, *names):
        return sorted(event for event in self.events if event[1] in names)


TASKS = ("fit", "search", "candidate-split-evaluation", "refit-with-best-params")
GRID = {"C": [1.0, 10.0], "kernel": ["rbf", "linear"]}


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("Machine", [OneVsOneSVC, WestonWatkinsSVC])
def test_a_search_has_the_tasks_of_scikit_learns(Machine, n_jobs, refit):
    X, y = load_digits(return_X_y=True)
    X, y = X[:200], y[:200]
    watched = []
    for Search in (KernelSearchCV, GridSearchCV):
        teller = Teller()
        search = Search(Machine(), GRID, cv=3, refit=refit, n_jobs=n_jobs if Search is KernelSearchCV else None)
        search.set_callbacks(teller).fit(X, y)
        watched.append(teller)
    ours, theirs = watched
    assert ours.named(*TASKS[1:3]) == theirs.named(*TASKS[1:3])
    assert ours.events[0] == "setup"
    assert ours.events[-1] == "teardown"
    assert ours.events.count("setup") == ours.events.count("teardown") == 1
    of_the_fit = [event for event in ours.named("fit") if event[3] == X.shape or event[0] == "end"]
    assert of_the_fit == [event for event in theirs.named("fit") if event[3] == X.shape or event[0] == "end"]
    assert len(ours.named("refit-with-best-params")) == 2 * refit


def test_callbacks_that_go_on_to_the_machine_see_its_last_fit():
    class Spreading(Recorder):
        max_propagation_depth = None

    X, y = load_digits(return_X_y=True)
    callback = Spreading()
    KernelSearchCV(OneVsRestSVC(), {"C": [1.0, 2.0]}, cv=2).set_callbacks(callback).fit(X[:200], y[:200])
    # The fit, the search, four candidates, and the last fit with its ten problems.
    assert callback.events.count("begin") == callback.events.count("end") == 1 + 1 + 4 + 1 + 10


def test_callbacks_of_the_machine_see_every_candidate():
    X, y = load_digits(return_X_y=True)
    recorder = Recorder()
    machine = OneVsRestSVC().set_callbacks(recorder)
    with pytest.warns(UserWarning, match="one by one: the callbacks of OneVsRestSVC"):
        search = KernelSearchCV(machine, {"C": [1.0, 2.0]}, cv=2).fit(X[:200], y[:200])
    assert not search.shared_
    assert recorder.events.count("setup") == recorder.events.count("teardown") == 5
    assert recorder.events.count("begin") == 5 * 11


def test_a_search_that_turns_out_too_large_tells_its_callbacks_so():
    X, y = load_digits(return_X_y=True)
    teller = Teller()
    search = KernelSearchCV(OneVsOneSVC(cache_size=0.01), {"C": [1.0, 2.0]}, cv=2).set_callbacks(teller)
    with pytest.warns(UserWarning, match="one by one"):
        search.fit(X[:200], y[:200])
    assert teller.events.count("setup") == teller.events.count("teardown") == 1
    assert len(teller.named("candidate-split-evaluation")) == 8
