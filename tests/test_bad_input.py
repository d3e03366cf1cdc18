"""Bad input gets a ValueError that says what would be right: no crash, no wrong answer in silence."""

import copy
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from reference.compare import scores
from reference.data import digits, iris, wine
from reference.kernels import kernel_matrix
from scipy import sparse

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

MACHINES = [
    OneVsOneSVC,
    OneVsRestSVC,
    WestonWatkinsSVC,
    CrammerSingerSVC,
    UncertaintySVC,
    OutputCodeSVC,
    SoftmaxSVC,
    GenSVC,
    LinearProgramSVC,
]
TOGETHER = [WestonWatkinsSVC, CrammerSingerSVC, LeeLinWahbaSVC, TotalMaximumSVC]
MACHINES += TOGETHER[2:]
CONTAINERS = {"dense": np.asarray, "csr": sparse.csr_matrix, "float32": lambda X: X.astype(np.float32)}


def names(message, row, column):
    """Tell whether a message names an entry, counted from 0."""
    has_row = re.search(rf"(?i)\brow\D{{0,3}}{row}\b", message)
    return bool(has_row and re.search(rf"(?i)\bcolumn\D{{0,3}}{column}\b", message))


# Values that are not numbers


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named_by_row_and_column(Machine, container, value):
    X, y = digits(150)
    machine = Machine().fit(CONTAINERS[container](X), y)
    X[37, 21] = value
    bad = CONTAINERS[container](X)
    for call in (
        lambda: Machine().fit(bad, y),
        lambda: machine.predict(bad),
        lambda: machine.decision_function(bad),
    ):
        with pytest.raises(ValueError, match=r"NaN|inf") as caught:
            call()
        assert names(str(caught.value), 37, 21), caught.value


@pytest.mark.parametrize("Machine", MACHINES)
def test_the_first_of_many_bad_values_is_named(Machine):
    X, y = iris()
    X[12, 3] = X[40, 0] = np.nan
    with pytest.raises(ValueError, match="NaN") as caught:
        Machine().fit(X, y)
    assert names(str(caught.value), 12, 3), caught.value


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_missing_value_in_a_data_frame_is_refused(Machine):
    X, y = iris()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.loc[12, "c"] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        Machine().fit(frame, y)


@pytest.mark.parametrize("Machine", MACHINES)
def test_nan_in_a_precomputed_kernel_is_named(Machine):
    X, y = iris()
    K = kernel_matrix(X, X, "linear")
    K[17, 90] = np.nan
    with pytest.raises(ValueError, match="NaN") as caught:
        Machine(kernel="precomputed").fit(K, y)
    assert names(str(caught.value), 17, 90), caught.value


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_callable_kernel_that_returns_no_number_is_refused(Machine, value):
    X, y = iris()
    with pytest.raises(ValueError, match=r"NaN|inf|finite"):
        Machine(kernel=lambda A, B: np.full((len(A), len(B)), value)).fit(X, y)


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("container", ["dense", "csr"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("gamma", ["scale", 0.1])
def test_a_huge_value_gives_an_error_that_names_it_or_a_finite_answer(Machine, container, kernel, gamma):
    X, y = digits(150)
    plain = Machine(kernel=kernel, gamma=gamma).fit(CONTAINERS[container](X), y)
    X[37, 21] = 1e200
    bad = CONTAINERS[container](X)

    def outcome(call):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return call()
            except ValueError as error:
                return str(error)

    fit = outcome(lambda: scores(Machine(kernel=kernel, gamma=gamma, time_limit=20.0).fit(bad, y), bad))
    predict = outcome(lambda: scores(plain, bad))
    for got in (fit, predict):
        assert names(got, 37, 21) if isinstance(got, str) else np.isfinite(got).all(), got


# Parameters


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", 0.0),
        ("C", -1.0),
        ("C", np.nan),
        ("C", "1"),
        ("C", None),
        ("kernel", "gaussian"),
        ("kernel", None),
        ("degree", -1),
        ("degree", "3"),
        ("gamma", "scales"),
        ("gamma", -0.1),
        ("gamma", np.nan),
        ("gamma", np.inf),
        ("gamma", None),
        ("coef0", np.nan),
        ("coef0", np.inf),
        ("coef0", "0"),
        ("tol", 0.0),
        ("tol", -1e-3),
        ("tol", np.nan),
        ("class_weight", "balance"),
        ("class_weight", 3),
        ("max_iter", -2),
        ("max_iter", 1.5),
        ("time_limit", -1.0),
        ("time_limit", "1s"),
        ("cache_size", 0),
        ("cache_size", -5),
        ("cache_size", "all"),
        ("cache_size", np.nan),
        ("n_jobs", 1.5),
        ("random_state", "seed"),
        ("verbose", -1),
    ],
)
def test_a_wrong_parameter_is_named(Machine, name, value):
    kernel = {"kernel": "poly"} if name in ("degree", "coef0") else {}
    machine = Machine(**{**kernel, name: value})
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        machine.fit(*iris())
    assert not hasattr(machine, "dual_coef_")


