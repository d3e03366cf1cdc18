"""Which differences between rates mean something: tests of pairs of machines, corrected for their number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

WILCOXON = "Wilcoxon signed-rank"
MCNEMAR = "McNemar"
SIGN_FLIPS = "sign-flip"
_FEW = 13  # 2^13 choices of signs are enumerated in no time


@dataclass(frozen=True)
class PairTest:
    """The test of two machines: the difference of their rates, and how often chance alone would make one as large."""

    first: str
    second: str
    difference: float
    p_value: float
    corrected: float

    def between(self, one: str, other: str) -> bool:
        """Whether these are the two machines."""
        return {self.first, self.second} == {one, other}

    @property
    def better(self) -> str:
        """The machine with the higher rate."""
        return self.first if self.difference >= 0 else self.second

    @property
    def worse(self) -> str:
        """The machine with the lower rate."""
        return self.second if self.difference >= 0 else self.first


@dataclass(frozen=True)
class Significance:
    """The tests of all pairs of machines; ``count`` is the number of folds or of test examples they are about."""

    test: str
    level: float
    count: int
    pairs: tuple[PairTest, ...]

    def significant(self) -> list[PairTest]:
        """Return the tests whose corrected p-value is at most the level."""
        return [pair for pair in self.pairs if pair.corrected <= self.level]

    def of(self, one: str, other: str) -> PairTest | None:
        """Return the test of two machines."""
        return next((pair for pair in self.pairs if pair.between(one, other)), None)

    def least_p_value(self) -> float:
        """Return the smallest corrected p-value that any data could give."""
        # Every fold, or every test example, speaks for the same machine.
        return min(1.0, 2.0 ** (1 - self.count) * max(1, len(self.pairs)))

    def fewest(self) -> int:
        """Return from how many folds or test examples on a difference between so many machines can be significant."""
        return 1 + math.ceil(math.log2(max(1, len(self.pairs)) / self.level))


def signed_rank(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test on paired rates; 1 where all are equal.

    Pairs without a difference are dropped, equal differences share their rank. Rates are fractions, so equal
    differences may differ in their last digit: they are rounded before they are ranked. Few pairs get the exact value.
    """
    from scipy.stats import permutation_test, rankdata, wilcoxon

    differences = np.round(np.asarray(first, dtype=float) - np.asarray(second, dtype=float), 12)
    differences = differences[differences != 0]
    if len(differences) < 2:  # one difference has either sign equally often
        return 1.0
    if len(differences) > _FEW:
        return float(wilcoxon(differences).pvalue)
    # wilcoxon() is exact with ties only in newer versions of SciPy.
    signed = np.sign(differences) * rankdata(np.abs(differences))
    return float(permutation_test((signed,), np.sum, permutation_type="samples", n_resamples=np.inf).pvalue)


def mcnemar(first_right: ArrayLike, second_right: ArrayLike) -> float:
    r"""Return the two-sided p-value of McNemar's test on the same test examples.

    Only examples that one machine has right and the other wrong count. If the machines are equally good, each of the
    n falls to either with probability 1/2: with the smaller count c,

    .. math:: p = \min(1, 2 \Pr[\mathrm{Bin}(n, 1/2) \le c]),

    exactly, for few and for many.
    """
    from scipy.stats import binomtest

    a, b = np.asarray(first_right, dtype=bool), np.asarray(second_right, dtype=bool)
    only_first, only_second = int(np.sum(a & ~b)), int(np.sum(b & ~a))
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)


def sign_flips(first: ArrayLike, second: ArrayLike) -> float:
    r"""Return the two-sided p-value of the test of paired values that flips the signs of their differences.

    If the machines are equally good, each difference d could as well be -d. The sum of all, of which the signs are
    drawn, has the mean 0 and the variance :math:`\sum d^2`; that of few is enumerated, that of many normal.
    """
    from scipy.stats import norm, permutation_test

    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    differences = differences[differences != 0]
    if len(differences) < 2:  # one difference has either sign equally often
        return 1.0
    if len(differences) > _FEW:
        return float(2.0 * norm.sf(abs(differences.sum()) / math.sqrt(float(differences @ differences))))
    return float(permutation_test((differences,), np.sum, permutation_type="samples", n_resamples=np.inf).pvalue)


