"""Every fitted attribute of the public interface: present, of the right shape, and saying what it should."""

import numpy as np
import pytest
from reference.data import digits, iris, random_classes, wine

from polymargin import (
    CrammerSingerSVC,
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
    LinearProgramSVC,
]
MACHINES += [LeeLinWahbaSVC, TotalMaximumSVC]
DEFAULTS = {
    "C": 1.0,
    "kernel": "rbf",
    "degree": 3,
    "gamma": "scale",
    "coef0": 0.0,
    "tol": 1e-3,
    "stop": "auto",
    "class_weight": None,
    "max_iter": -1,
    "time_limit": None,
    "cache_size": "auto",
    "n_jobs": None,
    "random_state": None,
    "verbose": 0,
}
JOINT = {"solver": "auto", "costs": None, "calibration": None}
OWN_DEFAULTS = {
    OneVsOneSVC: {"decision": "votes", "loss": "hinge", "solver": "auto"},
    OneVsRestSVC: {"bias": "free", "loss": "hinge", "solver": "auto", "calibration": None},
    WestonWatkinsSVC: JOINT | {"bias": "regularized", "margin": 2.0, "loss": "hinge"},
    CrammerSingerSVC: JOINT | {"bias": None, "loss": "hinge"},
    OutputCodeSVC: {"code": "one-vs-one", "code_size": None, "decoding": "hamming", "calibration": None},
    UncertaintySVC: {"max_pairs": 0.5, "min_distance": 0.8, "probe_size": 30, "answers": "signs"},
    SoftmaxSVC: {
        "aggregation": 1.0,
        "basis": "kpca",
        "rank": None,
        "class_kernel": None,
        "strategy": "joint",
        "bias": "free",
    },
    LinearProgramSVC: {"calibration": None},
    LeeLinWahbaSVC: JOINT | {"bias": "regularized"},
    TotalMaximumSVC: JOINT | {"bias": "regularized"},
}


@pytest.mark.parametrize("Machine", MACHINES)
def test_defaults_are_those_of_the_interface(Machine):
    params = Machine().get_params()
    assert {name: params[name] for name in DEFAULTS} == DEFAULTS
    own = {name: params[name] for name in params if name not in DEFAULTS}
    assert own == OWN_DEFAULTS[Machine] | {"warm_start": False}


@pytest.mark.parametrize("Machine", MACHINES)
def test_only_the_cost_is_positional(Machine):
    assert Machine(2.0).C == 2.0
    with pytest.raises(TypeError):
        Machine(1.0, "rbf")


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("k", [2, 3, 6])
def test_shapes(Machine, k):
    X, y = random_classes(k, n=20 * k, n_features=5, seed=k)
    machine = Machine().fit(X, y)
    n_sv = len(machine.support_)
    if k == 2 and Machine in (OneVsOneSVC, OneVsRestSVC, OutputCodeSVC):
        rows, offsets = 1, 1
    elif Machine in (OneVsOneSVC, OutputCodeSVC):
        rows, offsets = k - 1, k * (k - 1) // 2
    elif Machine is UncertaintySVC:
        rows, offsets = np.bincount(machine.pairs_.ravel()).max(), len(machine.pairs_)
    else:
        rows, offsets = k, 1 if k == 2 else k
    assert machine.classes_.tolist() == list(range(k))
    assert machine.n_features_in_ == 5
    assert machine.dual_coef_.shape == (rows, n_sv)
    assert machine.intercept_.shape == (offsets,)
    assert machine.support_vectors_.shape == (n_sv, 5)
    assert machine.n_support_.shape == (k,)
    assert machine.n_support_.sum() == n_sv
    np.testing.assert_array_equal(machine.n_support_, np.bincount(y[machine.support_], minlength=k))


@pytest.mark.parametrize("Machine", MACHINES)
def test_support_vectors_are_training_rows_and_each_has_a_coefficient(Machine):
    X, y = wine()
    machine = Machine(C=3.0).fit(X, y)
    assert np.issubdtype(machine.support_.dtype, np.integer)
    assert len(np.unique(machine.support_)) == len(machine.support_)
    assert len(machine.support_) < len(X) or Machine is SoftmaxSVC  # whose loss is never zero
    np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
    assert (machine.dual_coef_ != 0).any(axis=0).all()


@pytest.mark.parametrize("Machine", MACHINES)
def test_support_is_grouped_by_class_and_ascending_inside(Machine):
    X, y = digits(400)
    machine = Machine().fit(X, y)
    np.testing.assert_array_equal(machine.support_, sorted(machine.support_, key=lambda row: (y[row], row)))
    assert (np.diff(y[machine.support_]) >= 0).all()


