"""The tests between machines: against SciPy, enumeration and textbook figures."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from polymargin.comparison.statistics import (
    MCNEMAR,
    WILCOXON,
    against_best,
    all_pairs,
    holm,
    mcnemar,
    shown_p,
    signed_rank,
    verdict,
)


def enumerated_signed_rank(differences):
    """Wilcoxon's p-value by all 2^n choices of signs, zeros dropped, ties with mean ranks."""
    differences = differences[differences != 0]
    ranks = stats.rankdata(np.abs(differences))
    centre = ranks.sum() / 2
    seen = abs(ranks[differences > 0].sum() - centre)
    sums = [ranks @ signs for signs in itertools.product([0, 1], repeat=len(ranks))]
    return np.mean([abs(total - centre) >= seen - 1e-9 for total in sums])


@given(st.lists(st.integers(0, 15), min_size=10, max_size=10), st.lists(st.integers(0, 15), min_size=10, max_size=10))
def test_signed_rank_is_that_of_all_choices_of_signs(first, second):
    a, b = np.array(first) / 15, np.array(second) / 15
    assert signed_rank(a, b) == pytest.approx(enumerated_signed_rank(np.array(first) - np.array(second)), abs=1e-9)


def test_signed_rank_without_ties_is_scipys():
    rng = np.random.default_rng(0)
    a, b = rng.random(12), rng.random(12)
    assert signed_rank(a, b) == pytest.approx(stats.wilcoxon(a, b).pvalue)
    assert signed_rank(a, b) == signed_rank(b, a)


def test_equal_differences_tie_in_spite_of_rounding():
    a = np.array([0.1 + 0.2, 0.7, 0.6, 0.5, 0.9, 0.8])
    b = a - 0.1
    assert len(set(a - b)) > 1
    assert signed_rank(a, b) == pytest.approx(2 / 2**6)


def outcomes(only_first, only_second, both=50):
    first = np.r_[np.ones(only_first + both), np.zeros(only_second)].astype(bool)
    second = np.r_[np.zeros(only_first), np.ones(both + only_second)].astype(bool)
    return first, second


@pytest.mark.parametrize(("only_first", "only_second"), [(1, 0), (5, 1), (3, 3), (12, 2), (40, 70), (300, 200)])
def test_mcnemar_is_the_binomial_sum(only_first, only_second):
    n, few = only_first + only_second, min(only_first, only_second)
    expected = min(1.0, 2 * stats.binom.cdf(few, n, 0.5))
    assert mcnemar(*outcomes(only_first, only_second)) == pytest.approx(expected)
    assert mcnemar(*outcomes(only_second, only_first)) == pytest.approx(expected)


def test_mcnemar_of_many_is_near_the_chi_square_test():
    statistic = (abs(300 - 200) - 1) ** 2 / 500
    assert mcnemar(*outcomes(300, 200)) == pytest.approx(stats.chi2.sf(statistic, 1), rel=0.1)


def test_mcnemar_without_a_difference():
    assert mcnemar(*outcomes(0, 0)) == 1.0


def test_holm_by_hand():
    # 0.01 x 4, then 0.02 x 3, then max(0.06, 0.03 x 2), then max(0.06, 0.04 x 1)
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.5]) == pytest.approx([0.5])
    assert len(holm([])) == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values):
    level, corrected = 0.05, holm(p_values)
    rejected = set()
    for step, at in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[at] * (len(p_values) - step) > level:
            break
        rejected.add(at)
    assert set(np.flatnonzero(corrected <= level)) == rejected


FOLDS = {
    "a": np.linspace(0.90, 0.99, 10),
    "b": np.linspace(0.90, 0.99, 10) - 0.01 * np.arange(1, 11) / 10,
    "c": np.linspace(0.90, 0.99, 10) + np.tile([0.01, -0.01], 5),
}
RATES = {name: float(np.mean(folds)) for name, folds in FOLDS.items()}


def test_all_pairs_on_folds():
    found = all_pairs(RATES, FOLDS, None, 0.05)
    assert (found.test, found.count) == (WILCOXON, 10)
    assert [(pair.first, pair.second) for pair in found.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [pair.p_value for pair in found.pairs] == [signed_rank(FOLDS[p.first], FOLDS[p.second]) for p in found.pairs]
    assert [pair.corrected for pair in found.pairs] == pytest.approx(holm([pair.p_value for pair in found.pairs]))
    pair = found.of("b", "a")
    assert (pair.better, pair.worse) == ("a", "b")
    assert pair.difference == pytest.approx(RATES["a"] - RATES["b"])
    assert pair in found.significant()


def test_all_pairs_on_a_test_set():
    right = dict(zip("ab", outcomes(20, 2), strict=True))
    found = all_pairs({"a": 0.9, "b": 0.7}, {"a": [], "b": []}, right, 0.05)
    assert (found.test, found.count, found.pairs[0].p_value) == (MCNEMAR, 72, mcnemar(*right.values()))


def test_the_verdict_says_what_means_nothing():
    said = verdict(all_pairs(RATES, FOLDS, None, 0.05))
    assert said[0].startswith("b is worse than a (p = 0.0059)")
    assert said[-1] == "The other 2 of 3 differences mean nothing: they may be chance."
    same = verdict(all_pairs({"a": 0.9, "c": 0.9}, {"a": FOLDS["a"], "c": FOLDS["a"]}, None, 0.05))
    assert len(same) == 1
    assert same[0].startswith("No difference between these rates is significant")


def test_the_verdict_says_when_there_are_too_few_folds():
    said = verdict(all_pairs(RATES, {name: folds[:5] for name, folds in FOLDS.items()}, None, 0.05))
    assert "none could be: the smallest corrected p-value possible is 0.19" in said[1]
    assert said[1].endswith("or fewer machines.")
    two = verdict(all_pairs({"a": 0.9, "b": 0.9}, {"a": FOLDS["a"][:3], "b": FOLDS["b"][:3]}, None, 0.05))
    assert two[1].endswith("the smallest p-value possible is 0.25. To tell machines apart takes at least 6 folds.")
    assert "takes at least 7 folds" in said[1]
    for folds in (6, 7):
        found = all_pairs(RATES, {name: rates[:folds] for name, rates in FOLDS.items()}, None, 0.05)
        assert (found.least_p_value() <= 0.05) == (folds >= found.fewest())


def test_nothing_to_compare():
    assert verdict(all_pairs({"a": 0.9}, {"a": FOLDS["a"]}, None, 0.05))[0].startswith("There is nothing to compare")
    assert against_best(all_pairs({}, {}, None, 0.05), {}) == {}


def test_standing_against_the_best():
    standing = against_best(all_pairs(RATES, FOLDS, None, 0.05), RATES)
    assert standing == {"a": "best", "c": "best", "b": "worse, p = 0.0059"}
    assert against_best(all_pairs(RATES, FOLDS, None, 0.001), RATES)["b"] == "no difference"


def test_very_small_p_values_are_bounds():
    assert shown_p(0.0123) == "p = 0.012"
    assert shown_p(1e-50) == "p < 0.0001"