def holm(p_values: Sequence[float]) -> NDArray[np.float64]:
    """Return p-values corrected for their number by Holm's step-down method.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none becomes smaller than one before it.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return corrected


def all_pairs(
    rates: Mapping[str, float],
    fold_rates: Mapping[str, Sequence[float]],
    each: Mapping[str, NDArray[Any]] | None,
    level: float,
) -> Significance:
    """Test all pairs: on what ``each`` test example adds to a rate if given, otherwise on the rates of the folds."""
    pairs = list(combinations(rates, 2))
    if each is not None:
        values = next(iter(each.values()), np.zeros(0, dtype=bool))
        test, name = (mcnemar, MCNEMAR) if values.dtype == bool else (sign_flips, SIGN_FLIPS)
        p_values, count = [test(each[a], each[b]) for a, b in pairs], len(values)
    else:
        p_values = [signed_rank(fold_rates[a], fold_rates[b]) for a, b in pairs]
        name, count = WILCOXON, len(next(iter(fold_rates.values()), ()))
    corrected = holm(p_values)
    tests = [
        PairTest(a, b, float(rates[a] - rates[b]), p, float(q))
        for (a, b), p, q in zip(pairs, p_values, corrected, strict=True)
    ]
    return Significance(name, level, count, tuple(tests))


def verdict(significance: Significance) -> list[str]:
    """Say in sentences which differences mean something and which do not."""
    total, found = len(significance.pairs), significance.significant()
    if total == 0:
        return ["There is nothing to compare: fewer than two machines were measured."]
    unit = "folds" if significance.test == WILCOXON else "test examples"
    method = f"{significance.test} test on {significance.count} {unit}"
    if total > 1:
        method += f", Holm's correction for {total} pairs"
    method += f", level {significance.level:g}"
    least = significance.least_p_value()
    if not found:
        said = [f"No difference between these rates is significant ({method}): which machine leads may be chance."]
        if least > significance.level:
            said.append(
                f"With {significance.count} {unit} and {total} {_plural('pair', total)} none could be: the smallest "
                f"{'corrected ' if total > 1 else ''}p-value possible is {least:.2g}. To tell machines apart takes at "
                f"least {significance.fewest()} {unit}{', or fewer machines' if total > 1 else ''}."
            )
        return said
    losers = list(dict.fromkeys(pair.worse for pair in found))
    listed = "; ".join(_loss(loser, [pair for pair in found if pair.worse == loser]) for loser in losers)
    said = [f"{listed}.", f"These differences are significant ({method})."]
    if len(found) < total:
        said.append(f"The other {total - len(found)} of {total} differences mean nothing: they may be chance.")
    return said


def _loss(loser: str, pairs: list[PairTest]) -> str:
    p_values = [pair.corrected for pair in pairs]
    return f"{loser} is worse than {_and([pair.better for pair in pairs])} ({shown_p(max(p_values))})"


def shown_p(p_value: float) -> str:
    """Return a p-value as reports have it: how small a very small one is means nothing."""
    return f"p = {p_value:.2g}" if p_value >= 1e-4 else "p < 0.0001"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def against_best(significance: Significance, rates: Mapping[str, float]) -> dict[str, str]:
    """Return for each machine how it compares with the one that has the highest rate."""
    if not rates:
        return {}
    best = max(rates, key=lambda name: rates[name])
    said: dict[str, str] = {}
    for name, rate in rates.items():
        test = significance.of(name, best)
        if np.isclose(rate, rates[best], rtol=0, atol=1e-12):
            said[name] = "best"
        elif test is not None and test.corrected <= significance.level:
            said[name] = f"worse, {shown_p(test.corrected)}"
        else:
            said[name] = "no difference"
    return said


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def significance_from(plain: Mapping[str, Any]) -> Significance:
    """Return what :func:`dataclasses.asdict` made of a Significance."""
    pairs = tuple(PairTest(**pair) for pair in plain["pairs"])
    return Significance(plain["test"], plain["level"], plain["count"], pairs)
