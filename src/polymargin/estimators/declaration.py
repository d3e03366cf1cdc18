"""How estimators are declared: parameters as fields, fitted attributes as those of what a fit leaves."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Generic, Self, TypeVar, dataclass_transform, overload

from polymargin.documentation import with_shared_documentation
from polymargin.models.declared import declared_fields

Class = TypeVar("Class", bound=type)
Content = TypeVar("Content")
FITTED_PARTS = ("model_", "outcome_", "decision_data_", "calibration_data_")
"""What a fit leaves: the model, how the fit ended, and what the decision and the calibration were fitted to, if
anything."""


@dataclass_transform(kw_only_default=True)
def estimator(cls: Class) -> Class:
    """Make the annotated fields of a class its parameters, by keyword alone, and fill in shared documentation.

    scikit-learn reads the signature of the constructor, which has the parameters of the base class too.
    """
    made: Any = dataclass(eq=False, repr=False, kw_only=True)(cls)
    made.__init__ = _naming_the_class(made.__init__, own=tuple(vars(cls).get("__annotations__", ())))
    documented: Class = with_shared_documentation(made)
    return documented


def _naming_the_class(init: Callable[..., None], own: tuple[str, ...]) -> Callable[..., None]:
    """Return a constructor whose errors name the class that was called, and not the one that has the constructor.

    Its signature has a class's own parameters before those that all have.
    """
    signature = inspect.signature(init)
    parameters = dict(signature.parameters)
    order = dict.fromkeys(["self", "C", *(name for name in own if name in parameters), *parameters])
    signature = signature.replace(parameters=[parameters[name] for name in order])

    @wraps(init)
    def constructor(self: Any, *args: Any, **options: Any) -> None:
        try:
            init(self, *args, **options)
        except TypeError:
            try:
                signature.bind(self, *args, **options)
            except TypeError as error:
                advice = "; for probabilities use OneVsOneSVC(decision='coupling'), or another's calibration='sigmoid'"
                message = f"{type(self).__name__}(): {error}"
                raise TypeError(message + advice if "probability" in options else message) from None
            raise

    constructor.__signature__ = signature  # type: ignore[attr-defined]
    return constructor


class FittedPart(Generic[Content]):
    """What a fit puts into the estimator: absent before."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, estimator: None, owner: type) -> Self: ...
    @overload
    def __get__(self, estimator: object, owner: type) -> Content: ...
    def __get__(self, estimator: object | None, owner: type) -> Self | Content:
        """Say that it is absent: what is there is found before this is asked."""
        if estimator is None:
            return self
        raise AttributeError(f"{type(estimator).__name__!r} object has no attribute {self._name!r}")


class Fitted(Generic[Content]):
    """A fitted attribute that stands in the model, the outcome or the data of the decision under the same name.

    These are frozen: to set the attribute is to replace the value that has it by another, which is checked before it is
    used.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, estimator: None, owner: type) -> Self: ...
    @overload
    def __get__(self, estimator: object, owner: type) -> Content: ...
    def __get__(self, estimator: object | None, owner: type) -> Self | Content:
        """Return the attribute."""
        if estimator is None:
            return self
        state = vars(estimator)
        for part in FITTED_PARTS:
            if part in state and (of := declared_fields(type(state[part])).get(self._name)) is not None:
                content: Content | None = getattr(state[part], of.field)
                if content is not None:
                    return content
        raise AttributeError(f"{type(estimator).__name__!r} object has no attribute {self._name!r}")

    def __set__(self, estimator: object, content: Content) -> None:
        """Replace the value that has the attribute."""
        state = vars(estimator)
        for part in FITTED_PARTS:
            if part in state and (of := declared_fields(type(state[part])).get(self._name)) is not None:
                state[part] = replace(state[part], **{of.field: content})
                return
        raise AttributeError(f"{self._name} is set by fit")
