"""Types of parameters, and scikit-learn's base classes with types, which scikit-learn itself does not have.

A type checker sees the classes below; when the package runs they are scikit-learn's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

__all__ = [
    "LINEAR_SOLVERS",
    "Aggregation",
    "Answers",
    "BaseEstimator",
    "Bias",
    "BinarySolver",
    "CacheSize",
    "CalibrationMethod",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassWeight",
    "ClassifierMixin",
    "Decision",
    "FeatureBasis",
    "Gamma",
    "HingeLoss",
    "Margins",
    "Solver",
    "Stop",
    "Strategy",
    "TransformerMixin",
]

Gamma: TypeAlias = Literal["scale", "auto"] | float
HingeLoss: TypeAlias = Literal["hinge", "squared_hinge"]
Margins: TypeAlias = Literal["relative", "absolute"]
Aggregation: TypeAlias = Literal["sum", "max", "total", "total-sum", "self"]
Bias: TypeAlias = Literal["regularized", "free"] | None
BinarySolver: TypeAlias = Literal["auto", "decomposition", "sequential-dual"]
Solver: TypeAlias = BinarySolver | Literal["exponentiated-gradient", "cutting-plane"]
LINEAR_SOLVERS = ("sequential-dual", "exponentiated-gradient", "cutting-plane")
"""Solvers of linear machines, which never compute a kernel value."""
Decision: TypeAlias = Literal["votes", "dag", "adag", "coupling"]
CodeKind: TypeAlias = Literal["one-vs-one", "one-vs-rest", "dense", "sparse", "exhaustive"]
Decoding: TypeAlias = Literal["hamming", "loss", "probability"]
CalibrationMethod: TypeAlias = Literal["sigmoid", "isotonic", "temperature"]
Answers: TypeAlias = Literal["signs", "margins"]
FeatureBasis: TypeAlias = Literal["kpca", "cholesky", "subset"]
Stop: TypeAlias = Literal["auto", "violation", "gap"]
Strategy: TypeAlias = Literal["joint", "one-vs-rest"]
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None
CacheSize: TypeAlias = Literal["auto"] | float

if TYPE_CHECKING:
    from typing import ClassVar, Self

    import numpy as np
    from numpy.typing import NDArray

    class BaseEstimator:
        """What scikit-learn's estimators have in common."""

        _parameter_constraints: ClassVar[dict[str, Any]]
        n_features_in_: int
        feature_names_in_: NDArray[Any]

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters."""
            ...

        def set_params(self, **params: Any) -> Self:
            """Set parameters."""
            ...

        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def _validate_params(self) -> None: ...
        def __sklearn_tags__(self) -> Any: ...

    class CallbackSupportMixin:
        """What estimators with callbacks have in common (scikit-learn 1.9 and later)."""

        def set_callbacks(self, *callbacks: Any) -> Self:
            """Set who is told about the tasks of a fit."""
            ...

        def _init_callback_context(self, **options: Any) -> Any: ...

    class ClassifierMixin:
        """What scikit-learn's classifiers have in common."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return the rate of correct predictions."""
            ...

    class TransformerMixin:
        """What scikit-learn's transformers have in common."""

        def set_output(self, *, transform: Literal["default", "pandas", "polars"] | None = None) -> Self:
            """Choose what ``transform`` returns."""
            ...

    class ClassNamePrefixFeaturesOutMixin:
        """For transformers whose features are named after their class."""

        def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
            """Return the names of the features."""
            ...

    class GridSearchCV(CallbackSupportMixin, BaseEstimator):
        """What scikit-learn's grid search has."""

        estimator: Any
        param_grid: Any
        scoring: Any
        n_jobs: int | None
        refit: Any
        cv: Any
        verbose: int
        error_score: Any
        return_train_score: bool
        cv_results_: dict[str, Any]
        best_estimator_: Any
        best_params_: dict[str, Any]
        best_score_: float
        best_index_: int
        refit_time_: float
        multimetric_: bool
        n_splits_: int
        scorer_: Any

        def __init__(self, estimator: Any, param_grid: Any, **options: Any) -> None: ...
        @property
        def classes_(self) -> NDArray[Any]:
            """Classes of the best machine."""
            ...

        def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
            """Evaluate all candidates, then fit the best."""
            ...

        def score(self, X: Any, y: Any = None, **params: Any) -> float:
            """Return the score of the best machine."""
            ...

        def predict(self, X: Any) -> NDArray[Any]:
            """Return the classes by the best machine."""
            ...

        def predict_proba(self, X: Any) -> NDArray[np.float64]:
            """Return the probabilities by the best machine."""
            ...

        def decision_function(self, X: Any) -> NDArray[np.float64]:
            """Return the scores of the best machine."""
            ...

        def _get_scorers(self) -> tuple[Any, str]: ...
        def _get_routed_params_for_fit(self, params: dict[str, Any]) -> Any: ...
        def _format_results(self, candidates: Any, n_splits: int, outcomes: Any) -> dict[str, Any]: ...
        def _check_refit_for_multimetric(self, scores: Any) -> None: ...
        @staticmethod
        def _select_best_index(refit: Any, refit_metric: str, results: Any) -> int: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