@pytest.mark.parametrize("value", ["vote", "DAG", "", None, 1])
def test_a_wrong_decision_is_named_with_the_right_ones(value):
    with pytest.raises(ValueError, match="decision") as caught:
        OneVsOneSVC(decision=value).fit(*iris())
    for right in ("votes", "dag", "adag", "coupling"):
        assert f"'{right}'" in str(caught.value)


@pytest.mark.parametrize(
    ("Machine", "name", "value"),
    [
        *((Machine, "bias", value) for Machine in TOGETHER for value in ("none", "Free", "", 0, 1.0, True)),
        *((Machine, "solver", value) for Machine in TOGETHER for value in ("smo", "", None, 1)),
        *((WestonWatkinsSVC, "margin", value) for value in (0.0, -2.0, np.nan, np.inf, "2", None)),
    ],
)
def test_a_wrong_parameter_of_an_all_together_machine_is_named(Machine, name, value):
    machine = Machine(**{name: value})
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        machine.fit(*iris())
    assert not hasattr(machine, "dual_coef_")


@pytest.mark.parametrize("Machine", MACHINES)
def test_class_weight_must_be_positive_and_of_known_classes(Machine):
    X, y = iris()
    for weights in ({0: -1.0}, {0: np.nan}, {0: 0.0}):
        with pytest.raises(ValueError, match="weight"):
            Machine(class_weight=weights).fit(X, y)


# Labels and shapes


@pytest.mark.parametrize("Machine", MACHINES)
def test_one_class_is_not_enough(Machine):
    X, _ = iris()
    with pytest.raises(ValueError, match=r"(?i)class"):
        Machine().fit(X, np.zeros(len(X)))


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize(
    "y",
    [np.linspace(0.0, 1.0, 150), np.arange(300).reshape(150, 2), np.arange(149), np.full(150, np.nan), None],
    ids=["continuous", "two columns", "one short", "nan", "none"],
)
def test_wrong_labels_are_refused(Machine, y):
    X, _ = iris()
    with pytest.raises(ValueError, match=r"\w"):
        Machine().fit(X, y)


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("shape", [(150,), (150, 0), (0, 4), (150, 2, 2)])
def test_wrong_shapes_are_refused(Machine, shape):
    _, y = iris()
    with pytest.raises(ValueError, match=r"\w"):
        Machine().fit(np.ones(shape), y[: shape[0]])


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("width", [3, 5])
def test_rows_of_another_width_are_refused_at_prediction(Machine, width):
    machine = Machine().fit(*iris())
    for container in (np.asarray, sparse.csr_matrix):
        with pytest.raises(ValueError, match="features"):
            machine.predict(container(np.ones((3, width))))


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("shape", [(150, 149), (150, 151), (150, 4)])
def test_a_precomputed_kernel_must_be_square(Machine, shape):
    _, y = iris()
    with pytest.raises(ValueError, match="square"):
        Machine(kernel="precomputed").fit(np.ones(shape), y)


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("change", [-1, 1])
def test_a_precomputed_kernel_needs_a_column_per_training_row(Machine, change):
    X, y = iris()
    K = kernel_matrix(X, X, "linear")
    machine = Machine(kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match="150"):
        machine.predict(np.ones((5, 150 + change)))
    if len(machine.support_) < 150:
        with pytest.raises(ValueError, match="150"):
            machine.predict(np.ones((5, len(machine.support_))))


