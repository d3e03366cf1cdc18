"""The suites: which tests, with which of our classes in whose place, and how they are to come out.

An expected difference says what is so here and what a user does about it. Tests that are left out ask for something
that has no counterpart here. Tests that use none of our classes need no entry: they do not count.
"""

from foreign import adapters
from foreign.plugin import Difference, Suite

MACHINES = {"sklearn.svm.SVC": adapters.SVC, "sklearn.svm.LinearSVC": adapters.LinearSVC}
CLASSIFIERS = MACHINES | {"sklearn.linear_model.LogisticRegression": adapters.LogisticRegression}

_L1 = "asks for liblinear's l1 penalty or for its scaled intercept"
_WEIGHTS = Difference(
    "a negative weight is an error that names its row: leave such rows out, or give them weight 0",
    "sample_weight must not be negative",
)
_WARNING = Difference(
    "the warning says which limit was reached and how far the answer is from optimal, in words of our own",
    "did not converge: max_iter",
)


def other_words(ours: str) -> Difference:
    """Return the difference of a message."""
    return Difference("the error is the same, in other words: a program that reads messages has to read ours", ours)


SVM = Suite(
    name="svm",
    tests=("sklearn.svm.tests.test_svm", "sklearn.svm.tests.test_sparse", "sklearn.svm.tests.test_bounds"),
    replaced=MACHINES,
    left_out={
        "test_svm::test_linearsvc": _L1,
        "test_svm::test_linearsvc_parameters": "is about which of liblinear's solvers goes with which penalty and loss",
        "test_svm::test_linearsvm_liblinear_sample_weight[*LinearSVC-params0]": _L1,
        "test_svm::test_dense_liblinear_intercept_handling": _L1,
        "test_sparse::test_sparse_liblinear_intercept_handling": _L1,
        "test_bounds::test_l1_min_c[*squared_hinge*]": _L1,
        "test_svm::test_svc_invalid_break_ties_param[*-SVC]": "there is no break_ties: ties do not contradict scores",
        "test_svm::test_probability_raises_futurewarning[*-SVC-SVC]": "is about the end of a parameter of SVC",
        "test_svm::test_svc_nusvc_probA_probB_deprecated[SVC]": "is about the end of attributes of SVC",
    },
    expected={
        "test_svm::test_negative_sample_weights_mask_all_samples[weights-are-negative-SVC]": _WEIGHTS,
        "test_svm::test_negative_sample_weights_mask_all_samples[weights-are-zero-SVC]": other_words(
            "must contain at least one non-zero number"
        ),
        "test_svm::test_negative_weights_svc_leave_just_one_label[*-SVC]": _WEIGHTS,
        "test_svm::test_negative_weights_svc_leave_two_labels[partial-mask-label-1-SVC]": _WEIGHTS,
        "test_svm::test_negative_weight_equal_coeffs[partial-mask-label-1-SVC]": _WEIGHTS,
        "test_svm::test_bad_input": Difference(
            "a machine fitted to dense data takes sparse examples, and the other way round", "DID NOT RAISE"
        ),
        "test_svm::test_svc_nonfinite_params": Difference(
            "data whose squares overflow are refused at once, by row and column", "its square overflows"
        ),
        "test_svm::test_liblinear_set_coef": Difference(
            "coef_ follows from the solution and cannot be set, as that of SVC cannot", "property 'coef_'"
        ),
        "test_svm::test_libsvm_convergence_warnings": _WARNING,
        "test_svm::test_linear_svm_convergence_warnings": _WARNING,
        "test_sparse::test_timeout": _WARNING,
        "test_svm::test_svc_ovr_tie_breaking[*-SVC]": Difference(
            "the largest score names the class that predict gives, ties too", "assert not np.True_"
        ),
        "test_svm::test_hasattr_predict_proba": other_words("was fitted without probabilities"),
        "test_svm::test_svc_raises_error_internal_representation": other_words("the fitted state is damaged"),
        "test_svm::test_custom_kernel_not_array_input[SVC]": Difference(
            "a kernel function is asked for the values with the support vectors; this one is right for squares alone",
            "assert 0.8 == 1.0",
        ),
        "test_sparse::test_linearsvc_iris": Difference(
            "there is no sparsify(): weights of an l2 penalty have no zeros to drop", "no attribute 'sparsify'"
        ),
    },
)

_SEARCHES = "sklearn.model_selection.tests.test_"
SELECTION = Suite(
    name="model_selection",
    tests=tuple(
        _SEARCHES + part for part in ("search", "successive_halving", "validation", "split", "classification_threshold")
    ),
    replaced=CLASSIFIERS,
)

