"""Probabilities that are fitted to scores of held-out examples, for all machines that have the parameter."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from reference.data import digits, iris, overlapping, wine
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit

from polymargin import (
    CrammerSingerSVC,
    JointSVC,
    LeeLinWahbaSVC,
    LinearProgramSVC,
    MaximumMarginRegressionSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    ReinforcedSVC,
    WestonWatkinsSVC,
    certify,
    load_model,
    save_model,
)
from polymargin.estimators.fitting import training_set
from polymargin.formulations.folds import folds_of
from polymargin.selection import KernelSearchCV

METHODS = ("sigmoid", "isotonic", "temperature")
LINEAR = {"kernel": "linear", "bias": "regularized"}
MACHINES = [
    OneVsRestSVC(),
    OneVsRestSVC(**LINEAR),
    WestonWatkinsSVC(),
    WestonWatkinsSVC(**LINEAR),
    CrammerSingerSVC(bias="free"),
    CrammerSingerSVC(**LINEAR),
    LeeLinWahbaSVC(),
    ReinforcedSVC(**LINEAR),
    MaximumMarginRegressionSVC(),
    JointSVC(margins="absolute", aggregation="max"),
    LinearProgramSVC(),
    OutputCodeSVC(),
    OutputCodeSVC(code="dense", decoding="loss"),
]
FEW = [OneVsRestSVC(), WestonWatkinsSVC(**LINEAR), OutputCodeSVC(decoding="loss")]


def sample(k=3, n=90, seed=0):
    X, y = overlapping(n=n, n_classes=k, seed=seed)
    return X, y


def with_method(machine, method="sigmoid", **parameters):
    return clone(machine).set_params(calibration=method, **parameters)


def folds_in_rows(X, y):
    training = training_set(X, y, np.unique(y), C=1.0)
    folds = np.empty(len(y), dtype=int)
    folds[training.order] = folds_of(X, training, None)
    return folds


# What the probabilities are


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_probabilities_and_what_must_follow_from_them(machine, method, k):
    X, y = sample(k)
    y = np.array(["d", "a", "c", "b"])[y]
    fitted = with_method(machine, method).fit(X[::2], y[::2])
    p = fitted.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert (p >= 0).all()
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[p.argmax(axis=1)])
    scores = fitted.decision_function(X)
    named = (scores > 0).astype(int) if k == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[named])
    np.testing.assert_array_equal(fitted.predict_topk(X, 1)[:, 0], fitted.predict(X))
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(fitted.predict_log_proba(X), np.log(p))
    alone = np.vstack([fitted.predict_proba(X[[row]]) for row in range(5)])
    np.testing.assert_allclose(alone, p[:5], atol=1e-6)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("machine", FEW, ids=repr)
def test_they_are_scikit_learns_on_the_same_folds(machine, method, k):
    X, y = sample(k, n=160)
    machine = clone(machine).set_params(gamma=0.2, tol=1e-9)
    split = PredefinedSplit(folds_in_rows(X, y))
    theirs = CalibratedClassifierCV(machine, method=method, cv=split, ensemble=False).fit(X, y)
    fitted = with_method(machine, method).fit(X, y)
    tolerance = 1e-6 if method == "temperature" else 2e-5  # theirs stops at a gradient of 1e-6
    np.testing.assert_allclose(fitted.predict_proba(X), theirs.predict_proba(X), atol=tolerance)


@pytest.mark.parametrize("machine", [OneVsRestSVC(**LINEAR), CrammerSingerSVC(**LINEAR)], ids=repr)
def test_sparse_rows_and_the_sequential_dual_method(machine):
    X, y = digits(300)
    X = np.where(X < 0.3, 0.0, X)
    machine = clone(machine).set_params(solver="sequential-dual")
    split = PredefinedSplit(folds_in_rows(X, y))
    theirs = CalibratedClassifierCV(machine, cv=split, ensemble=False).fit(X, y)
    p = with_method(machine).fit(sparse.csr_matrix(X), y).predict_proba(sparse.csr_matrix(X))
    np.testing.assert_allclose(p, theirs.predict_proba(X), atol=2e-2)
    assert log_loss(y, p) <= 1.01 * log_loss(y, theirs.predict_proba(X))


def test_a_temperature_leaves_the_classes_alone():
    X, y = sample(4, n=300)
    plain = WestonWatkinsSVC().fit(X, y)
    np.testing.assert_array_equal(with_method(plain, "temperature").fit(X, y).predict(X), plain.predict(X))


@pytest.mark.parametrize("machine", FEW, ids=repr)
def test_the_machine_and_its_certificate_are_those_without_probabilities(machine):
    X, y = sample()
    plain, fitted = clone(machine).fit(X, y), with_method(machine).fit(X, y)
    for name in ("support_", "dual_coef_", "intercept_", "n_iter_", "dual_objective_"):
        np.testing.assert_array_equal(getattr(fitted, name), getattr(plain, name))
    assert not hasattr(plain, "predict_proba")
    if not isinstance(machine, OutputCodeSVC):
        assert certify(fitted, X, y) == certify(plain, X, y)


# What must not matter


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("machine", FEW, ids=repr)
def test_weight_two_is_a_row_twice_and_weight_zero_none(machine, method):
    X, y = sample(3, n=80)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    machine = with_method(machine, method, gamma=0.3, tol=1e-10)
    weighted = clone(machine).fit(X, y, sample_weight=weight)
    repeated = clone(machine).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("machine", FEW, ids=repr)
def test_order_of_rows(machine):
    X, y = sample(3)
    order = np.random.default_rng(1).permutation(len(y))
    machine = with_method(machine, tol=1e-10)
    shuffled = clone(machine).fit(X[order], y[order])
    np.testing.assert_allclose(shuffled.predict_proba(X), clone(machine).fit(X, y).predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("machine", [*FEW, CrammerSingerSVC(), LinearProgramSVC()], ids=repr)
def test_bit_identical_for_any_number_of_threads(machine):
    X, y = sample(3, n=100 if isinstance(machine, LinearProgramSVC) else 300)
    fits = [with_method(machine, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2, 3)]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].sigmoid_slopes_, other.sigmoid_slopes_)
        np.testing.assert_array_equal(fits[0].predict_proba(X), other.predict_proba(X))


def test_random_state_chooses_the_folds():
    X, y = sample()
    fits = [with_method(OneVsRestSVC(random_state=seed)).fit(X, y) for seed in (None, None, 3)]
    np.testing.assert_array_equal(fits[0].sigmoid_slopes_, fits[1].sigmoid_slopes_)
    assert not np.array_equal(fits[0].sigmoid_slopes_, fits[2].sigmoid_slopes_)


@pytest.mark.parametrize("kernel", ["precomputed", "callable"])
def test_kernels_of_ones_own(kernel):
    X, y = wine()
    direct = with_method(WestonWatkinsSVC(kernel="linear", solver="decomposition")).fit(X, y).predict_proba(X)
    own = with_method(WestonWatkinsSVC(kernel=kernel if kernel == "precomputed" else lambda A, B: A @ B.T, stop="gap"))
    rows = X @ X.T if kernel == "precomputed" else X
    np.testing.assert_allclose(own.fit(rows, y).predict_proba(rows), direct, atol=0.1)


# Few examples


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("machine", [*FEW, CrammerSingerSVC(), LeeLinWahbaSVC(), LinearProgramSVC()], ids=repr)
def test_few_examples_of_a_class(machine, n, method):
    rng = np.random.default_rng(0)
    y = np.append(np.repeat([0, 1], 12), [2] * n)
    X = 5.0 * np.eye(3)[y] + 0.1 * rng.normal(size=(len(y), 3))
    fitted = with_method(machine, method, C=10.0).fit(X, y)
    assert np.isfinite(fitted.predict_proba(X)).all()
    np.testing.assert_array_equal(fitted.predict(X[y < 2]), y[y < 2])


@pytest.mark.parametrize("method", METHODS)
def test_a_class_of_one_row_many_times(method):
    X, y = sample(2)
    X[y == 1] = 3.0
    assert with_method(OneVsRestSVC(), method).fit(X, y).predict_proba(X[y == 1])[0, 1] > 0.7


# Stopping, fitted states, parameters


def test_a_limit_of_steps_holds_for_each_fold_and_is_told():
    X, y = overlapping(n=400, n_classes=2)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        machine = with_method(OneVsRestSVC(C=100.0, max_iter=20)).fit(X, y)
    assert machine.stop_reason_ == "max_iter"
    assert np.isfinite(machine.predict_proba(X)).all()


def test_a_time_limit_is_one_for_all_folds():
    X, y = overlapping(n=3000, n_classes=4)
    machine = with_method(CrammerSingerSVC(C=1e5, tol=1e-8, time_limit=0.2))
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        machine.fit(X, y)
    assert machine.fit_time_ < 5
    assert np.isfinite(machine.predict_proba(X[:10])).all()


def test_folds_that_did_not_converge_are_told():
    X, y = overlapping(n=600, n_classes=3)
    machine = WestonWatkinsSVC(C=10.0, warm_start=True).fit(X, y)
    machine.set_params(calibration="sigmoid", max_iter=30)  # the machine needs none
    with pytest.warns(ConvergenceWarning, match="held-out scores that did not converge: max_iter=30"):
        machine.fit(X, y)
    assert machine.converged_


def test_it_must_be_chosen_before_the_fit():
    X, y = iris()
    machine = OneVsRestSVC().fit(X, y)
    with pytest.raises(AttributeError, match="predict_proba") as caught:
        machine.predict_proba(X)
    assert "calibration='sigmoid'" in str(caught.value.__cause__)
    machine.set_params(calibration="sigmoid")
    with pytest.raises(NotFittedError, match="fit it again"):
        machine.predict_proba(X)
    machine.fit(X, y).set_params(calibration="isotonic")
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        with pytest.raises(NotFittedError, match=r"calibration='sigmoid'.*fit it again"):
            getattr(machine, method)(X)
    np.testing.assert_array_equal(machine.set_params(calibration=None).predict(X), OneVsRestSVC().fit(X, y).predict(X))


def test_a_fit_without_forgets_earlier_probabilities():
    X, y = iris()
    machine = with_method(OneVsRestSVC()).fit(X, y).set_params(calibration=None).fit(X, y)
    assert not hasattr(machine, "sigmoid_slopes_")
    assert not hasattr(machine, "predict_proba")


def test_output_codes_have_one_way_to_probabilities():
    X, y = iris()
    with pytest.raises(ValueError, match="decoding='probability' has probabilities already"):
        OutputCodeSVC(decoding="probability", calibration="sigmoid").fit(X, y)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("machine", [OneVsRestSVC(), OutputCodeSVC(), CrammerSingerSVC(**LINEAR)], ids=repr)
def test_saved_and_loaded_machines_have_the_same_probabilities(machine, method, tmp_path):
    X, y = wine()
    fitted = with_method(machine, method).fit(X[::2], y[::2])
    save_model(fitted, tmp_path / "model.safetensors")
    for copied in (load_model(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(copied.predict_proba(X), fitted.predict_proba(X))


TAMPERED = [
    ("sigmoid", "sigmoid_slopes_", lambda a: a[:-1]),
    ("sigmoid", "sigmoid_offsets_", lambda a: a * np.nan),
    ("isotonic", "isotonic_starts_", lambda a: a[::-1]),
    ("isotonic", "isotonic_scores_", lambda a: a[::-1]),
    ("isotonic", "isotonic_shares_", lambda a: a + 1.0),
    ("temperature", "temperature_", lambda a: -a),
    ("temperature", "temperature_", lambda a: "hot"),
]


@pytest.mark.parametrize(("method", "name", "change"), TAMPERED)
def test_a_tampered_calibration_is_refused(method, name, change):
    X, y = wine()
    machine = copy.deepcopy(with_method(OneVsRestSVC(), method).fit(X, y))
    setattr(machine, name, change(getattr(machine, name)))
    for ask in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(ValueError, match=name):
            getattr(machine, ask)(X)


def test_a_failed_fit_keeps_the_probabilities():
    X, y = iris()
    machine = with_method(OneVsRestSVC()).fit(X, y)
    before = machine.predict_proba(X)
    with pytest.raises(ValueError, match="NaN"):
        machine.fit(np.where(X > 2.0, np.nan, X), y)
    np.testing.assert_array_equal(machine.predict_proba(X), before)


def test_an_interrupted_fold_leaves_the_machine_as_it_was(monkeypatch):
    X, y = iris()
    machine = with_method(OneVsRestSVC(**LINEAR)).fit(X, y)
    before, solve = machine.predict_proba(X), type(machine.formulation).solve
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return solve(*arguments)

    monkeypatch.setattr(type(machine.formulation), "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        machine.set_params(C=7.0).fit(X, y)
    np.testing.assert_array_equal(machine.predict_proba(X), before)


def test_a_search_decides_by_the_probabilities():
    X, y = sample(3, n=200)
    grid = {"C": [0.1, 1.0], "gamma": [0.1]}
    search = KernelSearchCV(OneVsRestSVC(calibration="sigmoid"), grid, cv=3).fit(X, y)
    from sklearn.model_selection import GridSearchCV

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = GridSearchCV(OneVsRestSVC(calibration="sigmoid"), grid, cv=3).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=0.02)
    assert search.predict_proba(X).shape == (200, 3)


@pytest.mark.parametrize("name", ["wine", "overlapping"])
@pytest.mark.parametrize("method", METHODS)
def test_log_loss_is_no_worse_than_scikit_learns_on_the_same_folds(method, name):
    X, y = {"wine": wine, "overlapping": lambda: overlapping(n=600)}[name]()
    train, test = slice(None, None, 2), slice(1, None, 2)
    machine = WestonWatkinsSVC(C=5.0, gamma=0.1)
    split = PredefinedSplit(folds_in_rows(X[train], y[train]))
    theirs = CalibratedClassifierCV(machine, method=method, cv=split, ensemble=False).fit(X[train], y[train])
    fitted = with_method(machine, method).fit(X[train], y[train])
    ours, other = (log_loss(y[test], m.predict_proba(X[test])) for m in (fitted, theirs))
    assert ours <= 1.02 * other