# Weights


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_class_without_weight_is_named(Machine):
    X, y = iris()
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    weight = np.where(labels == "versicolor", 0.0, 1.0)
    with pytest.raises(ValueError, match="versicolor") as caught:
        Machine().fit(X, labels, sample_weight=weight)
    assert "weight" in str(caught.value)


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_wrong_weight_is_refused(Machine, value):
    X, y = iris()
    weight = np.ones(len(y))
    weight[8] = value
    with pytest.raises(ValueError, match=r"(?i)weight"):
        Machine().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("weight", [np.zeros(150), np.ones(149), np.ones((150, 2))], ids=["zero", "short", "wide"])
def test_wrong_weights_are_refused(Machine, weight):
    with pytest.raises(ValueError, match=r"(?i)weight"):
        Machine().fit(*iris(), sample_weight=weight)


# Sparse matrices whose arrays contradict each other


def _indptr(X, position, value):
    indptr = X.indptr.copy()
    indptr[position] = value
    X.indptr = indptr


def _index(X, value):
    indices = X.indices.copy()
    indices[len(indices) // 2] = value
    X.indices = indices


INVALID_CSR = {
    "indptr not monotone": lambda X: _indptr(X, 5, X.indptr[7] + 3),
    "indptr not from zero": lambda X: _indptr(X, 0, 2),
    "indptr past the end": lambda X: _indptr(X, -1, X.indptr[-1] + 1000),
    "index too large": lambda X: _index(X, X.shape[1] + 5),
    "index negative": lambda X: _index(X, -3),
    "indptr too short": lambda X: setattr(X, "indptr", X.indptr[:-4].copy()),
}


def invalid_csr(kind, index):
    X, y = digits(150)
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    INVALID_CSR[kind](X)
    return X, y


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", INVALID_CSR)
def test_structurally_invalid_csr_is_refused(Machine, kind, index):
    bad, y = invalid_csr(kind, index)
    with pytest.raises(ValueError, match=r"\w"):
        Machine().fit(bad, y)
    machine = Machine().fit(sparse.csr_matrix(digits(150)[0]), y)
    bad, _ = invalid_csr(kind, index)
    with pytest.raises(ValueError, match=r"\w"):
        machine.predict(bad)


# Fitted states that somebody changed


def _longer(a):
    return np.concatenate([a, a[:1]])


def _with(value):
    def change(a):
        a = np.array(a)
        a.flat[a.size // 2] = value
        return a

    return change


TAMPERED = {
    "dual_coef_ with a row too many": ("dual_coef_", _longer),
    "dual_coef_ with a row too few": ("dual_coef_", lambda a: a[:-1]),
    "dual_coef_ with a column too few": ("dual_coef_", lambda a: a[:, :-1]),
    "dual_coef_ transposed": ("dual_coef_", lambda a: a.T.copy()),
    "dual_coef_ flat": ("dual_coef_", lambda a: a.ravel()),
    "dual_coef_ with NaN": ("dual_coef_", _with(np.nan)),
    "dual_coef_ with inf": ("dual_coef_", _with(np.inf)),
    "dual_coef_ of text": ("dual_coef_", lambda a: np.full(a.shape, "x")),
    "intercept_ too long": ("intercept_", _longer),
    "intercept_ too short": ("intercept_", lambda a: a[:-1]),
    "intercept_ with NaN": ("intercept_", _with(np.nan)),
    "support_vectors_ too wide": ("support_vectors_", lambda a: np.hstack([a, a[:, :1]])),
    "support_vectors_ too narrow": ("support_vectors_", lambda a: a[:, :-1]),
    "support_vectors_ too few": ("support_vectors_", lambda a: a[:-1]),
    "support_vectors_ with NaN": ("support_vectors_", _with(np.nan)),
    "classes_ too short": ("classes_", lambda a: a[:-1]),
    "classes_ too long": ("classes_", lambda a: np.append(a, 99)),
    "n_features_in_ wrong": ("n_features_in_", lambda n: n + 1),
}
TAMPERED_GROUPS = {
    "n_support_ with the wrong sum": ("n_support_", lambda a: a + 1),
    "n_support_ negative": ("n_support_", lambda a: np.array([-1, a.sum() + 1, 0])),
    "n_support_ too short": ("n_support_", lambda a: a[:-1]),
}


@pytest.mark.parametrize(
    ("Machine", "kind"),
    [(Machine, kind) for Machine in MACHINES for kind in TAMPERED]
    + [(Machine, kind) for Machine in (OneVsOneSVC, *TOGETHER, LinearProgramSVC) for kind in TAMPERED_GROUPS],
)
def test_a_tampered_machine_refuses_to_predict(Machine, kind):
    X, y = wine()
    machine = Machine().fit(X, y)
    machine.predict(X)
    name, change = {**TAMPERED, **TAMPERED_GROUPS}[kind]
    tampered = copy.deepcopy(machine)
    setattr(tampered, name, change(getattr(machine, name)))
    for method in ("predict", "decision_function"):
        with pytest.raises(ValueError, match=r"\w"):
            getattr(tampered, method)(X)


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize(
    "change", [_with(10**6), _with(-(10**6)), lambda a: a[:-1]], ids=["large", "negative", "short"]
)
def test_tampered_support_of_a_precomputed_kernel_is_refused(Machine, change):
    X, y = wine()
    K = kernel_matrix(X, X, "linear")
    machine = Machine(kernel="precomputed").fit(K, y)
    machine.support_ = change(machine.support_)
    with pytest.raises(ValueError, match=r"\w"):
        machine.predict(K)


@pytest.mark.parametrize("Machine", MACHINES)
def test_tampered_sparse_support_vectors_are_refused(Machine):
    X, y = digits(150)
    machine = Machine().fit(sparse.csr_matrix(X), y)
    vectors = sparse.csr_matrix(machine.support_vectors_).copy()
    _index(vectors, 10**6)
    machine.support_vectors_ = vectors
    with pytest.raises(ValueError, match=r"\w"):
        machine.predict(sparse.csr_matrix(X))


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_failed_fit_leaves_the_machine_as_it_was(Machine):
    X, y = iris()
    machine = Machine().fit(X, y)
    before = {name: copy.deepcopy(value) for name, value in vars(machine).items()}
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        machine.fit(bad, y)
    assert vars(machine).keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(machine, name), value)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("Machine", MACHINES)
def test_a_sparse_precomputed_kernel_is_refused_in_scikit_learns_words(Machine, make):
    X, y = iris()
    K = X @ X.T
    with pytest.raises(TypeError, match=r"Sparse precomputed kernels are not supported: pass K.toarray\(\)"):
        Machine(kernel="precomputed").fit(make(K), y)
    machine = Machine(kernel="precomputed").fit(K, y)
    with pytest.raises(TypeError, match="Sparse precomputed"):
        machine.predict(make(K))


# Parameters that are not there


@pytest.mark.parametrize("Machine", MACHINES)
def test_unknown_parameters_are_refused_in_the_name_of_the_machine(Machine):
    with pytest.raises(TypeError, match=rf"^{Machine.__name__}\(\): got an unexpected keyword argument 'gama'$"):
        Machine(gama=1.0)
    with pytest.raises(TypeError, match=rf"^{Machine.__name__}\(\): too many positional arguments$"):
        Machine(1.0, "rbf")
    with pytest.raises(TypeError, match=rf"^{Machine.__name__}\(\): .*'probability'; .*decision='coupling'"):
        Machine(probability=True)


def test_other_errors_of_a_constructor_stay_what_they_are():
    class Other(OneVsOneSVC):
        def __init__(self, C=1.0):
            super().__init__(C=C, decision=len(C))

    with pytest.raises(TypeError, match="has no len"):
        Other()
