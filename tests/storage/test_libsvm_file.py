"""One-against-one machines in LIBSVM's text format: LIBSVM reads ours, we read LIBSVM's, and bad files are named."""

import itertools
import re
from ctypes import c_double

import numpy as np
import pytest
from reference.coupling import fixed_point
from reference.data import digits, iris, paper_file, random_classes, wine
from reference.kernels import kernel_matrix
from reference.mutations import mutated, outcome
from scipy import sparse

from polymargin import CrammerSingerSVC, OneVsOneSVC, load_model, save_model
from polymargin.storage import export_libsvm, import_libsvm, read_data

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.3, "coef0": 1.0, "degree": 2},
    "rbf": {"gamma": 0.07},
    "sigmoid": {"gamma": 0.01, "coef0": -0.1},
}
NUMBERS = {"linear": "-t 0", "poly": "-t 1 -g 0.3 -r 1 -d 2", "rbf": "-t 2 -g 0.07", "sigmoid": "-t 3 -g 0.01 -r -0.1"}


@pytest.fixture(scope="module")
def svmutil():
    """LIBSVM itself, through its own Python interface: the C code of svm-train and svm-predict."""
    return pytest.importorskip("libsvm.svmutil", reason="libsvm-official is not installed")


def round_trip(machine, folder, **options):
    export_libsvm(machine, folder / "machine.model")
    return import_libsvm(folder / "machine.model", **options)


def libsvm_answers(svmutil, model, X, probabilities=False):
    """Return labels and pairwise values, or probabilities, of LIBSVM for a model, in the order of its own labels.

    This calls what svm-predict calls. The Python function of that name has room for one value only with nu-SVC.
    """
    k = model.nr_class
    call, n_values = svmutil.libsvm.svm_predict_values, k * (k - 1) // 2
    if probabilities:
        call, n_values = svmutil.libsvm.svm_predict_probability, k
    labels, values = [], []
    for row in X.tolist():
        numbers = (c_double * n_values)()
        labels.append(call(model, svmutil.gen_svm_nodearray(row)[0], numbers))
        values.append(list(numbers))
    return np.array(labels), np.array(values)


def trained(svmutil, X, y, options, path):
    """Train with LIBSVM; return the model as LIBSVM and as we read it from a file."""
    svmutil.svm_save_model(str(path), svmutil.svm_train(y.tolist(), X.tolist(), f"{options} -q"))
    return svmutil.svm_load_model(str(path)), import_libsvm(path, n_features=X.shape[1])


def exported(svmutil, machine, path):
    export_libsvm(machine, path)
    return svmutil.svm_load_model(str(path))


# What comes back


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [2, 3])
def test_numbers_come_back_as_they_are(kernel, k, tmp_path):
    X, y = iris()
    X, y = X[y < k], y[y < k]
    machine = OneVsOneSVC(C=3.0, kernel=kernel, **KERNELS[kernel]).fit(X, y)
    loaded = round_trip(machine, tmp_path)
    for name in ("classes_", "support_vectors_", "n_support_", "dual_coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(machine, name))
    np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))
    np.testing.assert_array_equal(loaded.decision_function(X), machine.decision_function(X))


def test_sparse_vectors_come_back_sparse(tmp_path):
    X, y = digits(200)
    X = X * (np.random.default_rng(0).random(X.shape) < 0.3)
    machine = OneVsOneSVC().fit(sparse.csr_matrix(X), y)
    loaded = round_trip(machine, tmp_path, n_features=64)
    assert sparse.issparse(loaded.support_vectors_)
    np.testing.assert_array_equal(loaded.support_vectors_.toarray(), machine.support_vectors_.toarray())
    np.testing.assert_array_equal(loaded.predict(sparse.csr_matrix(X)), machine.predict(sparse.csr_matrix(X)))


def test_precomputed_kernels_come_back(tmp_path):
    X, y = wine()
    K = kernel_matrix(X, X, "rbf", gamma=0.05)
    machine = OneVsOneSVC(kernel="precomputed").fit(K, y)
    loaded = round_trip(machine, tmp_path, n_features=len(X))
    np.testing.assert_array_equal(loaded.support_, machine.support_)
    np.testing.assert_array_equal(loaded.pairwise_decision_function(K), machine.pairwise_decision_function(K))


