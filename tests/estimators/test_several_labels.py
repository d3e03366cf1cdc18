"""OneVsRestSVC on indicator matrices: a machine for each label, on one kernel or one by one."""

import pickle
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference.binary import solve_binary
from reference.kernels import gamma_value, kernel_matrix
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC

from polymargin import OneVsOneSVC, OneVsRestSVC, certify, load_model, save_model
from polymargin.selection import KernelSearchCV
from polymargin.storage import export_onnx
from polymargin.support.label_sets import checked_label_sets

FORMS = {
    "array": np.asarray,
    "bool": lambda Y: Y.astype(bool),
    "float": lambda Y: Y.astype(float),
    "list": lambda Y: Y.tolist(),
    "frame": pd.DataFrame,
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc": sp.csc_matrix,
}


@cache
def labelled(n=150, n_features=6, k=5, seed=0):
    X, Y = make_multilabel_classification(n, n_features, n_classes=k, n_labels=2, random_state=seed)
    return scale(X), Y


def test_objectives_are_those_of_an_independent_quadratic_program():
    X, Y = labelled()
    weight = np.linspace(0.5, 2.0, len(X))
    machine = OneVsRestSVC(C=3.0, tol=1e-8).fit(X, Y, sample_weight=weight)
    K = kernel_matrix(X, X, gamma=gamma_value("scale", X, weight))
    best = [solve_binary(K, 2.0 * Y[:, m] - 1.0, 3.0 * weight) for m in range(Y.shape[1])]
    assert machine.dual_objective_ == pytest.approx(sum(each.dual for each in best), rel=1e-6)
    assert machine.primal_objective_ == pytest.approx(sum(each.dual for each in best), rel=1e-6)
    proof = certify(machine, X, Y, sample_weight=weight)
    assert proof.duality_gap < 1e-6
    assert proof.infeasibility < 1e-9


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_scores_are_those_of_scikit_learn(kernel):
    X, Y = labelled()
    ours = OneVsRestSVC(kernel=kernel, tol=1e-7).fit(X, Y)
    theirs = OneVsRestClassifier(SVC(kernel=kernel, tol=1e-8)).fit(X, Y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.predict(X).dtype == theirs.predict(X).dtype


@pytest.mark.parametrize("form", FORMS)
def test_labels_come_in_any_form_and_go_in_the_same(form):
    X, Y = labelled()
    expected = OneVsRestSVC().fit(X, Y).predict(X)
    given = FORMS[form](Y)
    machine = OneVsRestSVC().fit(X, given)
    predicted = machine.predict(X)
    assert machine.multilabel_
    assert machine.n_support_.tolist() == [len(machine.support_)]
    np.testing.assert_array_equal(machine.classes_, np.arange(5))
    if sp.issparse(given):
        assert predicted.format == "csr"
        assert isinstance(predicted, sp.sparray) == isinstance(given, sp.sparray)
        predicted = predicted.toarray()
    assert type(predicted) is np.ndarray
    assert predicted.dtype == expected.dtype
    np.testing.assert_array_equal(predicted, expected)


@pytest.mark.parametrize("bias", ["free", "regularized", None])
def test_linear_labels_one_by_one_have_the_optimum(bias):
    X, Y = labelled(400)
    apart = OneVsRestSVC(kernel="linear", solver="sequential-dual", bias=bias, tol=1e-8, stop="gap").fit(X, Y)
    assert apart.solver_used_ == "sequential-dual"
    assert certify(apart, X, Y).duality_gap < 1e-6
    if bias == "free":
        kernel = OneVsRestSVC(kernel="linear", solver="decomposition", tol=1e-8).fit(X, Y)
        assert apart.dual_objective_ == pytest.approx(kernel.dual_objective_, rel=1e-6)
    if bias == "regularized":  # LinearSVC's
        theirs = OneVsRestClassifier(LinearSVC(loss="hinge", tol=1e-10, max_iter=10**6)).fit(X, Y)
        at_theirs = sum(
            0.5 * float(each.coef_[0] @ each.coef_[0] + each.intercept_[0] ** 2)
            + np.maximum(0.0, 1.0 - (2 * Y[:, m] - 1) * each.decision_function(X)).sum()
            for m, each in enumerate(theirs.estimators_)
        )
        assert apart.primal_objective_ == pytest.approx(at_theirs, rel=1e-5)


def test_a_linear_label_is_the_machine_of_two_classes():
    X, Y = labelled(300)
    X = sp.csr_array(X)
    machine = OneVsRestSVC(kernel="linear", solver="sequential-dual", C=0.5).fit(X, Y)
    for m in range(Y.shape[1]):
        alone = OneVsRestSVC(kernel="linear", solver="sequential-dual", C=0.5, tol=1e-6).fit(X, Y[:, m])
        ours = machine.decision_function(X)[:, m]
        primal = primal_objective_of(machine.coef_[m], ours, Y[:, m], 0.5)
        best = primal_objective_of(alone.coef_[0], alone.decision_function(X), Y[:, m], 0.5)
        assert primal == pytest.approx(best, rel=2e-3)


def primal_objective_of(w, scores, labels, C):
    return 0.5 * float(w @ w) + C * np.maximum(0.0, 1.0 - (2 * labels - 1) * scores).sum()


@pytest.mark.parametrize("options", [{}, {"kernel": "linear", "solver": "sequential-dual"}], ids=["kernel", "linear"])
def test_any_number_of_threads_gives_the_same_bits(options):
    X, Y = labelled(300)
    machines = [OneVsRestSVC(n_jobs=jobs, **options).fit(X, Y) for jobs in (1, 2, 3)]
    for other in machines[1:]:
        np.testing.assert_array_equal(machines[0].dual_coef_, other.dual_coef_)
        np.testing.assert_array_equal(machines[0].decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("options", [{}, {"kernel": "linear", "solver": "sequential-dual"}], ids=["kernel", "linear"])
def test_a_label_of_all_rows_or_none_is_constant(options):
    X, Y = labelled()
    Y = Y.copy()
    Y[:, 1], Y[:, 3] = 0, 1
    with pytest.warns(UserWarning, match=r"1 \(no rows\), 3 \(all rows\)"):
        machine = OneVsRestSVC(tol=1e-6, **options).fit(X, Y)
    others = OneVsRestSVC(tol=1e-6, **options).fit(X, Y[:, [0, 2, 4]])
    np.testing.assert_array_equal(machine.predict(X)[:, [1, 3]], Y[:, [1, 3]])
    np.testing.assert_allclose(machine.decision_function(X)[:, [0, 2, 4]], others.decision_function(X), atol=1e-3)
    assert machine.n_iter_[[1, 3]].tolist() == [0, 0]
    assert certify(machine, X, Y).duality_gap < 1e-4


def test_where_all_labels_are_constant_so_are_predictions():
    X, _ = labelled()
    Y = np.tile([1, 0], (len(X), 1))
    with pytest.warns(UserWarning, match="labels that all rows have"):
        machine = OneVsRestSVC().fit(X, Y)
    np.testing.assert_array_equal(machine.predict(X), Y)
    assert certify(machine, X, Y).duality_gap == 0


def test_rows_without_weight_do_not_make_a_label():
    X, Y = labelled()
    with pytest.warns(UserWarning, match=r"1 \(no rows\)") as caught:
        machine = OneVsRestSVC().fit(X, Y, sample_weight=1.0 - Y[:, 1])
    assert caught[0].filename == __file__
    assert not machine.predict(X)[:, 1].any()


@pytest.mark.parametrize("kernel", ["precomputed", "callable"])
def test_kernel_values_may_be_given(kernel):
    X, Y = labelled()
    K = kernel_matrix(X, X, gamma=0.1)
    expected = OneVsRestSVC(gamma=0.1, tol=1e-7).fit(X, Y)
    given = "precomputed" if kernel == "precomputed" else lambda A, B: kernel_matrix(A, B, gamma=0.1)
    data = K if kernel == "precomputed" else X
    machine = OneVsRestSVC(kernel=given, tol=1e-7).fit(data, Y)
    np.testing.assert_allclose(machine.decision_function(data), expected.decision_function(X), atol=1e-5)
    assert certify(machine, data, Y).duality_gap < 1e-6


def test_two_labels_are_two_machines():
    X, Y = labelled(k=2)
    machine = OneVsRestSVC(tol=1e-7).fit(X, Y)
    theirs = OneVsRestClassifier(SVC(tol=1e-8)).fit(X, Y)
    assert machine.decision_function(X).shape == (len(X), 2)
    np.testing.assert_allclose(machine.decision_function(X), theirs.decision_function(X), atol=1e-5)
    linear = OneVsRestSVC(kernel="linear").fit(X, Y)
    assert linear.coef_.shape == (2, X.shape[1])


def test_weight_two_is_two_rows_and_weight_zero_none():
    X, Y = labelled()
    weight = np.arange(len(X)) % 3
    rows = np.repeat(np.arange(len(X)), weight)
    weighted = OneVsRestSVC(gamma=0.1, tol=1e-7).fit(X, Y, sample_weight=weight)
    repeated = OneVsRestSVC(gamma=0.1, tol=1e-7).fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-5)


def test_order_of_rows_and_labels_does_not_matter():
    X, Y = labelled()
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(X)), rng.permutation(Y.shape[1])
    machine = OneVsRestSVC(tol=1e-7).fit(X, Y)
    moved = OneVsRestSVC(tol=1e-7).fit(X[rows], Y[rows][:, columns])
    np.testing.assert_allclose(moved.decision_function(X), machine.decision_function(X)[:, columns], atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"kernel": "linear", "solver": "sequential-dual"}], ids=["kernel", "linear"])
