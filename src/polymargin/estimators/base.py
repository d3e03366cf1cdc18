"""What every estimator is: parameters, a formulation, a model and a decision."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from polymargin import decision, formulations, kernels, models
from polymargin.estimators.declaration import Fitted, FittedPart
from polymargin.kernels import KERNEL_CONSTRAINTS, is_precomputed
from polymargin.models.declared import Declared, defects
from polymargin.support.callbacks import CallbackSupportMixin, with_callbacks
from polymargin.support.examples import are_classes, checked_examples
from polymargin.support.numeric import Floats, Ints, Matrix
from polymargin.support.state import unchanged_on_error
from polymargin.support.threads import thread_count
from polymargin.support.typing import BaseEstimator, CacheSize, ClassifierMixin, ClassWeight, Gamma, Stop

OWN_ATTRIBUTES = {
    "n_features_in_": Declared("count"),
    "classes_": Declared("labels", ("classes",)),
    "feature_names_in_": Declared("names", ("features",), optional=True),
    "label_form_": Declared("text", optional=True),
}
"""What an estimator has beside the parts that a fit leaves, as it is stored."""


def _has_probabilities(machine: Any) -> bool:
    missing = machine.missing_probabilities
    if missing is not None:
        raise AttributeError(missing)
    return True


@dataclass(eq=False, repr=False)
class MulticlassSVC(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """A classifier that solves a formulation, keeps a model and decides by its scores.

    An estimator says what is optimised (:attr:`formulation`) and how scores become a class (:attr:`decision_rule`). A
    fit leaves ``model_``, ``outcome_`` and, where the decision is fitted too, ``decision_data_``: frozen values, of
    which all other fitted attributes are read. A machine with the parameter ``calibration`` can have probabilities
    fitted to its scores, ``calibration_data_``.
    """

    C: float = 1.0
    _: KW_ONLY
    kernel: kernels.KernelParameter = "rbf"
    degree: int = 3
    gamma: Gamma = "scale"
    coef0: float = 0.0
    tol: float = 1e-3
    stop: Stop = "auto"
    class_weight: ClassWeight = None
    max_iter: int = -1
    time_limit: float | None = None
    cache_size: CacheSize = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    warm_start: bool = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="right")],
        **KERNEL_CONSTRAINTS,
        "tol": [Interval(Real, 0, None, closed="neither")],
        "stop": [StrOptions(set(get_args(Stop)))],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
    }
    classes_: ClassVar[FittedPart[NDArray[Any]]] = FittedPart()
    model_: ClassVar[FittedPart[models.KernelModel]] = FittedPart()
    outcome_: ClassVar[FittedPart[models.Outcome]] = FittedPart()
    decision_data_: ClassVar[FittedPart[Any]] = FittedPart()
    calibration_data_: ClassVar[FittedPart[decision.Calibration]] = FittedPart()
    support_: ClassVar[Fitted[Ints]] = Fitted()
    support_vectors_: ClassVar[Fitted[Matrix]] = Fitted()
    n_support_: ClassVar[Fitted[NDArray[np.int32]]] = Fitted()
    dual_coef_: ClassVar[Fitted[Any]] = Fitted()
    intercept_: ClassVar[Fitted[Floats]] = Fitted()
    primal_objective_: ClassVar[Fitted[float]] = Fitted()
    dual_objective_: ClassVar[Fitted[float]] = Fitted()
    duality_gap_: ClassVar[Fitted[float]] = Fitted()
    converged_: ClassVar[Fitted[bool]] = Fitted()
    stop_reason_: ClassVar[Fitted[str]] = Fitted()
    solver_used_: ClassVar[Fitted[str]] = Fitted()
    n_iter_: ClassVar[Fitted[Any]] = Fitted()
    n_kernel_evaluations_: ClassVar[Fitted[int]] = Fitted()
    fit_time_: ClassVar[Fitted[float]] = Fitted()
    sigmoid_slopes_: ClassVar[Fitted[Floats]] = Fitted()
    sigmoid_offsets_: ClassVar[Fitted[Floats]] = Fitted()
    isotonic_starts_: ClassVar[Fitted[Ints]] = Fitted()
    isotonic_scores_: ClassVar[Fitted[Floats]] = Fitted()
    isotonic_shares_: ClassVar[Fitted[Floats]] = Fitted()
    temperature_: ClassVar[Fitted[float]] = Fitted()

    @classmethod
    @cache  # the signature is read anew for every clone otherwise, which small fits feel
    def _get_param_names(cls) -> list[str]:
        return super()._get_param_names()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = is_precomputed(self.kernel)
        tags.input_tags.sparse = not precomputed
        tags.input_tags.pairwise = precomputed
        return tags

    # What an estimator says.

    @classmethod
    def part_types(cls) -> dict[str, type]:
        """Return the types of what a fit leaves beside the model.

        Returns
        -------
        dict of str to type
            The types, by the names of the attributes.
        """
        calibrates = "calibration" in cls._get_param_names()
        return {"outcome_": models.Outcome} | ({"calibration_data_": decision.Calibration} if calibrates else {})

    @property
    @abstractmethod
    def formulation(self) -> formulations.Formulation:
        """What is optimised, as the parameters say."""

    @property
    @abstractmethod
    def decision_rule(self) -> decision.DecisionRule:
        """How the scores of the fitted model become a class."""

    @property
    def calibration_method(self) -> str | None:
        """How probabilities are fitted to scores of held-out examples; None if they are not."""
        method: str | None = self.get_params(deep=False).get("calibration")
        return method

    @property
    def missing_probabilities(self) -> str | None:
        """What is to be done for probabilities; None if the machine has them."""
        if self.calibration_method is not None:
            return None
        if "calibration_data_" in self.part_types():
            return "probabilities need calibration='sigmoid', 'isotonic' or 'temperature' before fit"
        return f"{type(self).__name__} has no probabilities; OneVsOneSVC(decision='coupling') has"

    @property
    def deciding_rule(self) -> decision.DecisionRule:
        """How scores become a class in the end: by the probabilities, if there is a calibration."""
        fitted: decision.Calibration | None = vars(self).get("calibration_data_")
        method, found = self.calibration_method, None if fitted is None else fitted.method
        if fitted is None or method is None or found is None:
            return self.decision_rule
        if found != method:
            raise NotFittedError(
                f"this {type(self).__name__} was fitted with calibration={found!r}, and {method!r} was set afterwards: "
                "fit it again, or set back the calibration that it was fitted with"
            )
        return decision.Calibrated(self._scored_decision(), fitted)

    def _scored_decision(self) -> decision.ScoredDecision:
        """Return the decision rule, whose scores can be calibrated."""
        rule = self.decision_rule
        assert isinstance(rule, decision.LargestScore | decision.NearestCode)
        return rule

    def _fitted_decision(self, training: formulations.TrainingSet, solution: formulations.Solution) -> Any:
        """Return what the decision is fitted to; None where there is nothing to fit.

        Parameters
        ----------
        training : TrainingSet
            What the formulation was solved on.
        solution : Solution
            Its solution.

        Returns
        -------
        Value or None
            What becomes ``decision_data_``.
        """
        return None

    def _fitted_calibration(
        self, training: formulations.TrainingSet, solution: formulations.Solution
    ) -> decision.Calibration | None:
        """Return what probabilities are fitted to, of a machine that is fitted but for them.

        Parameters
        ----------
        training : TrainingSet
            What the formulation was solved on.
        solution : Solution
            Its solution, with the scores of held-out examples if they are asked for.

        Returns
        -------
        Calibration or None
            What becomes ``calibration_data_``; None if the machine cannot have one.
        """
        if "calibration_data_" not in self.part_types():
            return None
        method = self.calibration_method
        if method is None or solution.folds is None:
            return decision.Calibration()
        scores = self._scored_decision().shown_scores(solution.folds.scores)
        return decision.fitted_calibration(method, scores, training.labels, training.weight)

    # Fitting.

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training examples; with ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,)
            Their classes, of any type that can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C for each example. A row with weight 2 counts as two rows, one with weight 0 not at all.

        Returns
        -------
        self : object
            The fitted machine. If the fit is interrupted or fails, the machine is as it was before.
        """
        from polymargin.estimators.fitting import (  # with all that is optimised
            fit_checked,
            warn_of_open_gap,
            warn_unless_converged,
        )

        started = time.perf_counter()
        with unchanged_on_error(self):
            X, y = self.checked_training(X, y)
            weight = formulations.checked_weights(sample_weight, X)
            kernel = kernels.Kernel.resolved(self.kernel, self.gamma, self.coef0, self.degree, X, weight)
            solution = fit_checked(self, X, y, weight, kernel, started)
        warn_unless_converged(self, solution)
        warn_of_open_gap(self, solution)
        return self

    # Scores and classes.

    @property
    def coef_(self) -> Floats:
        """Weights of the features in each score, for ``kernel="linear"``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ exists only with kernel='linear'")
        check_is_fitted(self)
        weights = self.decision_rule.public_scores(self.model_.score_weights().T).T[:]
        weights.flags.writeable = False  # scores are computed from what it was made of
        return weights

    def decision_function(self, X: Any) -> Floats:
        """Return the score of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; for a precomputed kernel their kernel values with the training examples, of which only the
            columns of support vectors are read.

        Returns
        -------
        ndarray of shape (n_samples, k), or (n_samples,) for two classes
            Scores; for two classes the score of the second. With a ``calibration`` logarithms of what the probabilities
            are scaled from, for two classes of their ratio: the largest, or the sign, is again the class of
            ``predict``.
        """
        X = self.checked_queries(X)
        return self.deciding_rule.decision_function(self.model_, X, thread_count(self.n_jobs))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each example: the one with the largest score, or with the largest probability.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        X = self.checked_queries(X)
        return self.classes_[self.deciding_rule.predict(self.model_, X, thread_count(self.n_jobs))]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class; only of a machine that was fitted with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Probabilities in the order of ``classes_``; each row sums to 1, and its largest entry is the class that
            ``predict`` gives.
        """
        X = self.checked_queries(X)
        rule = self.deciding_rule
        if self.calibration_method is not None and not isinstance(rule, decision.Calibrated):
            raise NotFittedError(
                f"this {type(self).__name__} was fitted without probabilities, and calibration="
                f"{self.calibration_method!r} was set afterwards: fit it again"
            )
        return cast("decision.ProbabilityRule", rule).probabilities(self.model_, X, thread_count(self.n_jobs))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the probability of each class; only of a machine that was fitted with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Logarithms of what ``predict_proba`` gives, in the order of ``classes_``; of 0 it is ``-inf``.
        """
        return decision.log_probabilities(self.predict_proba(X))

    def predict_topk(self, X: Any, k: int) -> NDArray[Any]:
        """Return the classes with the largest scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.
        k : int
            How many classes, from 1 to all.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Classes by falling score; the first is the one that ``predict`` gives, and of equal scores the class that
            sorts first comes first.
        """
        self.check_state()
        n_classes = len(self.classes_)
        if not isinstance(k, Integral) or not 1 <= k <= n_classes:
            raise ValueError(f"k must be a whole number from 1 to {n_classes}, the number of classes, got {k!r}")
        scores = self.decision_function(X)
        if scores.ndim == 1:
            second = self.deciding_rule.predict(self.model_, self.checked_queries(X), thread_count(self.n_jobs))
            return self.classes_[np.column_stack([second, 1 - second])[:, :k]]
        return self.classes_[np.argsort(-scores, axis=1, kind="stable")[:, :k]]

    # What must hold before a fit or a prediction.

    def checked_training(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Matrix, Any]:
        """Return examples and their classes as a fit takes them; refuse what cannot be learned from.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.
        y : array-like of shape (n_samples,)
            Their classes.
        reset : bool
            Whether the number and the names of the features become those of the machine.

        Returns
        -------
        {ndarray, CSR matrix}
            The examples.
        ndarray
            Their classes.
        """
        X, y = checked_examples(self, X, y, reset=reset)
        if not are_classes(y):
            check_classification_targets(y)
        return X, y

    def checked_queries(self, X: Any) -> Matrix:
        """Return examples as the model takes them; refuse them, or a fitted state that does not belong together.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        {ndarray, CSR matrix}
            The examples.
        """
        self.check_state()
        if self.model_.tolerance != self.tol:  # set after the fit: scores are as exact as it asks for
            vars(self)["model_"] = replace(self.model_, tolerance=float(self.tol))
        return checked_examples(self, X, reset=False, finite=not self.model_.kernel.precomputed)

    def check_state(self) -> None:
        """Raise an error if the estimator is not fitted, or if its fitted attributes do not belong together."""
        if "model_" not in vars(self):
            check_is_fitted(self)  # raises what everybody expects
        for name, defect in self.state_defects():
            raise ValueError(f"the fitted state is damaged: {name} {defect}; fit again")

    def state_defects(self) -> Iterator[tuple[str, str]]:
        """Yield the fitted attributes that do not belong together, each with what is wrong with it.

        Yields
        ------
        tuple of str
            The name of an attribute, and what is wrong with it.
        """
        model = self.model_
        if model.defect is not None:
            yield model.defect
        sizes = {"classes": model.layout.n_classes, "features": model.n_features}
        yield from defects(OWN_ATTRIBUTES, vars(self), lambda: sizes)
        if vars(self).get("n_features_in_") != model.n_features:
            yield "n_features_in_", f"is not {model.n_features}, as the model has it"
        if self.outcome_.defect is not None:
            yield self.outcome_.defect
        if "decision_data_" in self.part_types():
            yield from self.decision_data_.defects(model)
        if "calibration_data_" in vars(self):
            yield from self.calibration_data_.defects(model)