def test_what_the_file_does_not_tell_says_so(tmp_path):
    loaded = round_trip(OneVsOneSVC(C=7.0).fit(*iris()), tmp_path)
    assert np.isnan([loaded.primal_objective_, loaded.dual_objective_, loaded.duality_gap_]).all()
    assert not loaded.converged_
    assert loaded.stop_reason_ == "imported"
    assert loaded.C == OneVsOneSVC().C


@pytest.mark.parametrize("order", [[2, 0, 1], [1, 0, 2], [0, 1, 2]])
def test_ties_go_to_the_class_that_the_file_names_first_also_when_it_is_written_again(order, tmp_path):
    lines = ["svm_type c_svc", "kernel_type linear", "nr_class 3", "total_sv 3"]
    lines += ["rho -1 1 -1", f"label {' '.join(map(str, order))}", "nr_sv 1 1 1", "SV"]  # each class has one vote at 0
    (tmp_path / "tied").write_text("\n".join([*lines, "1 1 1:1", "-1 1 1:2", "-1 -1 1:3"]) + "\n")
    X = np.zeros((1, 1))
    machine = import_libsvm(tmp_path / "tied")
    assert machine.predict(X).tolist() == order[:1]
    again = round_trip(machine, tmp_path)
    assert again.predict(X).tolist() == order[:1]
    assert (tmp_path / "machine.model").read_text().splitlines()[-3:] == [
        "1.0 1.0 1:1.0",
        "-1.0 1.0 1:2.0",
        "-1.0 -1.0 1:3.0",
    ]
    save_model(machine, tmp_path / "saved")
    assert load_model(tmp_path / "saved").predict(X).tolist() == order[:1]
    refitted = machine.set_params(C=1.0).fit(*iris())
    assert refitted.model_.class_order is None


def test_an_imported_machine_can_be_saved(tmp_path):
    X, y = iris()
    imported = round_trip(OneVsOneSVC().fit(X, y), tmp_path)
    save_model(imported, tmp_path / "machine.safetensors")
    loaded = load_model(tmp_path / "machine.safetensors")
    np.testing.assert_array_equal(loaded.decision_function(X), imported.decision_function(X))


# LIBSVM


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [2, 3, 6])
def test_libsvm_reads_what_we_write_and_gives_the_same_labels(kernel, k, svmutil, tmp_path):
    X, y = random_classes(k, n=40 * k, n_features=5, seed=k)
    y = 10 * y - 20
    machine = OneVsOneSVC(kernel=kernel, **KERNELS[kernel]).fit(X[::2], y[::2])
    export_libsvm(machine, tmp_path / "machine.model")
    labels, values = libsvm_answers(svmutil, svmutil.svm_load_model(str(tmp_path / "machine.model")), X)
    np.testing.assert_array_equal(labels, machine.predict(X))
    np.testing.assert_allclose(values, machine.pairwise_decision_function(X), atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [2, 3, 6])
def test_we_read_what_libsvm_writes_and_give_the_same_labels(kernel, k, svmutil, tmp_path):
    X, y = random_classes(k, n=40 * k, n_features=5, seed=k)
    y = 3 * (k - y) - 5  # the order of appearance, which is LIBSVM's, is not the sorted one
    X[:, -1] = 0  # not in the file
    model = svmutil.svm_train(y[::2].tolist(), X[::2].tolist(), f"{NUMBERS[kernel]} -c 2 -q")
    svmutil.svm_save_model(str(tmp_path / "machine.model"), model)
    machine = import_libsvm(tmp_path / "machine.model", n_features=5)
    model = svmutil.svm_load_model(str(tmp_path / "machine.model"))
    labels, values = libsvm_answers(svmutil, model, X)
    assert (np.diff(machine.classes_) > 0).all()
    np.testing.assert_array_equal(machine.predict(X), labels)
    ours = machine.pairwise_decision_function(X)
    np.testing.assert_allclose(np.sort(np.abs(ours), axis=1), np.sort(np.abs(values), axis=1), atol=1e-5)


# Ties


