"""The label of a row does not depend on the rows that are predicted with it, even where everything is tied.

Every example of these problems is there once in each class, so that the classes look the same and all scores are equal
but for rounding. Matrix products round differently for every number of rows.
"""

import sys

import numpy as np
import pytest
from reference.data import random_classes
from reference.kernels import kernel_matrix
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_methods_sample_order_invariance, check_methods_subset_invariance

import polymargin.decision.voting  # noqa: F401 - the function of that name hides the module
from polymargin import (
    CrammerSingerSVC,
    LeeLinWahbaSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    SoftmaxSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)
from polymargin.decision import largest_score
from polymargin.models import KernelModel

MACHINES = {
    "votes": OneVsOneSVC(),
    "dag": OneVsOneSVC(decision="dag"),
    "adag": OneVsOneSVC(decision="adag"),
    "coupling": OneVsOneSVC(decision="coupling"),
    "one-vs-rest": OneVsRestSVC(),
    "weston-watkins": WestonWatkinsSVC(),
    "crammer-singer": CrammerSingerSVC(),
    "lee-lin-wahba": LeeLinWahbaSVC(),
    "linear-program": LinearProgramSVC(),
    "uncertainty": UncertaintySVC(),
    "code": OutputCodeSVC(code="dense"),
    "code by loss": OutputCodeSVC(code="sparse", decoding="loss"),
    "code with probabilities": OutputCodeSVC(code="one-vs-rest", decoding="probability"),
    "uncertainty by margins": UncertaintySVC(answers="margins"),
    "softmax": SoftmaxSVC(),
    "softmax-one-vs-rest": SoftmaxSVC(strategy="one-vs-rest"),
}
KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01, "coef0": 0.1},
    "precomputed": {"kernel": "precomputed"},
}
every_machine = pytest.mark.parametrize("name", MACHINES)


def tied_classes(k, per_class=25, seed=0):
    """Return the same rows for every class, each time in another order, so that sums round differently."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(per_class, 4))
    return np.vstack([rng.permutation(X) for _ in range(k)]), np.repeat(np.arange(k), per_class)


def fitted(name, k, kernel, container=np.asarray, data=tied_classes, **options):
    """Return a machine and rows to ask it about, among them those that it was fitted to."""
    X, y = data(k, **options)
    rows = np.vstack([X, np.random.default_rng(1).normal(size=(60, X.shape[1]))])
    if kernel == "precomputed":
        rows, X = (kernel_matrix(A, X, "rbf", gamma=0.3) for A in (rows, X))
    return clone(MACHINES[name]).set_params(**KERNELS[kernel]).fit(container(X), y), container(rows)


def subsets(n, rng):
    """Yield single rows, a permutation of all, and random subsets of many sizes."""
    yield from ([i] for i in range(0, n, 5))
    yield rng.permutation(n)
    yield from (rng.choice(n, size=size, replace=False) for size in (2, 3, 5, 8, 13, 31, 64, 100) if size < n)


def assert_alone_as_among_others(machine, rows, accuracy=1e-9):
    n = rows.shape[0]
    labels, scores = machine.predict(rows), machine.decision_function(rows)
    for some in subsets(n, np.random.default_rng(2)):
        np.testing.assert_array_equal(machine.predict(rows[some]), labels[some])
        np.testing.assert_allclose(machine.decision_function(rows[some]), scores[some], rtol=accuracy, atol=accuracy)
        if hasattr(machine, "predict_proba"):
            np.testing.assert_allclose(machine.predict_proba(rows[some]).sum(axis=1), 1.0)


@every_machine
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("kernel", KERNELS)
def test_tied_rows_have_one_label(name, k, kernel):
    assert_alone_as_among_others(*fitted(name, k, kernel))


@every_machine
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_tied_sparse_rows_have_one_label(name, kernel):
    machine, rows = fitted(name, 4, kernel, sparse.csr_matrix)
    assert_alone_as_among_others(machine, rows)
    np.testing.assert_array_equal(machine.predict(rows.toarray()), machine.predict(rows))


@pytest.mark.parametrize("name", ["votes", "dag", "coupling", "one-vs-rest", "crammer-singer"])
def test_tied_rows_have_one_label_where_scores_are_in_single_precision(name):
    machine, rows = fitted(name, 3, "rbf", per_class=400)
    assert len(machine.support_) > 1024
    assert_alone_as_among_others(machine, rows[1150:], accuracy=machine.tol / 2)  # what single precision may take of it


@every_machine
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_other_rows_have_one_label_too(name, kernel):
    machine, rows = fitted(name, 5, kernel, data=random_classes, n=150)
    assert_alone_as_among_others(machine, rows)


@every_machine
@pytest.mark.parametrize("check", [check_methods_subset_invariance, check_methods_sample_order_invariance])
def test_scikit_learns_checks_with_kernel_values(name, check):
    machine = clone(MACHINES[name]).set_params(kernel="precomputed")
    check(type(machine).__name__, machine)


@pytest.mark.parametrize("name", ["votes", "one-vs-rest", "crammer-singer", "weston-watkins"])
def test_without_a_second_look_labels_would_depend_on_the_other_rows(name, monkeypatch):
    for module in (largest_score, sys.modules["polymargin.decision.voting"]):
        monkeypatch.setattr(
            module, "settled_scores", lambda model, X, threads, *_, **__: model.raw_scores(X, threads)[0]
        )
    with pytest.raises(AssertionError):
        assert_alone_as_among_others(*fitted(name, 5, "rbf"))


@pytest.mark.parametrize("name", ["votes", "one-vs-rest", "crammer-singer", "softmax"])
def test_scores_of_tied_rows_are_the_same_to_the_last_bit(name):
    machine, rows = fitted(name, 5, "rbf")
    scores = machine.decision_function(rows)
    for some in subsets(len(rows), np.random.default_rng(3)):
        np.testing.assert_array_equal(machine.decision_function(rows[some]), scores[some])


def test_far_rows_are_no_ties(monkeypatch):
    """Scores may be tiny because the kernel values are: those have as small errors, and need no second look."""
    X, y = random_classes(3, n=90)
    machine = CrammerSingerSVC(gamma=1.0).fit(X, y)
    far = X + 5.0
    assert np.abs(machine.decision_function(far)).max() < 1e-6
    looked_at = []
    alone = KernelModel.scores_alone

    def counted(model, rows, wanted):
        looked_at.append(len(rows))
        return alone(model, rows, wanted)

    monkeypatch.setattr(KernelModel, "scores_alone", counted)
    machine.predict(far)
    assert sum(looked_at) < 5
