"""What a formulation is solved on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from polymargin.support.label_sets import LabelSets
from polymargin.support.numeric import Floats, Ints, Matrix


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The examples that take part, sorted by class: example ``g`` of the core is row ``order[g]`` of ``X``.

    Where examples have several labels they are one group, not classes, and sorted so that equal sets are neighbours.
    """

    X: Matrix  # examples, or their kernel values
    order: Ints
    class_starts: Ints  # class c is [class_starts[c], class_starts[c + 1])
    cost_bounds: Floats  # C_i of each example, in this order
    weight: Floats  # the same without C: class weight times sample weight
    label_sets: LabelSets | None = None  # of each example, in this order; None if each has one class

    @property
    def n_examples(self) -> int:
        """The number of examples that take part."""
        return len(self.order)

    @property
    def n_groups(self) -> int:
        """The number of groups that the examples are sorted into: the classes, or one where they have several."""
        return len(self.class_starts) - 1

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return self.n_groups if self.label_sets is None else self.label_sets.n_labels

    @property
    def largest_cost_bound(self) -> float:
        """The largest C_i."""
        return float(self.cost_bounds.max())

    @property
    def labels(self) -> Ints:
        """The group of each example, its class, by its number."""
        return np.repeat(np.arange(self.n_groups), np.diff(self.class_starts))

    def class_of(self, examples: Ints) -> Ints:
        """Return the groups of some examples, by their numbers in the core."""
        return np.searchsorted(self.class_starts, examples, side="right") - 1

    def place_of(self, rows: Ints) -> Ints:
        """Return the core's numbers of some rows of ``X``, -1 for those that take no part."""
        place = np.full(int(max(self.order.max(), rows.max(initial=0))) + 1, -1)
        place[self.order] = np.arange(len(self.order))
        return place[rows]


def training_set(
    X: Matrix,
    codes: Ints,
    classes: NDArray[Any],
    *,
    C: float,
    class_weight: Any = None,
    sample_weight: Floats | None = None,
) -> TrainingSet:
    """Return the examples in the order of the core, with ``C_i = C * class_weight * sample_weight``.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        Examples, or their kernel values.
    codes : array of shape (n_samples,)
        Their classes, as indices into ``classes``.
    classes : array of shape (k,)
        The classes.
    C : float
        The cost.
    class_weight : dict, "balanced" or None
        Factors for each class.
    sample_weight : array of shape (n_samples,), optional
        Factors for each example, none of them negative; those with 0 take no part.

    Returns
    -------
    TrainingSet
        What takes part.
    """
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {classes.tolist()[0]!r}; a classifier needs at least two")
    factors = _class_factors(codes, classes, class_weight, sample_weight)
    total = factors[codes] * (1.0 if sample_weight is None else sample_weight)
    order = np.argsort(_small(codes, len(classes)), kind="stable")
    if sample_weight is not None:
        order = order[sample_weight[order] > 0]
    starts = np.searchsorted(codes[order], np.arange(len(classes) + 1))
    weight = np.ascontiguousarray(total[order])
    return TrainingSet(X, order.astype(np.int64), starts.astype(np.int64), float(C) * weight, weight)


def label_training_set(
    X: Matrix, label_sets: LabelSets, *, C: float, class_weight: Any = None, sample_weight: Floats | None = None
) -> TrainingSet:
    """Return examples with several labels in the order of the core, with ``C_i = C * sample_weight``.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        Examples, or their kernel values.
    label_sets : LabelSets
        Their labels.
    C : float
        The cost.
    class_weight : None
        Nothing else has a meaning: an example has no one class.
    sample_weight : array of shape (n_samples,), optional
        Factors for each example, none of them negative; those with 0 take no part.

    Returns
    -------
    TrainingSet
        What takes part.
    """
    if class_weight is not None:
        raise ValueError(
            f"class_weight={class_weight!r} has no meaning where an example may have several labels: use sample_weight"
        )
    weight = np.ones(len(label_sets)) if sample_weight is None else sample_weight
    order = label_sets.sorted()
    order = order[weight[order] > 0].astype(np.int64)
    own, starts = np.ascontiguousarray(weight[order]), np.array([0, len(order)], dtype=np.int64)
    return TrainingSet(X, order, starts, float(C) * own, own, label_sets.of(order))


def _small(codes: Ints, n_classes: int) -> NDArray[Any]:
    """Return numbers of classes in the smallest type that holds them: NumPy sorts two bytes or fewer by counting."""
    return codes.astype(np.min_scalar_type(n_classes - 1))


def _class_factors(
    codes: Ints, classes: NDArray[Any], class_weight: Any, sample_weight: Floats | None
) -> NDArray[np.float64]:
    """Return the weight of each class."""
    counts = np.bincount(codes, weights=sample_weight, minlength=len(classes))
    if np.any(counts <= 0):
        empty = classes[np.argmin(counts)]
        raise ValueError(
            f"class {empty!r} has no example with positive sample_weight; leave its rows out or give them weight"
        )
    if class_weight is None:
        return np.ones(len(classes))
    factors: Floats
    if isinstance(class_weight, str):  # "balanced": by weight, so that weight 2 equals two rows
        factors = counts.sum() / (len(classes) * counts)
    else:
        factors = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    if np.any(~(factors > 0)) or not np.all(np.isfinite(factors)):
        raise ValueError(f"class_weight must be positive and finite for every class, got {class_weight}")
    return factors


def checked_weights(sample_weight: Any, X: Matrix) -> Floats | None:
    """Return the weights as float64, None if there are none; raise ValueError if one is negative or all are zero."""
    if sample_weight is None:
        return None
    weight: Floats = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.any(weight < 0):
        row = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight must not be negative, but row {row} has {weight[row]:g}")
    if not np.any(weight > 0):
        raise ValueError("sample_weight is zero for every row; at least one example of each class needs weight")
    return weight