def test_a_warm_start_saves_steps(options):
    X, Y = labelled(300)
    machine = OneVsRestSVC(C=10.0, tol=1e-6, warm_start=True, **options).fit(X, Y)
    steps, gap = machine.n_iter_.sum(), machine.duality_gap_
    machine.fit(X, Y)
    assert machine.n_iter_.sum() < 0.7 * steps
    assert machine.duality_gap_ <= max(gap, 1e-6) * (1 + 1e-6)
    classes = Y[:, 0]
    again = machine.fit(X, classes)  # from labels to classes
    fresh = OneVsRestSVC(C=10.0, tol=1e-6, **options).fit(X, classes)
    assert not again.multilabel_
    np.testing.assert_array_equal(again.predict(X), fresh.predict(X))


@pytest.mark.parametrize("form", ["array", "csr_array"])
@pytest.mark.parametrize("options", [{}, {"kernel": "linear", "solver": "sequential-dual"}], ids=["kernel", "linear"])
def test_files_and_pickles_have_the_same_predictions(options, form, tmp_path):
    X, Y = labelled()
    machine = OneVsRestSVC(**options).fit(X, FORMS[form](Y))
    save_model(machine, tmp_path / "labels.safetensors")
    for other in (load_model(tmp_path / "labels.safetensors"), pickle.loads(pickle.dumps(machine))):
        assert other.multilabel_
        assert type(other.predict(X)) is type(machine.predict(X))
        np.testing.assert_array_equal(other.decision_function(X), machine.decision_function(X))


