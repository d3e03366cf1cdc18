"""What every estimator is: parameters, a formulation, a model and a decision."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
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


@dataclass(eq=False, repr=False)
class MulticlassSVC(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """A classifier that solves a formulation, keeps a model and decides by its scores.

    An estimator says what is optimised (:attr:`formulation`) and how scores become a class (:attr:`decision_rule`). A
    fit leaves ``model_``, ``outcome_`` and, where the decision is fitted too, ``decision_data_``: frozen values, of
    which all other fitted attributes are read.
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
        return {"outcome_": models.Outcome}

    @property
    @abstractmethod
    def formulation(self) -> formulations.Formulation:
        """What is optimised, as the parameters say."""

    @property
    @abstractmethod
    def decision_rule(self) -> decision.DecisionRule:
        """How the scores of the fitted model become a class."""

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
            Scores; for two classes the score of the second.
        """
        X = self.checked_queries(X)
        return self.decision_rule.decision_function(self.model_, X, thread_count(self.n_jobs))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each example: the one with the largest score.

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
        return self.classes_[self.decision_rule.predict(self.model_, X, thread_count(self.n_jobs))]

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
            second = self.decision_rule.predict(self.model_, self.checked_queries(X), thread_count(self.n_jobs))
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