@pytest.mark.parametrize("Machine", MACHINES)
def test_report_of_the_fit(Machine):
    X, y = iris()
    machine = Machine().fit(X, y)
    assert machine.converged_ is True or machine.converged_ == np.True_
    assert isinstance(machine.stop_reason_, str)
    assert machine.stop_reason_
    assert isinstance(machine.solver_used_, str)
    assert machine.solver_used_
    assert np.min(machine.n_iter_) >= 1
    assert 0 < machine.fit_time_ < 60
    assert -1e-12 <= machine.duality_gap_ < 1e-2
    assert isinstance(machine.primal_objective_, float)
    assert isinstance(machine.dual_objective_, float)
    assert machine.n_kernel_evaluations_ > 0


@pytest.mark.parametrize("Machine", MACHINES)
def test_kernel_evaluations_are_shared_by_all_problems(Machine):
    X, y = digits(400)
    machine = Machine().fit(X, y)
    assert len(X) <= machine.n_kernel_evaluations_ <= 2 * len(X) ** 2


@pytest.mark.parametrize("Machine", MACHINES)
def test_coef_exists_for_the_linear_kernel_alone(Machine):
    X, y = iris()
    assert hasattr(Machine(kernel="linear").fit(X, y), "coef_")
    assert not hasattr(Machine(kernel="rbf").fit(X, y), "coef_")


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize(
    "names",
    [["a", "b", "c"], [-5, 0, 7], [1.0, 2.0, 4.0], [np.iinfo(np.int64).min, 0, 10**15]],
    ids=["str", "int", "float", "large"],
)
def test_labels_of_any_type_come_back(Machine, names):
    X, y = iris()
    labels = np.array(names)[y]
    machine = Machine().fit(X, labels)
    assert machine.classes_.dtype == labels.dtype
    assert machine.predict(X).dtype == labels.dtype
    assert machine.score(X, labels) > 0.9


@pytest.mark.parametrize("Machine", MACHINES)
def test_refitting_forgets_the_first_fit(Machine):
    X, y = iris()
    machine = Machine().fit(*digits(200)).fit(X, y)
    fresh = Machine().fit(X, y)
    np.testing.assert_array_equal(machine.dual_coef_, fresh.dual_coef_)
    np.testing.assert_array_equal(machine.predict(X), fresh.predict(X))


@pytest.mark.parametrize("Machine", MACHINES)
def test_fit_leaves_its_arguments_alone(Machine):
    X, y = iris()
    weight = np.linspace(0.5, 2.0, len(y))
    before = X.copy(), y.copy(), weight.copy()
    Machine().fit(X, y, sample_weight=weight)
    for array, copy in zip((X, y, weight), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("Machine", MACHINES)
def test_read_only_and_strided_arrays_are_accepted(Machine):
    X, y = iris()
    expected = Machine().fit(X, y).decision_function(X)
    wide = np.zeros((2 * len(X), 8))
    wide[::2, ::2] = X
    strided = wide[::2, ::2]
    strided.setflags(write=False)
    np.testing.assert_allclose(Machine().fit(strided, y).decision_function(strided), expected, atol=1e-9)
    fortran = np.asfortranarray(X)
    np.testing.assert_allclose(Machine().fit(fortran, y).decision_function(fortran), expected, atol=1e-9)


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_row_alone_gets_the_scores_it_gets_among_others(Machine):
    X, y = wine()
    machine = Machine().fit(X, y)
    together = machine.decision_function(X)
    one_by_one = np.vstack([machine.decision_function(X[i : i + 1]) for i in range(0, len(X), 10)])
    np.testing.assert_allclose(one_by_one, together[::10], atol=1e-6)


JOINT = [WestonWatkinsSVC, CrammerSingerSVC, SoftmaxSVC, LinearProgramSVC]


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("k", [2, 3])
def test_weights_are_read_only(Machine, k):
    X, y = random_classes(k, n=60, seed=k)
    machine = Machine(kernel="linear").fit(X, y)
    before = machine.decision_function(X)
    with pytest.raises(ValueError, match="read-only"):
        machine.coef_[0, 0] = 7.0
    np.testing.assert_array_equal(machine.decision_function(X), before)


@pytest.mark.parametrize("Machine", [*JOINT, OneVsRestSVC, OneVsOneSVC])
@pytest.mark.parametrize("solver", ["auto", "sequential-dual"])
def test_weights_and_intercept_of_two_classes_are_those_of_the_one_score(Machine, solver):
    X, y = random_classes(2, n=60, n_features=4, seed=5)
    options = {"solver": solver} if "solver" in Machine().get_params() else {}
    machine = Machine(kernel="linear", **options).fit(X + 1.0, y)
    assert machine.coef_.shape == (1, 4)
    assert machine.intercept_.shape == (1,)
    scores = (X + 1.0) @ machine.coef_.T + machine.intercept_
    np.testing.assert_allclose(scores[:, 0], machine.decision_function(X + 1.0), atol=1e-9)
