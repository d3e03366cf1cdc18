"""An order of problems of which every beginning is a fair sample of them all."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray


def spread(problems: Sequence[Any], parts: Callable[[Any], tuple]) -> list[Any]:
    """Take next the problem whose parts, and pairs of parts, have had the smallest shares so far.

    A data set is a part, so is a cost, and that data set at that cost a pair. Its share is how many of the problems
    that have it were taken. Ties go by one and the same permutation, so that no part leads because it was listed first.
    """
    if not problems:
        return []
    shuffled = [problems[i] for i in np.random.default_rng(0).permutation(len(problems))]
    columns = [numbered(part) for part in sets_of_parts([parts(problem) for problem in shuffled])]
    shares = np.zeros(len(shuffled))
    order = []
    for _ in shuffled:
        order.append(chosen := int(np.argmin(shares)))
        shares[chosen] = np.inf
        for column, totals in columns:
            shares[column == column[chosen]] += 1 / totals[column[chosen]]
    return [shuffled[i] for i in order]


def sets_of_parts(rows: list[tuple]) -> list[list[tuple]]:
    """Every part of every row, and every pair of parts."""
    places = range(len(rows[0]))
    chosen = [*((i,) for i in places), *combinations(places, 2)]
    return [[tuple(row[i] for i in each) for row in rows] for each in chosen]


def numbered(values: list[tuple]) -> tuple[NDArray, NDArray]:
    """Each value as a number, and how often each number occurs."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    codes = np.array([numbers[value] for value in values])
    return codes, np.bincount(codes)
