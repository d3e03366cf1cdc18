"""The machines as scikit-learn estimators: its own checks, and the tools they are used with."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from reference.compare import scores
from reference.data import digits, iris, wine
from reference.kernels import kernel_matrix
from sklearn.base import clone, is_classifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

from polymargin import (
    AbsoluteMaximumSVC,
    CrammerSingerSVC,
    GenSVC,
    JointSVC,
    LeeLinWahbaSVC,
    LinearProgramSVC,
    MaximumMarginRegressionSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    ReinforcedSVC,
    SoftmaxSVC,
    TotalMaximumSVC,
    TotalSumSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)
from polymargin.features import CholeskyFeatures, KernelPCAFeatures, SubsetFeatures

ESTIMATORS = [
    OneVsOneSVC(),
    OneVsOneSVC(decision="dag"),
    OneVsOneSVC(decision="adag"),
    OneVsOneSVC(decision="coupling"),
    OneVsOneSVC(loss="squared_hinge"),
    OneVsRestSVC(),
    OneVsRestSVC(loss="squared_hinge"),
    OneVsRestSVC(calibration="sigmoid"),
    WestonWatkinsSVC(),
    WestonWatkinsSVC(kernel="linear", bias="regularized", calibration="temperature"),
    WestonWatkinsSVC(bias="free", margin=1.0),
    CrammerSingerSVC(),
    CrammerSingerSVC(bias="free"),
    WestonWatkinsSVC(loss="squared_hinge"),
    CrammerSingerSVC(loss="squared_hinge", bias="free"),
    JointSVC(),
    JointSVC(margins="absolute", reinforced=0.3),
    LeeLinWahbaSVC(),
    LeeLinWahbaSVC(bias="free"),
    ReinforcedSVC(),
    AbsoluteMaximumSVC(),
    TotalMaximumSVC(),
    TotalMaximumSVC(bias="free"),
    TotalSumSVC(),
    MaximumMarginRegressionSVC(),
    LinearProgramSVC(),
    UncertaintySVC(),
    OutputCodeSVC(),
    OutputCodeSVC(code="dense", decoding="loss"),
    OutputCodeSVC(code="sparse", decoding="probability"),
    SoftmaxSVC(),
    SoftmaxSVC(aggregation=np.inf, basis="cholesky", bias="regularized"),
    SoftmaxSVC(strategy="one-vs-rest", basis="subset", rank=50),
    GenSVC(),
    GenSVC(p=1.5, kappa=0.5, basis="cholesky", bias="regularized"),
    KernelPCAFeatures(),
    SubsetFeatures(rank=10),
    CholeskyFeatures(rank=10),
]
MACHINES = list({type(estimator): None for estimator in ESTIMATORS if is_classifier(estimator)})


def linear_kernel(A, B):
    """A kernel that can be pickled."""
    return A @ B.T


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_parameters_are_validated_as_scikit_learn_validates_them(estimator):
    check_param_validation(type(estimator).__name__, estimator)


@pytest.mark.parametrize("Machine", MACHINES)
def test_tags(Machine):
    assert is_classifier(Machine())
    assert get_tags(Machine()).input_tags.sparse
    assert not get_tags(Machine()).input_tags.pairwise
    assert get_tags(Machine(kernel="precomputed")).input_tags.pairwise
    assert get_tags(Machine()).classifier_tags.multi_class


@pytest.mark.parametrize("Machine", MACHINES)
def test_repr_names_only_what_was_changed(Machine):
    assert repr(Machine()) == f"{Machine.__name__}()"
    assert repr(Machine(C=2.0, gamma=0.5)) == f"{Machine.__name__}(C=2.0, gamma=0.5)"


@pytest.mark.parametrize("estimator", [*filter(is_classifier, ESTIMATORS)], ids=repr)
def test_clone_is_unfitted_with_the_same_parameters(estimator):
    fitted = clone(estimator).set_params(C=3.0, kernel=linear_kernel).fit(*iris())
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "dual_coef_")


@pytest.mark.parametrize("kernel", ["rbf", "linear", linear_kernel])
@pytest.mark.parametrize("dump", ["pickle", "joblib"])
@pytest.mark.parametrize("Machine", MACHINES)
def test_saved_and_loaded_machines_are_bit_identical(Machine, dump, kernel, tmp_path):
    X, y = wine()
    machine = Machine(kernel=kernel).fit(X[::2], y[::2])
    if dump == "pickle":
        loaded = pickle.loads(pickle.dumps(machine))
    else:
        joblib.dump(machine, tmp_path / "machine.joblib")
        loaded = joblib.load(tmp_path / "machine.joblib")
    np.testing.assert_array_equal(scores(loaded, X), scores(machine, X))
    np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))


@pytest.mark.parametrize("Machine", MACHINES)
def test_memory_mapped_models_predict(Machine, tmp_path):
    X, y = wine()
    machine = Machine().fit(X, y)
    joblib.dump(machine, tmp_path / "machine.joblib")
    mapped = joblib.load(tmp_path / "machine.joblib", mmap_mode="r")
    np.testing.assert_array_equal(mapped.predict(X), machine.predict(X))


@pytest.mark.parametrize("Machine", MACHINES)
def test_pipeline_is_the_two_steps_one_after_the_other(Machine):
    X, y = wine()
    X = X * np.geomspace(0.01, 100, X.shape[1])
    pipeline = make_pipeline(StandardScaler(), Machine()).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    expected = Machine().fit(scaled, y)
    np.testing.assert_array_equal(pipeline.predict(X), expected.predict(scaled))
    np.testing.assert_array_equal(pipeline.decision_function(X), expected.decision_function(scaled))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search_scores_are_those_of_single_fits(n_jobs):
    X, y = iris()
    grid = {"C": [0.01, 1.0], "gamma": [0.01, 1.0], "decision": ["votes", "dag"]}
    search = GridSearchCV(OneVsOneSVC(), grid, cv=3, n_jobs=n_jobs).fit(X, y)
    assert len(search.cv_results_["params"]) == 8
    for params, mean in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        assert mean == pytest.approx(cross_val_score(OneVsOneSVC(**params), X, y, cv=3).mean())
    assert search.best_score_ > 0.9
    assert search.best_params_["C"] == search.best_estimator_.C


@pytest.mark.parametrize("Machine", MACHINES)
def test_cross_validation_splits_a_precomputed_kernel_both_ways(Machine):
    X, y = wine()
    K = kernel_matrix(X, X, "rbf", gamma=0.05)
    precomputed = cross_val_score(Machine(kernel="precomputed"), K, y, cv=4)
    direct = cross_val_score(Machine(gamma=0.05), X, y, cv=4)
    np.testing.assert_allclose(precomputed, direct)


def test_meta_estimators_take_the_machine():
    X, y = iris()
    meta = OneVsRestClassifier(OneVsOneSVC(tol=1e-6)).fit(X, y)
    own = OneVsRestSVC(tol=1e-6).fit(X, y)
    np.testing.assert_allclose(meta.decision_function(X), own.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_keep_their_names_and_give_the_same_answer(Machine, library):
    X, y = iris()
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    frame = pd.DataFrame(X, columns=names) if library == "pandas" else pl.DataFrame(X, schema=names)
    labels = np.array(["a", "b", "c"])[y]
    series = pd.Series(labels) if library == "pandas" else pl.Series(labels)
    machine = Machine().fit(frame, series)
    expected = Machine().fit(X, labels)
    assert machine.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(machine.predict(frame), expected.predict(X))
    np.testing.assert_allclose(scores(machine, frame), scores(expected, X), atol=1e-6)
    with pytest.raises(ValueError, match="feature names"):
        machine.predict(frame[names[::-1]])
    with pytest.warns(UserWarning, match="feature names"):
        machine.predict(X)


@pytest.mark.parametrize("Machine", MACHINES)
def test_arrays_have_no_feature_names(Machine):
    assert not hasattr(Machine().fit(*iris()), "feature_names_in_")


@pytest.mark.parametrize("Machine", MACHINES)
def test_pandas_categories_and_nullable_columns(Machine):
    X, y = iris()
    frame = pd.DataFrame(X).astype("Float64")
    frame.columns = list("abcd")
    labels = pd.Series(np.array(["x", "y", "z"])[y], dtype="category")
    machine = Machine().fit(frame, labels)
    np.testing.assert_array_equal(machine.predict(frame), Machine().fit(X, np.asarray(labels)).predict(X))


@pytest.fixture
def metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("metadata_routing")
@pytest.mark.parametrize("Machine", MACHINES)
def test_sample_weight_is_routed_where_it_is_asked_for(Machine):
    X, y = digits(300)
    weight = np.where(y < 5, 100.0, 0.01)
    asked = Machine(C=0.01).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    with_weight = cross_validate(asked, X, y, cv=3, params={"sample_weight": weight})["test_score"]
    plain = cross_validate(Machine(C=0.01), X, y, cv=3)["test_score"]
    assert not np.array_equal(with_weight, plain)
    with pytest.raises(UnsetMetadataPassedError):
        cross_validate(Machine(C=0.01), X, y, cv=3, params={"sample_weight": weight})


@pytest.mark.usefixtures("metadata_routing")
@pytest.mark.parametrize("Machine", MACHINES)
def test_sample_weight_is_routed_through_pipeline_and_search(Machine):
    X, y = iris()
    weight = np.where(y == 1, 5.0, 0.2)
    machine = Machine(gamma=0.2).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    search = GridSearchCV(make_pipeline(scaler, machine), {f"{Machine.__name__.lower()}__C": [0.05]}, cv=3)
    search.fit(X, y, sample_weight=weight)
    scaled = StandardScaler().fit_transform(X)
    expected = Machine(C=0.05, gamma=0.2).fit(scaled, y, sample_weight=weight)
    np.testing.assert_array_equal(search.decision_function(X), expected.decision_function(scaled))


@pytest.mark.parametrize("Machine", MACHINES)
def test_score_uses_sample_weight(Machine):
    X, y = iris()
    machine = Machine().fit(X, y)
    right = machine.predict(X) == y
    assert not right.all()
    weight = np.where(right, 1.0, 10.0)
    assert machine.score(X, y, sample_weight=weight) == pytest.approx(np.average(right, weights=weight))


@pytest.mark.parametrize("Machine", MACHINES)
def test_random_state_does_not_change_an_answer_that_has_no_chance_in_it(Machine):
    X, y = wine()
    first, second = (Machine(random_state=seed).fit(X, y) for seed in (0, 1))
    np.testing.assert_allclose(scores(first, X), scores(second, X), atol=2e-3)


@pytest.mark.parametrize("Machine", MACHINES)
def test_silent_by_default_and_verbose_on_request(Machine, capfd):
    X, y = iris()
    Machine().fit(X, y)
    assert capfd.readouterr() == ("", "")
    quiet = Machine().fit(X, y)
    loud = Machine(verbose=1).fit(X, y)
    assert "".join(capfd.readouterr())
    np.testing.assert_array_equal(quiet.dual_coef_, loud.dual_coef_)
