"""Kernels that are Python functions: what they may return, and what they may be asked about."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from reference.data import iris
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
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
    certify,
)
from polymargin.features import KernelPCAFeatures
from polymargin.selection import KernelSearchCV

MACHINES = [
    OneVsOneSVC(),
    OneVsOneSVC(decision="dag"),
    OneVsOneSVC(decision="coupling"),
    OneVsRestSVC(),
    WestonWatkinsSVC(),
    CrammerSingerSVC(),
    LinearProgramSVC(),
    SoftmaxSVC(),
    SoftmaxSVC(rank=9, basis="subset"),
    UncertaintySVC(min_distance=float("inf")),
    OutputCodeSVC(code="dense", decoding="loss"),
]
WORDS = [
    "apple",
    "apples",
    "appel",
    "pear",
    "pears",
    "paer",
    "plum",
    "plums",
    "plume",
    "car",
    "cars",
    "cart",
    "care",
    "carts",
    "bus",
    "buses",
    "busses",
    "bussed",
    "train",
    "trains",
    "trainer",
    "strain",
]
KINDS = np.repeat(["apple", "pear", "plum", "car", "bus", "train"], [3, 3, 3, 5, 4, 4])


def bigrams(word):
    return {word[i : i + 2] for i in range(len(word) - 1)}


def shared_bigrams(A, B):
    """Return how many pairs of letters words share."""
    return np.array([[float(len(bigrams(a) & bigrams(b))) for b in B] for a in A])


def of_letters(A, B):
    """The same for lists of letters."""
    return shared_bigrams(["".join(a) for a in A], ["".join(b) for b in B])


every_machine = pytest.mark.parametrize("machine", MACHINES, ids=repr)


@every_machine
def test_words(machine):
    machine = clone(machine).set_params(kernel=shared_bigrams, C=10.0, tol=1e-6).fit(WORDS, KINDS)
    K = shared_bigrams(WORDS, WORDS)
    same = clone(machine).set_params(kernel="precomputed").fit(K, KINDS)
    if getattr(machine, "decision", None) != "coupling":  # whose folds depend on what the rows are
        np.testing.assert_allclose(machine.decision_function(WORDS), same.decision_function(K), atol=1e-6)
    assert machine.support_vectors_.ravel().tolist() == [WORDS[i] for i in machine.support_]
    assert machine.n_features_in_ == 1
    if not isinstance(machine, SoftmaxSVC):
        assert certify(machine, WORDS, KINDS).duality_gap < 1e-4
    new = ["applet", "cars", "busy", "rain"]
    assert machine.predict(new).shape == (4,)
    assert machine.predict(new)[1] == "car"


@pytest.mark.parametrize(
    "container", [list, tuple, np.array, lambda words: np.array(words, dtype=object), pd.Series, pl.Series]
)
def test_containers(container):
    expected = SVC(kernel=shared_bigrams, C=10.0).fit(WORDS, KINDS)
    machine = OneVsOneSVC(kernel=shared_bigrams, C=10.0).fit(container(WORDS), KINDS)
    np.testing.assert_array_equal(machine.predict(container(WORDS)), expected.predict(WORDS))


@pytest.mark.parametrize("equally_long", [False, True])
def test_sequences(equally_long):
    words = [(word * 2)[:4] for word in WORDS] if equally_long else WORDS
    machine = OneVsRestSVC(kernel=of_letters).fit([list(word) for word in words], KINDS)
    same = OneVsRestSVC(kernel=shared_bigrams).fit(words, KINDS)
    np.testing.assert_array_equal(machine.predict([list(word) for word in words]), same.predict(words))


def test_searches_and_cross_validation():
    machine = OneVsOneSVC(kernel=shared_bigrams, tol=1e-6)
    grid = {"C": [0.1, 1.0, 10.0]}
    ours, theirs = (Search(machine, grid, cv=3).fit(WORDS, KINDS) for Search in (KernelSearchCV, GridSearchCV))
    assert ours.shared_
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert cross_val_score(machine, WORDS, KINDS, cv=3).mean() > 0.5


def test_features():
    Z = KernelPCAFeatures(kernel=shared_bigrams).fit_transform(WORDS)
    np.testing.assert_allclose(Z @ Z.T, shared_bigrams(WORDS, WORDS), atol=1e-8)


def test_held_out_words_are_chosen_by_what_they_are_not_by_where_they_stand():
    machine = OneVsOneSVC(kernel=shared_bigrams, decision="coupling")
    order = np.random.default_rng(0).permutation(len(WORDS))
    first = clone(machine).fit(WORDS, KINDS).predict_proba(WORDS)
    second = clone(machine).fit([WORDS[i] for i in order], KINDS[order]).predict_proba(WORDS)
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array])
@every_machine
def test_values_may_be_sparse(machine, make):
    X, y = iris()
    rows, labels = X[::3], y[::3]
    dense = clone(machine).set_params(kernel=lambda A, B: A @ B.T).fit(rows, labels)
    sparse = clone(machine).set_params(kernel=lambda A, B: make(A @ B.T)).fit(rows, labels)
    np.testing.assert_array_equal(sparse.decision_function(X), dense.decision_function(X))


# What is refused


def test_words_need_a_function():
    with pytest.raises(ValueError, match="could not convert string to float"):
        OneVsOneSVC().fit(WORDS, KINDS)


def test_numbers_and_words_do_not_mix():
    X, y = iris()
    machine = OneVsOneSVC(kernel=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises(ValueError, match="was fitted on rows of 4 numbers"):
        machine.predict(WORDS)
    with pytest.raises(ValueError, match="is expecting 1 features"):
        OneVsOneSVC(kernel=shared_bigrams).fit(WORDS, KINDS).predict(X)


def test_as_many_words_as_classes_and_at_least_one():
    machine = OneVsOneSVC(kernel=shared_bigrams)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        machine.fit(WORDS[1:], KINDS)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        machine.fit(WORDS, KINDS).predict(np.array([], dtype=str))


def test_a_state_with_words_and_no_function_is_refused():
    X, y = iris()
    machine = OneVsOneSVC().fit(X, y)
    machine.support_vectors_ = machine.support_vectors_.astype(object)
    with pytest.raises(ValueError, match="support_vectors_ holds objects"):
        machine.predict(X)
