"""KernelSearchCV: the answers of scikit-learn's search, for less work."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference.data import digits, iris, overlapping, wine
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from polymargin import (
    CrammerSingerSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    SoftmaxSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)
from polymargin.formulations import CostFamily, PrimalSoftmax
from polymargin.formulations import family as cost_family
from polymargin.kernels import Kernel
from polymargin.selection import KernelSearchCV, hsu_lin_grid
from polymargin.selection import kernel_matrices as _family
from polymargin.selection.kernel_matrices import held_out_values
from polymargin.selection.plan import spread

MACHINES = [
    OneVsOneSVC(),
    OneVsOneSVC(decision="dag"),
    OneVsOneSVC(decision="coupling"),
    OneVsRestSVC(),
    WestonWatkinsSVC(),
    CrammerSingerSVC(),
    CrammerSingerSVC(bias="free"),
    UncertaintySVC(min_distance=float("inf")),
    OutputCodeSVC(code="dense", decoding="loss"),
    SoftmaxSVC(),
]
GRID = {"C": [8.0, 0.5, 64.0], "gamma": [0.02, 0.5]}
FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)


def exact(machine):
    """A machine so exact that starts and orders do not show in its predictions."""
    return clone(machine).set_params(tol=1e-6)


def both(estimator, grid, X, y, *, fit_params=None, **options):
    options = {"cv": FOLDS} | options
    ours = KernelSearchCV(estimator, grid, **options).fit(X, y, **(fit_params or {}))
    theirs = GridSearchCV(estimator, grid, **options).fit(X, y, **(fit_params or {}))
    return ours, theirs


def assert_same_results(ours, theirs):
    timing = ("mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time")
    assert list(ours.cv_results_) == list(theirs.cv_results_)
    for name, expected in theirs.cv_results_.items():
        if name in timing:
            assert np.all(ours.cv_results_[name] >= 0)
        elif name == "params":
            assert ours.cv_results_[name] == expected
        else:
            np.testing.assert_array_equal(ours.cv_results_[name], expected, err_msg=name)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == theirs.best_score_
    assert ours.best_index_ == theirs.best_index_
    assert ours.n_splits_ == theirs.n_splits_


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_every_machine_gets_the_scores_of_plain_search(machine):
    X, y = overlapping(n=240)
    ours, theirs = both(exact(machine), GRID, X, y)
    assert_same_results(ours, theirs)
    assert ours.shared_
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize(
    ("machine", "grid"),
    [
        (OneVsOneSVC(kernel="poly", coef0=1.0), {"C": [0.1, 1], "degree": [2, 3], "gamma": ["scale", 0.1]}),
        (CrammerSingerSVC(kernel="sigmoid"), {"C": [0.1, 1], "gamma": [0.01], "coef0": [0.0, 0.5]}),
        (WestonWatkinsSVC(kernel="linear"), {"C": [0.1, 1, 10]}),
        (OneVsRestSVC(kernel="linear", bias=None), {"C": [0.1, 1, 10]}),
        (OneVsOneSVC(), [{"kernel": ["rbf"], "C": [1, 10], "gamma": ["auto", "scale"]}, {"kernel": ["linear"]}]),
        (CrammerSingerSVC(), {"bias": [None, "regularized", "free"], "C": [1, 4], "class_weight": [None, "balanced"]}),
        (OneVsOneSVC(), {"decision": ["votes", "dag", "adag"], "C": [1, 4]}),
        (OneVsOneSVC(kernel=lambda A, B: (1 + A @ B.T) ** 2), {"C": [0.1, 1]}),
    ],
    ids=[
        "poly",
        "sigmoid",
        "linear-together",
        "linear-one-against-all",
        "two-grids",
        "bias-and-weights",
        "decisions",
        "callable",
    ],
)
def test_every_kernel_and_parameter(machine, grid):
    X, y = wine()
    ours, theirs = both(exact(machine), grid, X, y)
    assert_same_results(ours, theirs)


@pytest.mark.parametrize("sorted_by_class", [True, False])
def test_a_precomputed_kernel(sorted_by_class):
    X, y = iris()
    rows = np.arange(len(y)) if sorted_by_class else np.random.default_rng(0).permutation(len(y))
    X, y = X[rows], y[rows]
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    assert_same_results(*both(exact(OneVsOneSVC(kernel="precomputed")), {"C": [0.1, 1, 10]}, K, y))


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_sparse_rows(kernel):
    X, y = digits()
    X = sp.csr_matrix(X[:300])
    assert_same_results(*both(exact(CrammerSingerSVC(kernel=kernel)), {"C": [1, 8], "gamma": [0.01, 0.1]}, X, y[:300]))


def test_single_precision_beyond_a_thousand_examples():
    X, y = overlapping(n=1400)
    ours, theirs = both(OneVsOneSVC(tol=1e-5), GRID, X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=2.1 / len(y)
    )


def test_a_pipeline_is_fitted_fold_by_fold():
    X, y = wine()
    X = X * np.logspace(0, 3, X.shape[1])
    pipeline = make_pipeline(StandardScaler(), exact(CrammerSingerSVC()))
    grid = {"crammersingersvc__C": [1, 8], "crammersingersvc__gamma": [0.01, 0.1, "scale"]}
    ours, theirs = both(pipeline, grid, X, y)
    assert ours.shared_
    assert_same_results(ours, theirs)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_a_grid_over_earlier_steps_is_searched_plainly():
    X, y = iris()
    pipeline = make_pipeline(StandardScaler(), exact(OneVsOneSVC()))
    grid = {"standardscaler__with_mean": [True, False], "onevsonesvc__C": [1, 8]}
    with pytest.warns(UserWarning, match="standardscaler__with_mean changes what comes before"):
        ours = KernelSearchCV(pipeline, grid, cv=FOLDS).fit(X, y)
    assert not ours.shared_
    assert_same_results(ours, GridSearchCV(pipeline, grid, cv=FOLDS).fit(X, y))


def test_other_estimators_are_searched_plainly():
    X, y = iris()
    with pytest.warns(UserWarning, match="SVC is not a kernel machine of this package"):
        ours = KernelSearchCV(SVC(), {"C": [1, 8]}, cv=FOLDS).fit(X, y)
    assert_same_results(ours, GridSearchCV(SVC(), {"C": [1, 8]}, cv=FOLDS).fit(X, y))


def test_too_little_memory_is_said_and_searched_plainly():
    X, y = iris()
    machine = exact(OneVsOneSVC(cache_size=0.3))
    with pytest.warns(UserWarning, match=r"kernel matrices of 150 examples take 1 MB, more than cache_size=0\.3"):
        ours = KernelSearchCV(machine, {"C": [1, 8]}, cv=FOLDS).fit(X, y)
    assert not ours.shared_
    assert_same_results(ours, GridSearchCV(machine, {"C": [1, 8]}, cv=FOLDS).fit(X, y))


def test_large_linear_data_need_no_kernel_matrix(monkeypatch):
    X, y = digits()
    machine = CrammerSingerSVC(kernel="linear", cache_size=1, tol=1e-6)
    monkeypatch.setattr(_family, "scalar_products", None)  # not to be called
    ours, theirs = both(machine, {"C": [0.01, 0.1, 1]}, X, y, cv=3)
    assert ours.shared_
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1.1 / len(y)
    )


def two_scores(machine, X, y):
    return {"rate": machine.score(X, y), "errors": -np.sum(machine.predict(X) != y)}


@pytest.mark.parametrize("machine", [CrammerSingerSVC(), LinearProgramSVC()], ids=["joint", "linear-program"])
def test_examples_far_from_all_others_get_the_class_of_the_nearest(machine):
    """Values that are zero in single precision decide where scores have no intercept, or equal ones."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 8)) + 1.5 * np.eye(8)[y]
    ours, theirs = both(machine, {"C": [1.0, 8.0], "gamma": [20.0, 60.0, 200.0, 1e4]}, X, y)
    assert theirs.cv_results_["mean_test_score"][1] > 0.5 > theirs.cv_results_["mean_test_score"][2]
    assert_same_results(ours, theirs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_only_what_single_precision_loses_is_computed_again(dtype):
    X = np.array([[0.0], [1.0], [20.0], [40.0]])
    kernel = Kernel("rbf", 1.0, 0.0, 0)
    train, test = np.array([0, 3]), np.array([1, 2])
    K = kernel.matrix(X, np.arange(4), X, np.arange(4), 1, dtype)
    values = held_out_values(kernel, X, K, test, train)
    assert values.dtype == np.float64
    assert values[0, 0] == K[1, 0]
    np.testing.assert_allclose(values[1], np.exp([-400.0, -400.0]), rtol=1e-10)


@pytest.mark.parametrize(
    ("scoring", "refit"),
    [
        ("f1_macro", True),
        (make_scorer(f1_score, average="macro"), True),
        (["accuracy", "f1_macro"], "f1_macro"),
        ({"a": "accuracy", "b": make_scorer(accuracy_score)}, "b"),
        (two_scores, "errors"),
        ("accuracy", lambda results: int(np.argmin(results["rank_test_score"]))),
    ],
    ids=["name", "scorer", "list", "dictionary", "callable", "refit-by-callable"],
)
def test_every_way_of_scoring(scoring, refit):
    X, y = overlapping(n=200)
    options = {"scoring": scoring, "refit": refit, "return_train_score": True, "cv": FOLDS}
    ours = KernelSearchCV(exact(OneVsOneSVC()), GRID, **options).fit(X, y)
    theirs = GridSearchCV(exact(OneVsOneSVC()), GRID, **options).fit(X, y)
    assert ours.best_params_ == theirs.best_params_
    for name, expected in theirs.cv_results_.items():
        if "test" in name or "train" in name:
            np.testing.assert_array_equal(ours.cv_results_[name], expected, err_msg=name)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_weights_and_groups_go_where_they_belong():
    X, y = overlapping(n=200)
    rng = np.random.default_rng(0)
    fit_params = {"sample_weight": rng.integers(1, 4, len(y)).astype(float), "groups": rng.integers(0, 8, len(y))}
    machine, options = exact(OneVsOneSVC()), {"cv": GroupKFold(4), "fit_params": fit_params}
    assert_same_results(*both(machine, GRID, X, y, **options))
    weighted, plain = both(machine, GRID, X, y, return_train_score=True, **options)
    assert_same_results(weighted, plain)
    del fit_params["sample_weight"]
    unweighted = both(machine, GRID, X, y, return_train_score=True, **options)[0]
    assert not np.array_equal(weighted.cv_results_["mean_train_score"], unweighted.cv_results_["mean_train_score"])


@pytest.mark.parametrize("cv", [3, ShuffleSplit(2, random_state=0), [(np.arange(0, 150, 2), np.arange(1, 150, 2))]])
def test_every_kind_of_folds(cv):
    X, y = iris()
    assert_same_results(*both(exact(OneVsOneSVC()), GRID, X, y, cv=cv))


@pytest.mark.parametrize("machine", [OneVsOneSVC(), OneVsRestSVC()], ids=repr)
def test_a_class_may_be_missing_from_the_training_part_of_a_fold(machine):
    X, y = iris()
    X, y = np.vstack([X, [[9.0, 9.0, 9.0, 9.0]]]), np.append(y, 7)
    rows = np.random.default_rng(0).permutation(len(y))
    folds = [(np.delete(rows, part), rows[part]) for part in np.array_split(np.arange(len(y)), 4)]
    assert sum(7 in y[test] for _, test in folds) == 1
    assert_same_results(*both(exact(machine), GRID, X, y, cv=folds, refit=False))


@pytest.mark.parametrize("machine", [OneVsOneSVC(), OneVsRestSVC()], ids=repr)
def test_weights_of_classes_are_those_of_the_training_part(machine):
    X, y = overlapping(n=240)
    X, y = X[30:], y[30:]
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    machine = exact(machine).set_params(class_weight="balanced")
    assert_same_results(*both(machine, GRID, X, y, fit_params={"sample_weight": weight}))


@pytest.mark.parametrize(
    "machine", [OneVsOneSVC(), OneVsOneSVC(decision="adag"), OneVsRestSVC(), OutputCodeSVC(code="dense")], ids=repr
)
def test_all_costs_and_folds_of_a_kernel_are_one_call(machine, monkeypatch):
    calls = []

    decided = CostFamily.decided

    def counted(family, divisions, *rest):
        calls.append((len(divisions), list(family._costs)))
        return decided(family, divisions, *rest)

    monkeypatch.setattr(CostFamily, "decided", counted)
    X, y = overlapping(n=200)
    KernelSearchCV(machine, GRID, cv=FOLDS, refit=False).fit(X, y)
    assert calls == [(4, [0.5, 8.0, 64.0])] * 2


def test_solutions_that_take_much_memory_are_made_fold_by_fold(monkeypatch):
    X, y = overlapping(n=200)
    together = KernelSearchCV(OneVsOneSVC(), GRID, cv=FOLDS, refit=False).fit(X, y)
    monkeypatch.setattr(cost_family, "_SOLUTION_BYTES", 1)
    monkeypatch.setattr(cost_family, "_SCORES_AT_ONCE", 1)
    apart = KernelSearchCV(OneVsOneSVC(), GRID, cv=FOLDS, refit=False).fit(X, y)
    for name in (f"split{fold}_test_score" for fold in range(4)):
        np.testing.assert_array_equal(together.cv_results_[name], apart.cv_results_[name])


def test_a_share_is_held_out_once_by_class():
    X, y = iris()
    search = KernelSearchCV(OneVsOneSVC(), GRID, cv=0.3, refit=False).fit(X, y)
    assert search.n_splits_ == 1
    assert set(np.round(45 * search.cv_results_["split0_test_score"], 9) % 1) == {0.0}


def test_distances_are_computed_once_and_each_kernel_once(monkeypatch):
    counted = {"distances": 0, "kernels": 0}
    distances, made = _family.squared_distances, _family.KernelMatrices._made

    def count_distances(*arguments):
        counted["distances"] += 1
        return distances(*arguments)

    def count_kernels(*arguments):
        counted["kernels"] += 1
        return made(*arguments)

    monkeypatch.setattr(_family, "squared_distances", count_distances)
    monkeypatch.setattr(_family.KernelMatrices, "_made", count_kernels)
    X, y = overlapping(n=200)
    KernelSearchCV(OneVsOneSVC(), {"C": [1, 2, 4], "gamma": [0.1, 0.2, 0.3], "decision": ["votes", "dag"]}).fit(X, y)
    assert counted == {"distances": 1, "kernels": 3}


def test_threads_do_not_change_the_result():
    X, y = overlapping(n=300)
    one, two = (KernelSearchCV(CrammerSingerSVC(), GRID, cv=FOLDS, n_jobs=n).fit(X, y) for n in (1, 2))
    for name in one.cv_results_:
        if "score" in name and "time" not in name:
            np.testing.assert_array_equal(one.cv_results_[name], two.cv_results_[name])
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_results_make_a_table():
    X, y = iris()
    table = pd.DataFrame(KernelSearchCV(OneVsOneSVC(), GRID).fit(X, y).cv_results_)
    assert len(table) == 6
    assert set(table["param_C"]) == {0.5, 8.0, 64.0}


def test_a_candidate_that_cannot_be_fitted_gets_the_error_score():
    X, y = iris()
    X, y = np.vstack([X, X]), np.concatenate([y, (y + 1) % 3])  # nobody separates a point from itself
    grid = {"C": [1.0, float("inf")], "gamma": [0.1]}
    with pytest.warns(FitFailedWarning, match="separa"):
        search = KernelSearchCV(OneVsOneSVC(), grid, cv=FOLDS).fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, True]
    assert search.cv_results_["mean_score_time"][1] == 0.0
    assert search.best_params_["C"] == 1.0
    with pytest.raises(ValueError, match="separa"):
        KernelSearchCV(OneVsOneSVC(), grid, cv=FOLDS, error_score="raise").fit(X, y)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_keeps_what_is_done(n_jobs):
    X, y = iris()
    calls = []

    def interrupting(machine, X, y):
        calls.append(machine.C)
        if len(calls) == 200:
            os.kill(os.getpid(), signal.SIGINT)
        return machine.score(X, y)

    search = KernelSearchCV(OneVsOneSVC(), hsu_lin_grid(), cv=FOLDS, scoring=interrupting, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    finished = search.cv_results_["params"]
    assert 15 <= len(finished) < 200
    assert search.best_params_ in finished
    assert not hasattr(search, "best_estimator_")


def test_a_fit_under_way_in_a_thread_ends_soon_after_ctrl_c():
    X, y = overlapping(n=6000)
    machine = OneVsRestSVC(tol=1e-9, time_limit=60.0)
    search = KernelSearchCV(machine, {"C": [1e7], "gamma": [0.05]}, cv=FOLDS, n_jobs=2)
    times = []

    def interrupt():
        times.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(1.0, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert time.perf_counter() - times[0] < 5
    assert not hasattr(search, "cv_results_")


def test_stored_values_are_as_exact_as_the_costs_need(monkeypatch):
    stored = []
    made = _family.KernelMatrices._made

    def spied(family, kernel):
        stored.append(family.dtype)
        return made(family, kernel)

    monkeypatch.setattr(_family.KernelMatrices, "_made", spied)
    X, y = digits(300)
    KernelSearchCV(CrammerSingerSVC(), {"C": [1.0], "gamma": [0.1]}, cv=FOLDS, refit=False).fit(X, y)
    # Now kernel values differ from 1 by less than single precision tells apart.
    ours, theirs = both(exact(CrammerSingerSVC()), {"C": [1e5], "gamma": [1e-5]}, X, y, refit=False)
    assert stored == [np.float32, np.float64]
    assert_same_results(ours, theirs)


def test_features_are_made_once_for_all_costs(monkeypatch):
    made = []
    features = PrimalSoftmax._features

    def counted(formulation, X, *rest):
        made.append((formulation.rank, len(X)))
        return features(formulation, X, *rest)

    monkeypatch.setattr(PrimalSoftmax, "_features", counted)
    X, y = iris()
    grid = GRID | {"rank": [5, 20]}
    KernelSearchCV(SoftmaxSVC(), grid, cv=0.3, refit=False).fit(X, y)
    assert sorted(made) == [(5, 105), (5, 105), (20, 105), (20, 105)]  # of each width


def test_hopeless_candidates_are_given_up_only_if_asked():
    X, y = overlapping(n=300)
    grid = {"C": [1e-6, 1.0], "gamma": [0.05]}
    cv = StratifiedKFold(8, shuffle=True, random_state=0)
    search = KernelSearchCV(exact(OneVsOneSVC()), grid, cv=cv, early_stop=0.01).fit(X, y)
    plain = GridSearchCV(exact(OneVsOneSVC()), grid, cv=cv).fit(X, y)
    assert search.best_params_ == plain.best_params_
    assert search.best_score_ == plain.best_score_
    assert np.isnan(search.cv_results_["split7_test_score"]).tolist() == [True, False]
    assert not np.isnan(search.cv_results_["split2_test_score"]).any()
    assert search.cv_results_["rank_test_score"].tolist() == [2, 1]


def test_progress_with_the_time_left(capsys):
    X, y = iris()
    KernelSearchCV(OneVsOneSVC(), GRID, cv=FOLDS, verbose=1).fit(X, y)
    assert "24/24 fits" in capsys.readouterr().err


def test_what_the_first_try_leaves_is_counted_once(capsys):
    X, y = overlapping(n=600)
    grid = {"C": [1.0, 1e4], "gamma": [0.05]}
    with pytest.warns(ConvergenceWarning):
        KernelSearchCV(OneVsOneSVC(max_iter=50), grid, cv=FOLDS, verbose=1, refit=False).fit(X, y)
    assert "8/8 fits" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"early_stop": 2.0}, "early_stop"),
        ({"cv": 1.5}, "cv"),
        ({"param_grid": {"C": []}}, "C"),
        ({"param_grid": {"nonsense": [1]}}, "nonsense"),
    ],
)
def test_bad_settings_are_named(options, message):
    X, y = iris()
    settings = {"estimator": OneVsOneSVC(), "param_grid": GRID} | options
    with pytest.raises(ValueError, match=message):
        KernelSearchCV(**settings).fit(X, y)


