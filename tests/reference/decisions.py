"""From pairwise decision values to a class, one row at a time.

A row holds the values of the pairs (0, 1), (0, 2), ..., (1, 2), ...; positive means the first class of
the pair, anything else the second.
"""

import numpy as np

from reference.composition import pairs


def _beats(row, k):
    """Return ``winner(i, j)`` for the pairs of one row."""
    value = dict(zip(pairs(k), row, strict=True))

    def winner(i, j):
        first, second = min(i, j), max(i, j)
        return first if value[first, second] > 0 else second

    return winner


def votes(row, k):
    """Let every pair vote; of the classes with most votes the smallest index wins."""
    winner = _beats(row, k)
    count = [0] * k
    for i, j in pairs(k):
        count[winner(i, j)] += 1
    return count.index(max(count))


def dag(row, k):
    """Keep a list of classes; first plays last, the loser leaves, until one is left."""
    winner = _beats(row, k)
    left = list(range(k))
    while len(left) > 1:
        first, last = left[0], left[-1]
        left.remove(last if winner(first, last) == first else first)
    return left[0]


def adag(row, k):
    """Play rounds: first against last, second against second-last, ...; a lone middle class goes through."""
    winner = _beats(row, k)
    left = list(range(k))
    while len(left) > 1:
        following = [winner(left[p], left[-1 - p]) for p in range(len(left) // 2)]
        if len(left) % 2:
            following.append(left[len(left) // 2])
        left = following
    return left[0]


DECISIONS = {"votes": votes, "dag": dag, "adag": adag}


def decide(kind, values, k):
    """Apply one of ``DECISIONS`` to every row of ``values``."""
    return np.array([DECISIONS[kind](row, k) for row in values])


def vote_counts(values, k):
    """Return the votes (n, k) that every class gets."""
    counts = np.zeros((len(values), k), dtype=int)
    for n, row in enumerate(values):
        winner = _beats(row, k)
        for i, j in pairs(k):
            counts[n, winner(i, j)] += 1
    return counts
