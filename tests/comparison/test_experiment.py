"""What the experiment measures, against scikit-learn's own search; what it does when something goes wrong."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from reference.data import iris, random_classes
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

import polymargin
from polymargin import CrammerSingerSVC, OneVsOneSVC, WestonWatkinsSVC, compare
from polymargin.comparison import experiment
from polymargin.comparison.contestants import GROUPS, HSU_LIN, contestants, groups, known_machines
from polymargin.comparison.experiment import Experiment, shortest

GRID = {"C": [1.0, 8.0], "gamma": [0.05, 0.5]}
FOLDS = 4


def data():
    return random_classes(3, n=90, n_features=4, seed=1)


def folds(X, y):
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))


def small(X, y, *args, machines=("one-against-one", "DAG", "Crammer-Singer"), **options):
    return compare(X, y, *args, machines=machines, **{"grid": GRID, "cv": FOLDS} | options)


class Broken(ClassifierMixin, BaseEstimator):
    """A classifier that cannot be fitted, or only slowly, or whose fit is interrupted."""

    def __init__(self, C=1.0, how="error"):
        self.C = C
        self.how = how

    def fit(self, X, y):
        if self.how == "error":
            raise ValueError("ten thousand rows are too many")
        if self.how == "interrupt":
            raise KeyboardInterrupt
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        if self.how == "predict":
            raise MemoryError
        return np.full(len(X), self.classes_[0])


# What is measured.


@pytest.mark.parametrize("name", ["one-against-one", "DAG", "one-against-all", "Weston-Watkins", "Crammer-Singer"])
def test_a_row_is_what_grid_search_finds(name):
    X, y = data()
    comparison = small(X, y, machines=[name])
    (row,) = comparison.table
    machine = clone(known_machines()[name])
    search = GridSearchCV(machine, GRID, cv=folds(X, y)).fit(X, y)
    best = search.best_estimator_
    assert row["machine"] == name
    assert row["parameters"] == search.best_params_
    assert row["rate"] == pytest.approx(search.best_score_)
    assert row["validation_rate"] == pytest.approx(search.best_score_)
    assert row["unique_svs"] == len(best.support_)
    assert row["coefficients"] == np.count_nonzero(best.dual_coef_)
    assert row["gap"] == pytest.approx(best.duality_gap_, abs=1e-12)
    assert row["status"] == "done"
    assert min(row["train_seconds"], row["test_seconds"], row["search_seconds"]) > 0
    (result,) = comparison.results
    at = search.best_index_
    assert result.fold_rates == pytest.approx([search.cv_results_[f"split{i}_test_score"][at] for i in range(FOLDS)])
    rates = {tuple(c["parameters"].values()): c["rate"] for c in result.candidates}
    listed = search.cv_results_
    expected = {tuple(p.values()): m for p, m in zip(listed["params"], listed["mean_test_score"], strict=True)}
    assert rates == pytest.approx(expected)
    predicted = cross_val_predict(best, X, y, cv=folds(X, y))
    assert result.confusion == confusion_matrix(y, predicted).tolist()


def test_with_a_test_set_a_part_is_held_out_once():
    X, y = random_classes(3, n=150, n_features=4, seed=2)
    X, y, X_test, y_test = X[:90], y[:90], X[90:], y[90:]
    comparison = small(X, y, X_test, y_test)
    split = StratifiedShuffleSplit(1, test_size=0.3, random_state=0)
    for row, machine in zip(
        comparison.table, (OneVsOneSVC(), OneVsOneSVC(decision="dag"), CrammerSingerSVC()), strict=True
    ):
        search = GridSearchCV(machine, GRID, cv=split).fit(X, y)
        assert row["parameters"] == search.best_params_
        assert row["validation_rate"] == pytest.approx(search.best_score_)
        assert row["rate"] == pytest.approx(search.score(X_test, y_test))
        model = comparison.models[row["machine"]]
        assert model.score(X_test, y_test) == row["rate"]
    assert comparison.significance.test == "McNemar"
    predicted = comparison.models["DAG"].predict(X_test)
    assert comparison.results[1].confusion == confusion_matrix(y_test, predicted).tolist()


def test_with_a_test_set_folds_are_possible():
    X, y = data()
    comparison = small(X, y, X, y, holdout=None)
    search = GridSearchCV(OneVsOneSVC(), GRID, cv=folds(X, y)).fit(X, y)
    assert comparison.table[0]["validation_rate"] == pytest.approx(search.best_score_)


@pytest.mark.parametrize(("scaling", "scaler"), [("range", MinMaxScaler((-1, 1))), ("standard", StandardScaler())])
def test_scaling_is_inside_the_folds(scaling, scaler):
    X, y = data()
    X = X * [1, 10, 100, 1000]
    row = small(X, y, machines=["Weston-Watkins"], scaling=scaling).table[0]
    grid = {f"westonwatkinssvc__{name}": values for name, values in GRID.items()}
    search = GridSearchCV(make_pipeline(scaler, WestonWatkinsSVC()), grid, cv=folds(X, y)).fit(X, y)
    assert row["rate"] == pytest.approx(search.best_score_)
    assert row["parameters"] == {name.split("__")[1]: value for name, value in search.best_params_.items()}


def test_sparse_data_give_what_dense_data_give():
    X, y = data()
    X[X < 0.3] = 0.0
    # At a loose tol the search of a joint machine and its fits may differ in a label.
    machines = ["one-against-one", "DAG", CrammerSingerSVC(tol=1e-6)]
    first, second = (small(container(X), y, machines=machines).table for container in (np.asarray, sparse.csr_matrix))
    for dense, row in zip(first, second, strict=True):
        assert dense["rate"] == pytest.approx(row["rate"])
        assert dense["parameters"] == row["parameters"]
    assert small(sparse.csr_matrix(X), y, scaling="range").rates.keys() == small(X, y, scaling="standard").rates.keys()


def test_the_result_does_not_depend_on_threads_or_on_company():
    X, y = data()
    alone = small(X, y, machines=["DAG"]).results[0]
    among = small(X, y, machines=["one-against-one", "ADAG", "DAG"], n_jobs=2).results[2]
    assert alone.rate == among.rate
    assert alone.candidates == among.candidates
    assert alone.fold_rates == among.fold_rates


def test_labels_of_any_kind_and_iris():
    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])[np.asarray(y, dtype=int) - int(np.min(y))]
    comparison = small(X, names, machines=["DAG"])
    assert comparison.data["classes"] == ["setosa", "versicolor", "virginica"]
    assert comparison.table[0]["rate"] > 0.9


def test_a_linear_kernel_has_no_gamma():
    X, y = data()
    comparison = small(X, y, kernel="linear")
    assert all(row["parameters"].keys() == {"C"} for row in comparison.table)
    assert comparison.models["DAG"].kernel == "linear"


def test_the_best_at_the_edge_of_the_grid_is_noted():
    X, y = data()
    edge = "The best gamma is the largest of the grid: beyond it may be a better one."
    (row,) = small(X, y, machines=["DAG"], grid={"C": [8.0], "gamma": [1e-7, 1e-6, 0.05]}).table
    assert edge in row["notes"]
    (row,) = small(X, y, machines=["DAG"], grid={"C": [8.0], "gamma": [1e-9, 1e-8, 1e-7]}).table
    assert row["notes"] == []  # all alike: the first one says nothing about those beyond it


def test_features_of_different_spread_are_noted_unless_scaled():
    X, y = data()
    X = X * [1, 1, 1, 1000]
    assert "spreads" in small(X, y, machines=["DAG"]).data["notes"][0]
    assert small(X, y, machines=["DAG"], scaling="range").data["notes"] == []


def test_classes_that_only_the_test_set_has_are_errors():
    X, y = data()
    y_test = np.where(y == 2, 7, y)
    comparison = small(X, y, X, y_test, machines=["DAG"])
    assert comparison.table[0]["rate"] == pytest.approx(np.mean(comparison.models["DAG"].predict(X) == y_test))
    assert np.sum(comparison.results[0].confusion) == np.sum(y_test != 7)


def test_the_same_fit_has_the_same_time():
    X, y = data()
    grid = {"C": [8.0], "gamma": [0.1]}
    votes, dag, other = small(X, y, machines=["one-against-one", "DAG", "Weston-Watkins"], grid=grid).table
    assert votes["train_seconds"] == dag["train_seconds"] != other["train_seconds"]


# Who takes part.


def test_all_are_the_classic_machines_of_the_package_and_those_of_the_paper_come_first():
    names = [c.name for c in contestants("all", "rbf", 0)]
    assert tuple(names[:5]) == HSU_LIN
    classes = {type(c.machine).__name__ for c in contestants("all", "rbf", 0)}
    family = {type(c.machine).__name__ for c in contestants("family", "rbf", 0)}
    assert classes | family | {"JointSVC", "OutputCodeSVC", "GenSVC"} == set(polymargin.estimators.__all__)
    assert classes & family == {"WestonWatkinsSVC", "CrammerSingerSVC"}
    options = OneVsOneSVC._parameter_constraints["decision"][0].options
    assert {c.machine.decision for c in contestants("all", "rbf", 0) if isinstance(c.machine, OneVsOneSVC)} == options
    assert tuple(c.name for c in contestants("hsu-lin", "rbf", 0)) == HSU_LIN


def test_every_machine_is_in_a_group_and_every_group_is_of_machines():
    grouped = {name for names in GROUPS.values() for name in names}
    assert grouped | {"joint"} == set(known_machines())
    for group, names in GROUPS.items():
        assert [c.name for c in contestants(group, "rbf", 0)] == list(names)
    assert [c.machine.code for c in contestants("codes", "rbf", 0)] == ["one-vs-one", "dense", "sparse"]
    with pytest.raises(ValueError, match="groups all, hsu-lin, classic"):
        contestants(["classics"], "rbf", 0)


def test_names_are_those_of_the_literature_or_of_classes():
    found = contestants(["Dag", "weston_watkins", "CrammerSingerSVC", "OneVsOneSVC"], "linear", 3)
    assert [c.name for c in found] == ["DAG", "Weston-Watkins", "Crammer-Singer", "one-against-one"]
    assert all(c.machine.kernel == "linear" and c.machine.random_state == 3 for c in found)
    assert [c.name for c in contestants("dag", "rbf", 0)] == ["DAG"]


def test_estimators_stay_as_they_are_and_get_names_apart():
    machine = CrammerSingerSVC(bias="free", kernel="linear")
    found = contestants([machine, CrammerSingerSVC(), make_pipeline(StandardScaler(), SVC())], "poly", 1)
    assert [c.name for c in found] == ["Crammer-Singer 1", "Crammer-Singer 2", "SVC"]
    assert found[0].estimator is machine
    assert [c.name for c in contestants({"mine": machine}, "rbf", 0)] == ["mine"]


def test_decisions_on_the_same_fit_share_a_search_and_no_others():
    found = contestants(["DAG", "one-against-one", "Weston-Watkins", "ADAG"], "rbf", 0)
    assert [[c.name for c in group] for group in groups(found)] == [
        ["DAG", "one-against-one", "ADAG"],
        ["Weston-Watkins"],
    ]
    found = contestants([OneVsOneSVC(tol=1e-5), OneVsOneSVC(decision="dag"), OneVsOneSVC()], "rbf", 0)
    assert [len(group) for group in groups(found)] == [1, 2]
    assert [len(group) for group in groups(contestants([OneVsOneSVC(), OneVsOneSVC()], "rbf", 0))] == [1, 1]


@pytest.mark.filterwarnings("error")
def test_estimators_of_scikit_learn_take_part_with_the_parameters_they_have():
    X, y = data()
    comparison = small(X, y, machines=[SVC(), LinearSVC(), GaussianNB(), make_pipeline(StandardScaler(), SVC())])
    svc, linear, bayes, pipeline = comparison.table
    assert svc["parameters"].keys() == {"C", "gamma"} == pipeline["parameters"].keys()
    assert svc["gap"] is None
    assert linear["parameters"].keys() == {"C"}
    assert linear["unique_svs"] is None
    assert bayes["parameters"] == {}
    assert any("one by one" in note for note in svc["notes"])
    search = GridSearchCV(SVC(), GRID, cv=folds(X, y)).fit(X, y)
    assert svc["rate"] == pytest.approx(search.best_score_)


# What goes wrong.


def test_a_machine_that_cannot_run_has_a_row_with_the_reason():
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comparison = small(
            X, y, machines={"broken": Broken(), "lost": Broken(how="predict"), "DAG": known_machines()["DAG"]}
        )
    broken, lost, dag = comparison.table
    assert (broken["status"], broken["reason"]) == ("failed", "ValueError: ten thousand rows are too many")
    assert lost["status"] == "failed"
    assert "MemoryError" in lost["reason"] or "no candidate" in lost["reason"]
    assert broken["rate"] is None
    assert dag["status"] == "done"
    assert dag["against_best"] == "best"


def test_when_no_machine_can_run_there_is_still_a_comparison():
    X, y = data()
    comparison = small(X, y, machines=[Broken()])
    assert comparison.rates == {}
    assert "ten thousand rows" in comparison.to_markdown()
    assert "ten thousand rows" in comparison.to_html()


def test_interrupted_runs_keep_what_is_done():
    X, y = data()
    machines = {"DAG": known_machines()["DAG"], "slow": Broken(how="interrupt"), "late": known_machines()["DAG"]}
    comparison = small(X, y, machines=machines)
    assert comparison.interrupted
    assert [row["status"] for row in comparison.table] == ["done", "interrupted", "interrupted"]
    assert "Interrupted" in comparison.to_markdown()


def test_interrupted_before_anything_is_done_is_an_interrupt():
    X, y = data()
    with pytest.raises(KeyboardInterrupt):
        small(X, y, machines=[Broken(how="interrupt")])


def test_the_time_limit_ends_a_search():
    X, y = data()
    comparison = small(X, y, machines=["DAG", "one-against-all"], time_limit=1e-9)
    assert {row["status"] for row in comparison.table} == {"time limit"}
    assert "time_limit=1e-09" in comparison.table[0]["reason"]


def test_warnings_of_fits_become_notes():
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (row,) = small(X, y, machines=[CrammerSingerSVC(max_iter=1)]).table
    assert any(note.startswith("ConvergenceWarning") and "times" in note for note in row["notes"])


def test_the_time_is_the_shortest_of_three_unless_it_is_long(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(experiment, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def take(seconds):
        clock[0] += seconds
        return seconds

    durations = iter([0.03, 0.01, 0.02])
    assert shortest(lambda: take(next(durations)))[1] == pytest.approx(0.01)
    assert next(durations, None) is None
    durations = iter([0.51, 0.01])
    assert shortest(lambda: take(next(durations))) == (0.51, pytest.approx(0.51))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"machines": ["nobody"]}, "there is no machine 'nobody'; there are one-against-one, DAG"),
        ({"machines": []}, "machines is empty"),
        ({"machines": [OneVsOneSVC]}, "machines must be names or classifiers"),
        ({"machines": 3}, "machines must be"),
        ({"grid": "fine"}, "grid must be one of coarse, hsu-lin"),
        ({"grid": {"C": []}}, "grid has no value for C"),
        ({"grid": {"C": [1], "gama": [1]}}, "'gama', a parameter that none of the machines has; did you mean 'gamma'"),
        ({"cv": 1}, "cv=1 must be from 2 to"),
        ({"cv": 1000}, "the number of examples of the smallest class"),
        ({"scaling": "max"}, "scaling must be one of range, standard"),
        ({"kernel": "precomputed"}, "kernel must be one of"),
        ({"level": 5}, "level must lie between 0 and 1"),
        ({"holdout": 1.5}, "holdout must lie between 0 and 1"),
        ({"time_limit": 0}, "time_limit must be positive"),
        ({"X_test": [[1.0, 2, 3, 4]]}, "X_test and y_test belong together"),
        ({"X_test": [[1.0, 2]], "y_test": [0]}, "X_test has 2 features, but X has 4"),
    ],
)
def test_bad_arguments_are_named(options, message):
    X, y = data()
    with pytest.raises((ValueError, TypeError), match=message):
        compare(X, y, **{"machines": ["DAG"], "grid": GRID, "cv": 3} | options)


def test_bad_data_are_named_before_any_work(monkeypatch):
    X, y = data()
    X[3, 1] = np.nan
    monkeypatch.setattr(Experiment, "run", lambda *args: pytest.fail("it ran"))
    with pytest.raises(ValueError, match="row 3, column 1"):
        compare(X, y)