@pytest.mark.parametrize("name", ["C", "svc__C", "onevsonesvc__c"])
def test_a_name_that_a_pipeline_has_not_is_refused_with_the_right_one(name):
    X, y = iris()
    with pytest.raises(ValueError, match=f"'{name}'.* did you mean 'onevsonesvc__C'"):
        KernelSearchCV(make_pipeline(StandardScaler(), OneVsOneSVC()), {name: [1, 2]}).fit(X, y)


def test_a_step_may_take_the_place_of_another():
    X, y = iris()
    grid = {"svc": [SVC(), CrammerSingerSVC()], "svc__C": [1.0]}
    with pytest.warns(UserWarning, match="one by one"):
        search = KernelSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=FOLDS).fit(X, y)
    assert len(search.cv_results_["params"]) == 2


def test_bad_data_are_refused_before_any_fit():
    X, y = iris()
    X = X.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN at row 3, column 1"):
        KernelSearchCV(OneVsOneSVC(), GRID).fit(X, y)


def test_the_search_can_be_cloned_and_has_no_warnings():
    X, y = iris()
    search = clone(KernelSearchCV(OneVsOneSVC(), GRID, early_stop=0.05, cv=4))
    assert search.get_params()["early_stop"] == 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X, y)


def test_the_grid_of_hsu_and_lin():
    grid = hsu_lin_grid()
    assert [len(values) for values in grid.values()] == [15, 15]
    assert (grid["C"][0], grid["C"][-1]) == (0.25, 4096)
    assert (grid["gamma"][0], grid["gamma"][-1]) == (2**-10, 16)