def tied_rows(k, per_class=12, seed=0):
    """Return the same rows for every class, in another order each time, and the same classes in no order."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(per_class, 3)).astype(float)
    y = rng.permutation(7 * np.arange(k) - 10)
    return np.vstack([rng.permutation(X) for _ in range(k)]), np.repeat(y, per_class)


@pytest.mark.parametrize("order", list(itertools.permutations([1, 2, 3])), ids=str)
def test_a_value_of_zero_is_a_vote_for_the_class_that_the_file_names_second(order, svmutil, tmp_path):
    lines = ["svm_type c_svc", "kernel_type linear", "nr_class 3", "total_sv 3"]
    lines += [
        "rho 0 0 0",
        f"label {' '.join(map(str, order))}",
        "nr_sv 1 1 1",
        "SV",
        "1 1 1:1",
        "-1 1 2:1",
        "-1 -1 3:1",
    ]
    (tmp_path / "zero").write_text("\n".join(lines) + "\n")
    machine, model = import_libsvm(tmp_path / "zero"), svmutil.svm_load_model(str(tmp_path / "zero"))
    X = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=3)))  # equal numbers make a value of zero
    labels, values = libsvm_answers(svmutil, model, X)
    assert (values == 0).any(axis=1).sum() == 21
    np.testing.assert_array_equal(machine.predict(X), labels)
    np.testing.assert_array_equal(machine.classes_[machine.decision_function(X).argmax(axis=1)], labels)
    again = round_trip(machine, tmp_path)
    np.testing.assert_array_equal(again.predict(X), labels)
    theirs = svmutil.svm_load_model(str(tmp_path / "machine.model"))
    np.testing.assert_array_equal(libsvm_answers(svmutil, theirs, X)[0], labels)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_a_value_of_zero_of_two_classes(order, svmutil, tmp_path):
    lines = ["svm_type c_svc", "kernel_type linear", "nr_class 2", "total_sv 2"]
    lines += ["rho 0", f"label {order[0]} {order[1]}", "nr_sv 1 1", "SV", "1 1:1", "-1 2:1"]
    (tmp_path / "zero").write_text("\n".join(lines) + "\n")
    machine, model = import_libsvm(tmp_path / "zero"), svmutil.svm_load_model(str(tmp_path / "zero"))
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [2.0, 2.0]])
    assert machine.predict(X).tolist() == [order[0], *(order[1],) * 3]
    np.testing.assert_array_equal(libsvm_answers(svmutil, model, X)[0], machine.predict(X))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_rounding_decides_as_in_libsvm(kernel, k, svmutil, tmp_path):
    X, y = tied_rows(k)
    model, machine = trained(svmutil, X, y, NUMBERS[kernel], tmp_path / "theirs")
    labels, values = libsvm_answers(svmutil, model, X)
    assert np.mean(np.abs(values) < 1e-9) > 0.2
    np.testing.assert_array_equal(machine.predict(X), labels)
    np.testing.assert_array_equal(machine.predict(sparse.csr_matrix(X)), labels)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_rounding_decides_in_libsvm_as_it_does_here(kernel, k, svmutil, tmp_path):
    X, y = tied_rows(k)
    machine = OneVsOneSVC(kernel=kernel, **KERNELS[kernel]).fit(X, y)
    labels, values = libsvm_answers(svmutil, exported(svmutil, machine, tmp_path / "ours"), X)
    assert np.mean(np.abs(values) < 1e-9) > 0.2
    np.testing.assert_array_equal(machine.predict(X), labels)


@pytest.mark.parametrize("options", ["-n 0.02 -g 0.2", "-n 0.02 -g 0.1", "-n 0.03 -g 0.1 -r -1", "-n 0.005"])
def test_every_label_of_soybean_is_that_of_libsvm(options, svmutil, tmp_path):
    """Sigmoids that are 1 but for the last digits: values of pairs are zero, or would be without rounding."""
    (X, y), (Q, _) = (read_data(paper_file("soybean", part)) for part in ("train", "test"))
    X, Q = (rows.toarray() if sparse.issparse(rows) else rows for rows in (X, Q))
    model, machine = trained(svmutil, X, y, f"-s 1 -t 3 {options}", tmp_path / "theirs")
    labels, values = libsvm_answers(svmutil, model, Q)
    assert np.sum(values == 0) > 50
    np.testing.assert_array_equal(machine.predict(Q), labels)
    again = exported(svmutil, machine, tmp_path / "again")
    np.testing.assert_array_equal(libsvm_answers(svmutil, again, Q)[0], labels)


# Probabilities


@pytest.mark.parametrize("k", [2, 3, 6])
def test_probabilities_of_libsvm(k, svmutil, tmp_path):
    X, y = random_classes(k, n=50 * k, n_features=5, seed=k)
    y = 3 * (k - y) - 5  # not in the order of appearance
    model, machine = trained(svmutil, X[::2], y[::2], "-b 1 -c 2", tmp_path / "theirs")
    order = np.argsort(np.argsort(model.get_labels()))
    assert machine.decision == "coupling"
    labels, expected = libsvm_answers(svmutil, model, X, probabilities=True)
    assert_couples_as_libsvm(machine, X, order, expected)
    # LIBSVM draws the folds of its sigmoids at random, and ends its iteration early: near ties either may be first.
    second, first = np.sort(expected, axis=1)[:, -2:].T
    sure = first - second > 0.01
    assert sure.mean() > 0.8
    np.testing.assert_array_equal(machine.predict(X)[sure], np.asarray(labels)[sure])
    votes, _ = libsvm_answers(svmutil, model, X)
    np.testing.assert_array_equal(machine.set_params(decision="votes").predict(X), votes)
    assert (votes != labels).any() or k == 2


@pytest.mark.parametrize("k", [2, 3, 6])
def test_libsvm_gives_our_probabilities(k, svmutil, tmp_path):
    X, y = random_classes(k, n=50 * k, n_features=5, seed=k)
    machine = OneVsOneSVC(decision="coupling").fit(X[::2], 10 * y[::2] - 20)
    model = exported(svmutil, machine, tmp_path / "ours")
    assert svmutil.libsvm.svm_check_probability_model(model) == 1
    labels, expected = libsvm_answers(svmutil, model, X, probabilities=True)
    assert_couples_as_libsvm(machine, X, np.arange(k), expected)
    np.testing.assert_array_equal(machine.predict(X), labels)
    again = import_libsvm(tmp_path / "ours")
    np.testing.assert_array_equal(again.predict_proba(X), machine.predict_proba(X))
    export_libsvm(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "ours").read_bytes()


def assert_couples_as_libsvm(machine, X, order, expected):
    """Compare probabilities, LIBSVM's being in this order of the classes.

    LIBSVM ends its iteration for more than two classes at a violation of 0.005 / k, and its probabilities are a few
    thousandths from the solution, which is what we give. Iterated as far, ours are LIBSVM's to 1e-6.
    """
    k = len(order)
    found = machine.predict_proba(X)
    np.testing.assert_allclose(found[:, order], expected, atol=1e-9 if k == 2 else 5e-3)
    if k == 2:
        return
    pairs = machine.decision_data_.sigmoids.probabilities(machine.pairwise_decision_function(X))
    early = [fixed_point(row, k, rounds=100, enough=0.005 / k, order=order) for row in pairs]
    np.testing.assert_allclose(early, expected, atol=1e-6)
    np.testing.assert_allclose([fixed_point(row, k) for row in pairs], found, atol=1e-9)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_equal_probabilities_go_to_the_class_that_the_file_names_first(order, svmutil, tmp_path):
    lines = [
        "svm_type c_svc",
        "kernel_type linear",
        "nr_class 2",
        "total_sv 2",
        "rho 0",
        f"label {order[0]} {order[1]}",
    ]
    lines += ["probA -1", "probB 0", "nr_sv 1 1", "SV", "1 1:1", "-1 2:1"]
    (tmp_path / "even").write_text("\n".join(lines) + "\n")
    machine, model = import_libsvm(tmp_path / "even"), svmutil.svm_load_model(str(tmp_path / "even"))
    X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    labels, _ = libsvm_answers(svmutil, model, X, probabilities=True)
    assert labels.tolist() == [*order, order[0]]
    np.testing.assert_array_equal(machine.predict(X), labels)


def test_machines_with_sigmoids_that_vote_are_written_without(tmp_path):
    machine = OneVsOneSVC(decision="coupling").fit(*iris()).set_params(decision="votes")
    assert round_trip(machine, tmp_path).decision == "votes"
    assert not hasattr(import_libsvm(tmp_path / "machine.model"), "probA_")


# Kernel values


def test_libsvm_reads_a_precomputed_kernel(svmutil, tmp_path):
    X, y = wine()
    K = kernel_matrix(X, X, "rbf", gamma=0.05)
    machine = OneVsOneSVC(kernel="precomputed").fit(K, y)
    export_libsvm(machine, tmp_path / "machine.model")
    model = svmutil.svm_load_model(str(tmp_path / "machine.model"))
    rows = [dict(enumerate([i + 1, *row])) for i, row in enumerate(K.tolist())]
    labels = svmutil.svm_predict([], rows, model, "-q")[0]
    np.testing.assert_array_equal(labels, machine.predict(K))


# What is not exported


@pytest.mark.parametrize("labels", [["a", "b", "c"], [0.5, 1.5, 2.5], [0, 1, 2**40]], ids=["text", "halves", "large"])
def test_labels_that_libsvm_has_not_are_refused(labels, tmp_path):
    X, y = iris()
    machine = OneVsOneSVC().fit(X, y)
    machine.classes_ = np.array(labels)
    with pytest.raises(ValueError, match="LabelEncoder"):
        export_libsvm(machine, tmp_path / "machine")


def test_whole_floats_are_whole_numbers(tmp_path):
    X, y = iris()
    loaded = round_trip(OneVsOneSVC().fit(X, y.astype(float)), tmp_path)
    assert loaded.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("decision", ["dag", "adag"])
def test_other_decisions_are_refused(decision, tmp_path):
    with pytest.raises(ValueError, match=r"set_params\(decision='votes'\)"):
        export_libsvm(OneVsOneSVC(decision=decision).fit(*iris()), tmp_path / "machine")


def test_python_functions_other_machines_and_unfitted_ones_are_refused(tmp_path):
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        export_libsvm(OneVsOneSVC(kernel=lambda A, B: A @ B.T).fit(*iris()), tmp_path / "machine")
    with pytest.raises(TypeError, match="OneVsOneSVC, not CrammerSingerSVC"):
        export_libsvm(CrammerSingerSVC().fit(*iris()), tmp_path / "machine")
    with pytest.raises(ValueError, match="not fitted"):
        export_libsvm(OneVsOneSVC(), tmp_path / "machine")
    assert not list(tmp_path.iterdir())


def test_too_few_features_are_refused(tmp_path):
    with pytest.raises(ValueError, match="n_features=3 is too small: the model needs 4"):
        round_trip(OneVsOneSVC().fit(*iris()), tmp_path, n_features=3)


# Bad files

GOOD = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 3
total_sv 3
rho 0.1 0.2 0.3
label 1 2 3
nr_sv 1 1 1
SV
1 0.5 1:1 3:2.5
-1 0.25 2:1e-3
-0.5 -.25 1:-1 2:+2
"""
BAD = {
    "nothing": ("", "line 1, column 1: the line SV"),
    "another keyword": (GOOD.replace("gamma", "gama"), "line 3, column 1: expected a keyword"),
    "a keyword twice": (GOOD.replace("nr_class 3", "gamma 3"), "line 4, column 1: this keyword was given before"),
    "a keyword missing": (GOOD.replace("gamma 0.5\n", ""), "line 8, column 1: the keyword gamma is missing"),
    "a regression": (GOOD.replace("c_svc", "epsilon_svr"), "line 1, column 10: expected a classifier"),
    "an unknown kernel": (GOOD.replace("rbf", "chi2"), "line 2, column 13: expected one of"),
    "a number that is none": (GOOD.replace("0.5\nnr", "0x5\nnr"), "line 3, column 7: expected a finite number"),
    "an infinite number": (GOOD.replace("0.5\nnr", "inf\nnr"), "line 3, column 7: expected a finite number"),
    "a number too large": (GOOD.replace("0.5\nnr", "1e999\nnr"), "line 3, column 7: expected a finite number"),
    "underscores": (GOOD.replace("0.5\nnr", "1_0\nnr"), "line 3, column 7: expected a finite number"),
    "negative gamma": (GOOD.replace("gamma 0.5", "gamma -0.5"), "line 3, column 7: gamma must not be negative"),
    "one class": (GOOD.replace("nr_class 3", "nr_class 1"), "line 4, column 10: expected a whole number from 2"),
    "more classes": (GOOD.replace("nr_class 3", "nr_class 9"), "line 7, column 1: expected 9 values, not 3"),
    "very many classes": (GOOD.replace("nr_class 3", "nr_class 2147483647"), "line 7, column 1: expected 2147483647"),
    "half a sigmoid": (GOOD.replace("nr_sv", "probA 1 2 3\nnr_sv"), "line 10, column 1: the keyword probB is missing"),
    "a sigmoid too few": (
        GOOD.replace("nr_sv", "probA 1 2 3\nprobB 1 2\nnr_sv"),
        "line 9, column 1: expected 3 values, not 2",
    ),
    "too few offsets": (GOOD.replace("rho 0.1", "rho"), "line 6, column 1: expected 3 values, not 2"),
    "a label twice": (GOOD.replace("label 1 2 3", "label 1 2 1"), "line 7, column 11: this label was given before"),
    "a label of text": (GOOD.replace("label 1 2 3", "label 1 b 3"), "line 7, column 9: expected a whole number"),
    "wrong counts": (GOOD.replace("nr_sv 1 1 1", "nr_sv 1 1 2"), "line 8, column 1: the numbers must sum to total_sv"),
    "a vector missing": (GOOD.replace("-1 0.25 2:1e-3\n", ""), "line 11, column 1: expected 3 support vectors, got 2"),
    "a vector too many": (GOOD + "1 1 1:1\n", "line 13, column 1: expected 3 support vectors, got 4"),
    "a coefficient missing": (GOOD.replace("-1 0.25 2", "-1 2"), "line 11, column 4: expected a finite number"),
    "an empty vector": (GOOD.replace("-1 0.25 2:1e-3", ""), "line 11, column 1: expected 2 coefficients"),
    "an index below 1": (GOOD.replace("2:1e-3", "0:1e-3"), "line 11, column 9: expected an index from 1"),
    "indices that fall": (GOOD.replace("3:2.5", "1:2.5"), "line 10, column 11: expected an index from 2"),
    "an index too large": (GOOD.replace("3:2.5", "9999999999:1"), "line 10, column 11: expected an index from 2"),
    "a feature without index": (GOOD.replace("3:2.5", "2.5"), "line 10, column 11: expected index:value"),
    "a feature without value": (GOOD.replace("3:2.5", "3:"), "line 10, column 11: expected index:value"),
    "a value too large": (GOOD.replace("3:2.5", "3:1e999"), "line 10, column 11: expected index:value"),
    "a value that is none": (GOOD.replace("3:2.5", "3:nan"), "line 10, column 11: expected index:value"),
    "bytes of no text": (GOOD.replace("3:2.5", "3:\xff"), "line 10, column 11: expected index:value"),
    "a precomputed row": (
        GOOD.replace("rbf", "precomputed"),
        "line 10, column 7: expected 0:number alone",
    ),
}