def test_searches_measure_whole_sets():
    X, Y = labelled()
    grid = {"C": [0.1, 10.0]}
    ours, theirs = (
        GridSearchCV(OneVsRestSVC(), grid),
        GridSearchCV(OneVsRestClassifier(SVC()), {"estimator__C": [0.1, 10.0]}),
    )
    ours.fit(X, Y)
    theirs.fit(X, Y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.03)
    with pytest.warns(UserWarning, match="several labels"):
        shared = KernelSearchCV(OneVsRestSVC(), grid).fit(X, Y)
    assert shared.best_score_ == ours.best_score_
    np.testing.assert_array_equal(shared.predict(X), ours.predict(X))


def test_topk_are_the_labels_with_the_largest_scores():
    X, Y = labelled()
    machine = OneVsRestSVC().fit(X, Y)
    scores, top = machine.decision_function(X), machine.predict_topk(X, 2)
    np.testing.assert_array_equal(top[:, 0], scores.argmax(axis=1))
    assert top.shape == (len(X), 2)


def test_as_many_sets_as_rows_are_few_ranges():
    rng = np.random.default_rng(1)
    Y = (rng.random((400, 60)) < 0.1).astype(int)
    X = rng.normal(size=(400, 5))
    assert len(np.unique(Y, axis=0)) > 380
    machine = OneVsRestSVC(C=0.1).fit(X, Y)
    assert machine.converged_
    alone = OneVsRestSVC(C=0.1, gamma=float(machine.model_.kernel.gamma)).fit(X, Y[:, 7])
    np.testing.assert_allclose(machine.decision_function(X)[:, 7], alone.decision_function(X), atol=5e-3)


BAD = {
    "other values": (np.array([[0, 1], [1, 2]] * 5), r"row 1, column 1 has 2"),
    "minus ones": (np.array([[-1, 1], [1, -1]] * 5), r"row 0, column 0 has -1"),
    "fractions": (np.array([[0.5, 1], [1, 0]] * 5), r"has 0\.5"),
    "numbers that are none": (np.array([[np.nan, 1], [1, 0]] * 5), "has nan"),
    "one column": (sp.csr_array(np.ones((10, 1))), "two or more labels"),
    "no column": (sp.csr_array((10, 0)), "two or more labels"),
    "another number of rows": (np.eye(4, dtype=int), "inconsistent numbers of samples"),
    "sequences of labels": ([[0, 1], [2]] * 5, "MultiLabelBinarizer"),
    "texts": (np.array([["a", "b"]] * 10), "MultiLabelBinarizer"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_indicator_matrix_is_refused(case):
    Y, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        OneVsRestSVC().fit(np.arange(20.0).reshape(10, 2), Y)


def test_what_has_no_meaning_is_refused(tmp_path):
    X, Y = labelled()
    with pytest.raises(ValueError, match="class_weight='balanced' has no meaning"):
        OneVsRestSVC(class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="needs solver='sequential-dual'"):
        OneVsRestSVC(bias=None).fit(X, Y)
    machine = OneVsRestSVC().fit(X, Y)
    with pytest.raises(ValueError, match="an indicator matrix of 5 labels"):
        certify(machine, X, Y[:, 0])
    with pytest.raises(ValueError, match="no ONNX graph of several labels"):
        export_onnx(machine, tmp_path / "labels.onnx")
    with pytest.raises(ValueError, match="1d array"):
        OneVsOneSVC().fit(X, Y)


def test_the_given_matrix_stays_as_it_is():
    X, Y = labelled()
    given = sp.csr_array(Y.astype(float))
    given.data[::7] = 0.0
    before = given.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        OneVsRestSVC().fit(X, given)
    np.testing.assert_array_equal(given.data, before.data)
    assert checked_label_sets(given).indicator.nnz == np.count_nonzero(given.data)


def test_equal_sets_are_neighbours():
    _, Y = labelled()
    sets = checked_label_sets(Y)
    ordered = Y[sets.sorted()]
    changes = 1 + int((ordered[1:] != ordered[:-1]).any(axis=1).sum())
    assert changes == len(np.unique(Y, axis=0))