SEARCH = Suite(
    name="model_selection, KernelSearchCV for GridSearchCV",
    tests=(_SEARCHES + "search",),
    replaced=CLASSIFIERS | {"sklearn.model_selection.GridSearchCV": adapters.GridSearchCV},
    expected={
        "test_search::test_grid_search_precomputed_kernel": Difference(
            "a kernel matrix may be a list of lists, as data may", "DID NOT RAISE"
        ),
        "test_search::test_custom_run_search": Difference(
            "there is one attribute more: shared_, whether work was shared", "no attribute 'shared_'"
        ),
        "test_search::test_searchcv_raise_warning_with_non_finite_score[GridSearchCV-*]": Difference(
            "one warning more: that nothing is shared between candidates that are no machines of ours",
            "len(WarningsChecker",
        ),
        "test_search::test_search_cv_using_minimal_compatible_estimator[*-GridSearchCV]": Difference(
            "a name in the grid that get_params does not have is refused, although set_params would take any",
            "param_grid has 'predictor__parama'",
        ),
        "test_search::test_search_cv_verbose_3": Difference(
            "verbose shows a progress bar, not a line for each fit", "assert 0 == 3"
        ),
    },
)

CALIBRATION = Suite(
    name="calibration",
    tests=("sklearn.tests.test_calibration",),
    replaced=CLASSIFIERS | {"sklearn.calibration.LinearSVC": adapters.LinearSVC},
    expected={
        "test_calibration::test_temperature_scaling": Difference(
            "C=inf is an error where the loss is never zero: take a large C for hardly any penalty", "C must be finite"
        ),
    },
)

_ONE_CLASS_GONE = Difference(
    "a class whose examples all have weight 0 is an error: make bags so large that every class is in them",
    "has no example with positive sample_weight",
)
ENSEMBLE = Suite(
    name="ensemble",
    tests=tuple(
        f"sklearn.ensemble.tests.test_{part}"
        for part in ("bagging", "common", "forest", "gradient_boosting", "stacking", "voting", "weight_boosting")
    ),
    replaced=CLASSIFIERS,
    expected={
        "test_bagging::test_probability": _ONE_CLASS_GONE,
        "test_bagging::test_bagging_small_max_features": _ONE_CLASS_GONE,
        "test_stacking::test_stacking_without_n_features_in[*-LogisticRegression]": Difference(
            "a machine from which n_features_in_ was deleted says so instead of predicting",
            "the fitted state is damaged: n_features_in_ is missing",
        ),
    },
)

INSPECTION = Suite(
    name="inspection",
    tests=(
        "sklearn.inspection.tests.test_partial_dependence",
        "sklearn.inspection.tests.test_permutation_importance",
        "sklearn.inspection._plot.tests.test_boundary_decision_display",
    ),
    replaced=CLASSIFIERS,
)

_NO_KERNEL = Difference(
    "the examples of the check are no kernel matrix: their number of columns is refused first",
    "doesn't check for NaN and inf in predict",
)
_NO_BIAS = Difference(
    "without a bias no weight lets one class have everything; so it is with LinearSVC(fit_intercept=False)",
    "AssertionError",
)
_NEAR = Difference(
    "the slowest of the solvers comes as near to the optimum as tol says, not to seven digits: take another one",
    "is not equivalent to fitting with removed or repeated",
)
COMMON = Suite(
    name="common estimator checks, 61 parameterisations",
    tests=("common_checks.py",),
    left_out={
        "common_checks::test_common[*kernel='precomputed')-check_decision_proba_consistency]": (
            "the check gives examples to an estimator that takes kernel values"
        ),
    },
    expected={
        "common_checks::test_common[*kernel='precomputed')-check_estimators_nan_inf]": _NO_KERNEL,
        "common_checks::test_common[*solver='exponentiated-gradient')-check_sample_weight_equivalence_on_*]": _NEAR,
        "common_checks::test_common[*bias=None,kernel='linear'*)-check_class_weight_classifiers]": _NO_BIAS,
        "common_checks::test_common[CrammerSingerSVC(kernel='linear'*)-check_class_weight_classifiers]": _NO_BIAS,
        "common_checks::test_common[CrammerSingerSVC(kernel='precomputed')-check_class_weight_classifiers]": _NO_BIAS,
        "common_checks::test_common[UncertaintySVC(answers='margins')-check_class_weight_classifiers]": Difference(
            "the nearest column of mean answers decides; weights of ten million to one make the columns nearly equal",
            "AssertionError",
        ),
    },
)

ALL = ("SVM", "SELECTION", "SEARCH", "CALIBRATION", "ENSEMBLE", "INSPECTION", "COMMON")
