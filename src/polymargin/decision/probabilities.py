"""From the scores of the classes to probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

Floats = NDArray[np.float64]


def softmax_probabilities(scores: Floats) -> Floats:
    """Return ``exp(s_m) / sum_u exp(s_u)`` of each row."""
    return _leading(softmax(scores, axis=1), scores)


def normalized_probabilities(scores: Floats) -> Floats:
    """Return ``1 / (1 + exp(-2 s_m))``, the probability of each class against the rest, scaled to sum to one."""
    odds = expit(2.0 * scores)
    total = odds.sum(axis=1, keepdims=True)
    # Where every class is all but impossible only the exponents are left.
    probabilities = np.where(total > 1e-200, odds / np.maximum(total, 1e-200), softmax(2.0 * scores, axis=1))
    return _leading(probabilities, scores)


def log_probabilities(probabilities: Floats) -> Floats:
    """Return the logarithms of probabilities: -inf, and no warning, where one is 0."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def _leading(probabilities: Floats, scores: Floats) -> Floats:
    """Let the class with the largest score lead where rounding has made its probability equal to another's."""
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    tied = probabilities.argmax(axis=1) != best
    probabilities[rows[tied], best[tied]] = np.nextafter(probabilities[tied].max(axis=1), 2.0)
    return probabilities
