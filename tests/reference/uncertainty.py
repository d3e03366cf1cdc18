"""US_MSVM of Wang & Huang, section 4, a step at a time and from any source of pair machines."""

import math

import numpy as np

from reference.composition import pairs


def choose(first, answers, owner, k, most, min_distance, weight=None):
    """Return the pairs in the order chosen, the decision matrix and the least distances.

    ``answers(i, j)`` tells for every probe whether the machine of that pair calls it positive; ``owner`` is the class
    of the probes.
    """
    weight = np.ones(len(owner)) if weight is None else weight
    trained, matrix, distances = [], [], []
    pair = tuple(int(c) for c in first)
    while True:
        trained.append(pair)
        positive = answers(*pair)
        matrix.append([np.average(positive[owner == c], weights=weight[owner == c]) for c in range(k)])
        left = [candidate for candidate in pairs(k) if candidate not in trained]
        apart = [math.sqrt(math.fsum((row[i] - row[j]) ** 2 for row in matrix)) for i, j in left]
        distances.append(min(apart, default=math.inf))
        if len(trained) == most or not left or distances[-1] > min_distance:
            return trained, np.array(matrix), np.array(distances)
        pair = next(p for p, d in zip(left, apart, strict=True) if d <= distances[-1] + 1e-9)  # a tie: the first


def nearest(answers, matrix):
    """Return the class of the column nearest to each row of answers; of several the first."""
    distance = np.array([[np.linalg.norm(row - column) for column in matrix.T] for row in answers.astype(float)])
    return np.array([np.flatnonzero(row <= row.min() + 1e-9)[0] for row in distance])
