"""The names that users rely on, as the interface is described: none is lost."""

import inspect

import pytest

import polymargin
import polymargin.features
import polymargin.selection
import polymargin.storage
from polymargin.cli import main

COMMON = {
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
    "warm_start": False,
}
OWN = {
    "OneVsOneSVC": {"loss": "hinge", "decision": "votes", "solver": "auto"},
    "OneVsRestSVC": {"loss": "hinge", "bias": "free", "solver": "auto", "calibration": None},
    "WestonWatkinsSVC": {
        "loss": "hinge",
        "bias": "regularized",
        "margin": 2.0,
        "costs": None,
        "solver": "auto",
        "calibration": None,
    },
    "CrammerSingerSVC": {"loss": "hinge", "bias": None, "costs": None, "solver": "auto", "calibration": None},
    "JointSVC": {
        "loss": "hinge",
        "margins": "relative",
        "aggregation": "sum",
        "reinforced": None,
        "bias": "regularized",
        "costs": None,
        "solver": "auto",
        "calibration": None,
    },
    "LeeLinWahbaSVC": {"bias": "regularized", "costs": None, "solver": "auto", "calibration": None},
    "ReinforcedSVC": {"share": 0.5, "bias": "regularized", "costs": None, "solver": "auto", "calibration": None},
    "AbsoluteMaximumSVC": {"bias": "regularized", "costs": None, "solver": "auto", "calibration": None},
    "TotalMaximumSVC": {"bias": "regularized", "costs": None, "solver": "auto", "calibration": None},
    "TotalSumSVC": {"bias": "regularized", "costs": None, "solver": "auto", "calibration": None},
    "MaximumMarginRegressionSVC": {"bias": "regularized", "solver": "auto", "calibration": None},
    "LinearProgramSVC": {"calibration": None},
    "SoftmaxSVC": {
        "aggregation": 1.0,
        "basis": "kpca",
        "rank": None,
        "class_kernel": None,
        "strategy": "joint",
        "bias": "free",
    },
    "GenSVC": {"p": 1.0, "kappa": 0.0, "basis": "kpca", "rank": None, "bias": "free"},
    "OutputCodeSVC": {"code": "one-vs-one", "code_size": None, "decoding": "hamming", "calibration": None},
    "UncertaintySVC": {"max_pairs": 0.5, "min_distance": 0.8, "probe_size": 30, "answers": "signs"},
}
ATTRIBUTES = {
    *("classes_", "n_features_in_", "support_", "support_vectors_", "n_support_", "dual_coef_", "intercept_"),
    *("n_iter_", "primal_objective_", "dual_objective_", "duality_gap_", "converged_", "stop_reason_"),
    *("solver_used_", "fit_time_", "n_kernel_evaluations_"),
}
OWN_ATTRIBUTES = {
    "UncertaintySVC": {"pairs_", "decision_matrix_", "distances_"},
    "OutputCodeSVC": {"code_book_"},
    "LinearProgramSVC": {"active_", "multipliers_"},
    "SoftmaxSVC": {"gradient_norm_"},
    "GenSVC": {"gradient_norm_"},
}
COMMANDS = ("check", "compare", "easy", "export", "info", "predict", "scale", "train", "tune")


@pytest.fixture(scope="module")
def iris():
    from sklearn.datasets import load_iris

    return load_iris(return_X_y=True)


@pytest.mark.parametrize("name", OWN)
def test_estimators_have_their_parameters_and_defaults(name):
    assert getattr(polymargin, name)().get_params() == COMMON | OWN[name]


@pytest.mark.parametrize("name", OWN)
def test_all_parameters_but_c_are_keywords(name):
    parameters = list(inspect.signature(getattr(polymargin, name)).parameters.values())
    assert parameters[0].name == "C"
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters[1:])


@pytest.mark.parametrize("name", OWN)
def test_fits_leave_the_attributes(name, iris):
    machine = getattr(polymargin, name)(kernel="linear").fit(*iris)
    for attribute in ATTRIBUTES | OWN_ATTRIBUTES.get(name, set()) | {"coef_", "model_", "outcome_"}:
        assert hasattr(machine, attribute), attribute
    for method in ("predict", "decision_function", "score"):
        assert callable(getattr(machine, method))


def test_methods_that_some_have(iris):
    coupled = polymargin.OneVsOneSVC(decision="coupling").fit(*iris)
    for name in ("predict_proba", "predict_log_proba", "pairwise_decision_function", "probA_", "probB_"):
        assert hasattr(coupled, name), name
    assert hasattr(polymargin.SoftmaxSVC().fit(*iris), "predict_proba")


def test_functions_are_where_they_were():
    for name in ("Certificate", "Comparison", "certify", "compare", "load_model", "save_model"):
        assert callable(getattr(polymargin, name))
    for name in (
        "KernelSearchCV",
        "default_cost",
        "default_width",
        "hsu_lin_grid",
        "known_cost",
        "regularization_path",
    ):
        assert callable(getattr(polymargin.selection, name))
    for name in ("export_libsvm", "export_onnx", "import_libsvm", "load_model", "read_data", "save_model"):
        assert callable(getattr(polymargin.storage, name))
    for name in ("CholeskyFeatures", "KernelPCAFeatures", "SubsetFeatures"):
        assert callable(getattr(polymargin.features, name))
    assert list(inspect.signature(polymargin.selection.KernelSearchCV).parameters)[:3] == [
        "estimator",
        "param_grid",
        "cv",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_have_help(command, capsys):
    assert main([command, "--help"]) == 0
    assert command in capsys.readouterr().out