def test_the_smallest_cache_of_any_candidate_decides_before_any_fit(monkeypatch):
    X, y = overlapping(n=200)
    monkeypatch.setattr(CostFamily, "decided", lambda *_: pytest.fail("it began"))
    monkeypatch.setattr("polymargin.selection.evaluation.fit_prepared", lambda *_: pytest.fail("it began"))
    grid = {"C": [1.0, 2.0], "cache_size": [500, 0.05]}
    with pytest.warns(UserWarning, match=r"one by one: kernel matrices of 200 examples take .* cache_size=0.05 allows"):
        search = KernelSearchCV(OneVsOneSVC(), grid, cv=2).fit(X, y)
    assert not search.shared_


def test_what_scores_a_machine_does_not_change_it():
    X, y = overlapping(n=200)
    machine = OneVsOneSVC(decision="dag").fit(X, y)
    before = dict(vars(machine))
    predicted = machine.predict_by("votes", X)
    np.testing.assert_array_equal(predicted, OneVsOneSVC().fit(X, y).predict(X))
    assert {name: id(value) for name, value in vars(machine).items()} == {n: id(v) for n, v in before.items()}


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_widths_that_make_the_same_matrix_are_solved_once(machine):
    X, y = iris()
    _, first = np.unique(X, axis=0, return_index=True)
    X, y = 1e4 * X[np.sort(first)], y[np.sort(first)]  # nobody scaled it: no two flowers are alike
    grid = {"C": [1.0, 8.0], "gamma": [1e-9, 1.0, 10.0, 1e3]}
    ours, theirs = both(exact(machine), grid, X, y)
    assert_same_results(ours, theirs)
    spent = ours.cv_results_["mean_fit_time"].reshape(2, 4) > 0
    assert spent[:, 0].all()
    assert np.all(spent[:, 1:].sum(axis=1) == 1)


