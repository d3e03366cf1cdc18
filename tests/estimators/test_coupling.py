"""OneVsOneSVC(decision="coupling"): probabilities, their folds and sigmoids, and that nothing contradicts them."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reference import coupling as reference
from reference.composition import pairs
from reference.data import digits, iris, overlapping, random_classes, wine
from reference.kernels import kernel_matrix
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit
from sklearn.svm import SVC

from polymargin import OneVsOneSVC, certify
from polymargin.decision import coupling
from polymargin.formulations import TrainingSet
from polymargin.formulations.folds import FOLDS, folds_of


def coupled(**parameters):
    return OneVsOneSVC(decision="coupling", **parameters)


def folds_in_rows(X, y, random_state=None):
    """Return the fold of each row of X."""
    order = np.argsort(y, kind="stable")
    class_starts = np.searchsorted(y[order], np.arange(y.max() + 2))
    folds = np.empty(len(y), dtype=int)
    folds[order] = folds_of(X, TrainingSet(X, order, class_starts, np.ones(len(y)), np.ones(len(y))), random_state)
    return folds


def brief(k=3, n=20, seed=0):
    return random_classes(k, n=n * k, seed=seed)


# Probabilities and predictions


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_largest_probability_is_the_prediction(k, kernel):
    X, y = random_classes(k, n=60 * k, seed=k)
    names = np.array([f"class {c}" for c in range(k)])
    machine = coupled(kernel=kernel, C=0.5).fit(X[: 30 * k], names[y[: 30 * k]])
    p, decisions = machine.predict_proba(X), machine.decision_function(X)
    assert p.shape == (len(X), k)
    assert p.min() >= 0
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(X))
    if k == 2:
        np.testing.assert_array_equal(machine.classes_[(decisions > 0).astype(int)], machine.predict(X))
        np.testing.assert_allclose(decisions, np.log(p[:, 1] / p[:, 0]), atol=1e-6)
    else:
        np.testing.assert_array_equal(decisions, p)


def test_two_classes_have_the_sigmoid_of_their_pair():
    X, y = brief(2, seed=3)
    machine = coupled().fit(X, y)
    expected = 1 / (1 + np.exp(machine.probA_ * machine.pairwise_decision_function(X) + machine.probB_))
    np.testing.assert_allclose(machine.predict_proba(X)[:, :1], expected, atol=1e-12)
    assert machine.probA_[0] < 0


def test_probabilities_are_those_of_the_sigmoids_coupled():
    X, y = brief(4)
    machine = coupled().fit(X, y)
    r = 1 / (1 + np.exp(machine.probA_ * machine.pairwise_decision_function(X) + machine.probB_))
    expected = [reference.fixed_point(row, 4) for row in r[::5]]
    np.testing.assert_allclose(machine.predict_proba(X)[::5], expected, atol=1e-9)


@pytest.mark.parametrize("parameters", [{}, {"kernel": "linear", "C": 0.1}, {"class_weight": "balanced"}])
def test_sigmoids_fit_machines_that_have_not_seen_the_example(parameters):
    X, y = random_classes(3, n=90, seed=2)
    X, y = X[10:], y[10:]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    machine = coupled(gamma=0.2, tol=1e-8, **parameters).fit(X, y, sample_weight=weight)
    factors = np.ones(3)
    if "class_weight" in parameters:
        totals = np.bincount(y, weights=weight)
        factors = totals.sum() / (3 * totals)
    parameters = {**parameters, "class_weight": dict(enumerate(factors)), "gamma": 0.2, "tol": 1e-8}
    folds = folds_in_rows(X, y)
    values = np.empty((len(X), 3))
    for fold in range(FOLDS):
        left = folds != fold
        without = OneVsOneSVC(**parameters).fit(X[left], y[left], sample_weight=weight[left])
        values[~left] = without.pairwise_decision_function(X[~left])
    for p, (i, j) in enumerate(pairs(3)):
        own = (y == i) | (y == j)
        A, B = reference.sigmoid(values[own, p], y[own] == i, (weight * factors[y])[own])
        np.testing.assert_allclose([machine.probA_[p], machine.probB_[p]], [A, B], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("pair", [(0, 1), (1, 2), (3, 8)])
def test_two_classes_agree_with_scikit_learns_calibration_on_the_same_folds(pair):
    X, y = digits()
    own = np.isin(y, pair)
    X, y = X[own], (y[own] == pair[1]).astype(int)
    split = PredefinedSplit(folds_in_rows(X[::2], y[::2]))
    ours = coupled(C=0.01, tol=1e-6).fit(X[::2], y[::2])
    theirs = CalibratedClassifierCV(SVC(C=0.01, tol=1e-8), cv=split, ensemble=False).fit(X[::2], y[::2])
    gamma = ours.model_.kernel.gamma  # "scale" is that of all rows here, and of each fold's rows there
    theirs = theirs.set_params(estimator__gamma=gamma).fit(X[::2], y[::2])
    np.testing.assert_allclose(ours.predict_proba(X[1::2]), theirs.predict_proba(X[1::2]), atol=1e-3)


@pytest.mark.parametrize("name", ["digits", "wine", "overlapping"])
def test_log_loss_is_no_worse_than_that_of_scikit_learns_calibration(name):
    X, y = {"digits": digits, "wine": wine, "overlapping": lambda: overlapping(n=1000)}[name]()
    train, test = slice(None, None, 2), slice(1, None, 2)
    ours = coupled(C=5.0).fit(X[train], y[train])
    theirs = CalibratedClassifierCV(SVC(C=5.0), ensemble=False).fit(X[train], y[train])
    ours_loss, theirs_loss = (log_loss(y[test], m.predict_proba(X[test])) for m in (ours, theirs))
    assert ours_loss <= theirs_loss
    assert ours.score(X[test], y[test]) >= theirs.score(X[test], y[test]) - 0.02


def test_probabilities_are_calibrated():
    X, y = overlapping(n=3000, n_classes=3)
    machine = coupled().fit(X[:1500], y[:1500])
    p = machine.predict_proba(X[1500:])
    sure = p.max(axis=1)
    right = p.argmax(axis=1) == y[1500:]
    for low, high in ((0.4, 0.6), (0.6, 0.8), (0.8, 1.0)):
        part = (sure >= low) & (sure < high)
        assert part.sum() > 50
        assert right[part].mean() == pytest.approx(sure[part].mean(), abs=0.1)


@pytest.mark.parametrize("k", [2, 5])
def test_the_pairs_are_those_of_the_other_decisions(k):
    X, y = brief(k)
    plain, probable = OneVsOneSVC(tol=1e-8).fit(X, y), coupled(tol=1e-8).fit(X, y)  # probabilities need exact pairs
    for name in ("support_", "dual_coef_", "intercept_", "n_iter_"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(probable, name))
    assert probable.dual_objective_ == plain.dual_objective_
    assert certify(probable, X, y) == certify(plain, X, y)


# Folds


def test_folds_are_stratified_and_of_equal_size():
    X, y = digits()
    folds = folds_in_rows(X, y)
    for c in range(10):
        counts = np.bincount(folds[y == c], minlength=FOLDS)
        assert np.ptp(counts) <= 1


def test_folds_do_not_follow_the_order_of_the_rows():
    X, y = digits(600)
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_array_equal(folds_in_rows(X[order], y[order]), folds_in_rows(X, y)[order])
    first = np.flatnonzero(y == 0)
    assert not np.array_equal(folds_in_rows(X, y)[first], np.arange(len(first)) % FOLDS)


def test_equal_rows_share_a_fold():
    X, y = brief()
    twice = np.repeat(np.arange(len(y)), 2)
    folds = folds_in_rows(X[twice], y[twice])
    np.testing.assert_array_equal(folds[::2], folds[1::2])
    np.testing.assert_array_equal(folds[::2], folds_in_rows(X, y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows_have_the_folds_of_dense_ones(dtype, index):
    X, y = digits(300)
    X = np.where(X < 0.3, 0.0, X).astype(dtype)
    X[3] = 0.0
    A = sparse.csr_matrix(X)
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    np.testing.assert_array_equal(folds_in_rows(A, y), folds_in_rows(X, y))


def test_zero_and_minus_zero_are_equal_rows():
    y = np.zeros(6, dtype=int)
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    folds = folds_in_rows(X, y)
    assert folds[0] == folds[1]
    assert len(set(folds)) == FOLDS


def test_small_integers_are_told_apart():
    X = np.stack(np.meshgrid(*[np.arange(4.0)] * 6), axis=-1).reshape(-1, 6)
    counts = np.bincount(folds_in_rows(X, np.zeros(len(X), dtype=int)))
    assert np.ptp(counts) <= 1
    assert counts.sum() == 4096


def test_the_only_distinct_row_of_a_class_is_not_held_out():
    X, y = brief(3, n=6)
    X[y == 1] = 0.25
    folds = folds_in_rows(X, y)
    assert (folds[y == 1] == -1).all()
    assert (folds[y != 1] >= 0).all()


# What must not matter, and what may


def test_order_of_rows():
    X, y = brief(4)
    order = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_allclose(
        coupled().fit(X[order], y[order]).predict_proba(X), coupled().fit(X, y).predict_proba(X), atol=1e-7
    )


@pytest.mark.parametrize("k", [2, 4])
def test_weight_two_is_a_row_twice_and_weight_zero_none(k):
    X, y = brief(k)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = coupled(gamma=0.3).fit(X, y, sample_weight=weight)
    repeated = coupled(gamma=0.3).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-7)


def test_dense_is_sparse():
    X, y = digits(400)
    rows = sparse.csr_matrix(X)
    np.testing.assert_allclose(
        coupled().fit(rows, y).predict_proba(rows), coupled().fit(X, y).predict_proba(X), atol=1e-6
    )


@pytest.mark.parametrize("kernel", ["precomputed", "callable"])
def test_kernels_of_ones_own(kernel):
    X, y = wine()
    K = kernel_matrix(X, X, "rbf", gamma=0.05)
    direct = coupled(gamma=0.05).fit(X, y).predict_proba(X)
    if kernel == "precomputed":  # other folds, since the rows are those of the kernel matrix
        p = coupled(kernel="precomputed").fit(K, y).predict_proba(K)
        np.testing.assert_allclose(p, direct, atol=0.1)
    else:
        p = coupled(kernel=lambda A, B: kernel_matrix(A, B, "rbf", gamma=0.05)).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(p, direct, atol=1e-7)


def test_random_state_chooses_the_folds():
    X, y = brief(3)
    assert not np.array_equal(folds_in_rows(X, y, 0), folds_in_rows(X, y, 1))
    np.testing.assert_array_equal(folds_in_rows(X, y, 7), folds_in_rows(X, y, np.random.RandomState(7)))
    fits = [coupled(random_state=seed).fit(X, y) for seed in (None, None, 3, 3, 4)]
    p = [machine.predict_proba(X) for machine in fits]
    np.testing.assert_array_equal(p[0], p[1])
    np.testing.assert_array_equal(p[2], p[3])
    assert not np.array_equal(p[3], p[4])
    np.testing.assert_array_equal(fits[3].dual_coef_, fits[4].dual_coef_)


@pytest.mark.parametrize("cache_size", ["auto", 1])
@pytest.mark.parametrize("n", [600, 2500])
def test_bit_identical_for_any_number_of_threads(n, cache_size):
    X, y = overlapping(n=n)
    fits = [coupled(n_jobs=n_jobs, cache_size=cache_size).fit(X, y) for n_jobs in (1, 2, 4)]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].probA_, other.probA_)
        np.testing.assert_array_equal(fits[0].probB_, other.probB_)
        np.testing.assert_array_equal(fits[0].predict_proba(X), other.predict_proba(X))


def test_threads_that_fit_and_predict_at_once_do_not_meet():
    data = [overlapping(n=600, seed=seed) for seed in range(4)]

    def run(Xy):
        return coupled(n_jobs=2).fit(*Xy).predict_proba(Xy[0])

    serial = [run(Xy) for Xy in data]
    with ThreadPoolExecutor(2) as pool:
        for got, expected in zip(pool.map(run, data), serial, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_a_small_cache_gives_the_same_probabilities():
    X, y = overlapping(n=2000)
    whole = coupled(tol=1e-5, cache_size=200).fit(X, y)
    cached = coupled(tol=1e-5, cache_size=1).fit(X, y)
    np.testing.assert_allclose(cached.predict_proba(X), whole.predict_proba(X), atol=1e-3)


def test_many_rows_are_coupled_in_parts(monkeypatch):
    X, y = digits(500)
    machine = coupled().fit(X, y)
    whole = machine.predict_proba(X)
    monkeypatch.setattr(coupling, "_PAIRWISE_AT_ONCE", 45 * 37)
    np.testing.assert_allclose(machine.predict_proba(X), whole, atol=1e-9)


def test_class_weight_counts_in_the_probabilities():
    X, y = overlapping(n=600, n_classes=3)
    plain = coupled().fit(X, y).predict_proba(X)
    heavy = coupled(class_weight={0: 20.0}).fit(X, y).predict_proba(X)
    assert heavy[:, 0].mean() > plain[:, 0].mean() + 0.1


def test_warm_start_leads_to_the_same_probabilities():
    X, y = brief(3)
    machine = coupled(C=0.5, warm_start=True).fit(X, y).set_params(C=1.0).fit(X, y)
    np.testing.assert_allclose(machine.predict_proba(X), coupled(C=1.0).fit(X, y).predict_proba(X), atol=1e-6)


# Few examples


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_few_examples_of_a_class(k, n):
    rng = np.random.default_rng(k)
    y = np.repeat(np.arange(k), n)
    X = 5.0 * np.eye(k)[y] + 0.1 * rng.normal(size=(k * n, k))
    machine = coupled(C=10.0, kernel="linear").fit(X, y)
    p = machine.predict_proba(X)
    assert np.isfinite(p).all()
    np.testing.assert_array_equal(machine.predict(X), y)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_small_class_among_large_ones(n):
    X, y = brief(3)
    X, y = np.vstack([X, np.full((n, X.shape[1]), 6.0) + np.arange(n)[:, None]]), np.append(y, [3] * n)
    machine = coupled(C=10.0).fit(X, y)
    p = machine.predict_proba(X)
    assert p.shape == (len(X), 4)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(machine.predict(X[-n:]), [3] * n)


def test_a_class_of_one_row_many_times():
    X, y = brief(2)
    X[y == 1] = 3.0
    machine = coupled().fit(X, y)
    assert machine.predict_proba(X[y == 1])[0, 1] > 0.8


def test_examples_that_tell_nothing_leave_the_frequencies():
    y = np.array([0] * 30 + [1] * 10)
    p = coupled().fit(np.ones((40, 2)), y).predict_proba(np.ones((1, 2)))
    np.testing.assert_allclose(p, [[0.75, 0.25]], atol=0.06)


def test_hard_margin():
    X, y = iris()
    X, y = X[(y == 0) | (y == 2)], y[(y == 0) | (y == 2)]
    machine = coupled(C=np.inf, kernel="linear").fit(X, y)
    p = machine.predict_proba(X)
    np.testing.assert_array_equal(machine.classes_[p.argmax(axis=1)], y)


# Stopping, and fitted states


def test_a_time_limit_leaves_finite_probabilities():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 10)), rng.integers(0, 3, 6000)
    machine = coupled(C=1e6, tol=1e-10, time_limit=0.5, cache_size=100)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        machine.fit(X, y)
    assert np.isfinite(machine.predict_proba(X[:100])).all()


def test_a_limit_of_steps_holds_for_each_fold_and_is_told():
    X, y = overlapping(n=400, n_classes=2)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        machine = coupled(C=100.0, max_iter=20).fit(X, y)
    assert machine.stop_reason_ == "max_iter"
    assert machine.n_iter_.tolist() == [20]
    assert np.isfinite(machine.predict_proba(X)).all()


@pytest.mark.parametrize("decision", ["votes", "dag", "adag"])
def test_only_coupling_has_probabilities(decision):
    machine = OneVsOneSVC(decision=decision).fit(*iris())
    assert not hasattr(machine, "predict_proba")
    assert not hasattr(machine, "probA_")
    with pytest.raises(AttributeError, match="predict_proba") as caught:
        machine.predict_proba(iris()[0])
    assert "decision='coupling'" in str(caught.value.__cause__)


def test_coupling_must_be_chosen_before_the_fit():
    X, y = iris()
    machine = OneVsOneSVC().fit(X, y).set_params(decision="coupling")
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        with pytest.raises(NotFittedError, match=r"fitted without probabilities.*fit it again"):
            getattr(machine, method)(X)


def test_logarithms_of_probabilities():
    X, y = wine()
    machine = coupled().fit(X, y)
    np.testing.assert_array_equal(machine.predict_log_proba(X), np.log(machine.predict_proba(X)))
    machine.set_params(decision="votes")
    assert not hasattr(machine, "predict_log_proba")
    with pytest.raises(AttributeError, match="predict_log_proba") as caught:
        machine.predict_log_proba(X)
    assert "decision='coupling'" in str(caught.value.__cause__)


def test_a_coupled_machine_can_vote():
    X, y = wine()
    machine = coupled().fit(X, y).set_params(decision="votes")
    np.testing.assert_array_equal(machine.predict(X), OneVsOneSVC().fit(X, y).predict(X))


def test_a_fit_without_probabilities_forgets_earlier_ones():
    X, y = iris()
    machine = coupled().fit(X, y).set_params(decision="votes").fit(X, y)
    assert not hasattr(machine, "probA_")
    assert not hasattr(machine, "probB_")


@pytest.mark.parametrize("name", ["probA_", "probB_"])
@pytest.mark.parametrize(
    "change",
    [lambda a: a[:-1], lambda a: a[None], lambda a: np.where(a == a[0], np.nan, a), lambda a: a.astype(str)],
    ids=["short", "deep", "NaN", "text"],
)
def test_a_tampered_sigmoid_is_refused(name, change):
    X, y = wine()
    machine = copy.deepcopy(coupled().fit(X, y))
    setattr(machine, name, change(getattr(machine, name)))
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(ValueError, match=name):
            getattr(machine, method)(X)


def test_a_failed_fit_keeps_the_probabilities():
    X, y = iris()
    machine = coupled().fit(X, y)
    before = machine.predict_proba(X)
    with pytest.raises(ValueError, match="NaN"):
        machine.fit(np.where(X > 2.0, np.nan, X), y)
    np.testing.assert_array_equal(machine.predict_proba(X), before)


def test_saved_and_loaded_machines_have_the_same_probabilities():
    X, y = wine()
    machine = coupled().fit(X[::2], y[::2])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).predict_proba(X), machine.predict_proba(X))


def test_no_rows_have_no_probabilities():
    X, y = iris()
    with pytest.raises(ValueError, match="0 sample"):
        coupled().fit(X, y).predict_proba(X[:0])