def test_the_good_file_is_good(tmp_path):
    (tmp_path / "good").write_text(GOOD.replace("\n", "\r\n") + "\n\n")
    machine = import_libsvm(tmp_path / "good")
    assert machine.n_features_in_ == 3
    np.testing.assert_array_equal(machine.dual_coef_, [[1, -1, -0.5], [0.5, 0.25, -0.25]])
    np.testing.assert_array_equal(machine.support_vectors_, [[1, 0, 2.5], [0, 1e-3, 0], [-1, 2, 0]])


@pytest.mark.parametrize("defect", BAD)
def test_bad_files_are_refused_by_line_and_column(defect, tmp_path):
    text, message = BAD[defect]
    (tmp_path / "bad").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="bad, line ") as caught:
        import_libsvm(tmp_path / "bad")
    assert f"bad, {message}" in str(caught.value)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "precomputed"])
def test_a_thousand_mutations_are_refused_by_place_or_give_a_machine_that_works(kernel, tmp_path):
    X, y = iris()
    queries = X if kernel != "precomputed" else X @ X.T
    machine = OneVsOneSVC(C=0.1, kernel=kernel, **KERNELS.get(kernel, {})).fit(queries, y)
    export_libsvm(machine, tmp_path / "good")
    data = (tmp_path / "good").read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(1000):
        (tmp_path / "mutated").write_bytes(mutated(data, rng, b"0123456789-.e+: \n\tSVnaninf"))
        loaded = outcome(import_libsvm, tmp_path / "mutated")
        if isinstance(loaded, str):
            refused += 1
            assert re.search(r"mutated, line \d+, column \d+: ", loaded), loaded
            continue
        width = min(loaded.n_features_in_, 10**6)  # a mutation may ask for 2**31 features
        labels = outcome(loaded.predict, np.resize(queries, (5, width)))
        assert isinstance(labels, str) or set(labels.tolist()) <= set(loaded.classes_.tolist())
    assert 300 < refused < 1000