def test_only_widths_are_taken_for_the_same():
    X, y = iris()
    grid = {"C": [1.0], "gamma": [1.0, 10.0], "class_weight": [None, "balanced"], "tol": [1e-3, 1e-6]}
    search = KernelSearchCV(OneVsOneSVC(), grid, cv=FOLDS).fit(1e4 * X, y)
    widths = np.array([parameters["gamma"] for parameters in search.cv_results_["params"]])
    spent = search.cv_results_["mean_fit_time"] > 0
    assert spent.sum() == 4
    assert len(set(widths[spent])) == 1
    apart = [
        {"kernel": ["rbf"], "gamma": [1.0], "C": [1.0, 2.0]},
        {"kernel": ["rbf"], "gamma": [2.0], "C": [1.0, 4.0]},
        {"kernel": ["laplacian"], "gamma": [1.0], "C": [1.0, 2.0]},
    ]
    search = KernelSearchCV(OneVsOneSVC(), apart, cv=FOLDS).fit(1e4 * X, y)
    assert np.all(search.cv_results_["mean_fit_time"] > 0)


def test_a_machine_without_loss_is_that_of_all_larger_costs():
    X, y = wine()
    grid = {"C": [0.01, 1.0, 64.0, 256.0, 4096.0], "gamma": [0.001, 1.0]}
    ours, theirs = both(LinearProgramSVC(tol=1e-6), grid, X, y)
    assert_same_results(ours, theirs)
    spent = ours.cv_results_["mean_fit_time"].reshape(5, 2) > 0
    assert spent[:3, 0].all()  # examples are still on the wrong side
    assert spent[0, 1]
    assert not spent[3:, 1].any()


def test_a_machine_that_goes_by_another_rule_is_fitted_for_every_cost():
    X, y = wine()
    machine = LinearProgramSVC(stop="violation")
    search = KernelSearchCV(machine, {"C": [64.0, 256.0], "gamma": [1.0]}, cv=FOLDS).fit(X, y)
    assert np.all(search.cv_results_["mean_fit_time"] > 0)


def test_groups_are_spread_over_their_widths():
    assert spread([]) == []
    assert spread([5, 6]) == [5, 6]
    assert spread(list(range(8))) == [0, 7, 3, 1, 5, 2, 4, 6]
    assert all(sorted(spread(list(range(n)))) == list(range(n)) for n in range(40))
