"""Comparisons that go by costs between classes."""

import numpy as np
import pytest
from reference.data import overlapping, random_classes
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from polymargin import Comparison, OneVsOneSVC, WestonWatkinsSVC, compare
from polymargin.comparison.report import python_call
from polymargin.comparison.statistics import SIGN_FLIPS, mcnemar, sign_flips
from polymargin.costs import make_cost_scorer, mean_cost, ordinal_costs

GRID = {"C": [0.1, 4.0], "gamma": [0.1]}
MACHINES = ["one-against-one", "DAG", "Weston-Watkins"]


def test_folds_are_measured_by_costs():
    X, y = random_classes(4, n=120, seed=2)
    costs = ordinal_costs(4)
    comparison = compare(X, y, machines=MACHINES, grid=GRID, cv=4, scoring=make_cost_scorer(costs))
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    for row, machine in zip(
        comparison.table, (OneVsOneSVC(), OneVsOneSVC(decision="dag"), WestonWatkinsSVC()), strict=True
    ):
        search = GridSearchCV(machine, GRID, cv=folds, scoring=make_cost_scorer(costs)).fit(X, y)
        assert row["rate"] == pytest.approx(1 + search.best_score_ / 3)
        assert row["validation_rate"] == pytest.approx(row["rate"])
    assert "mean cost / 3" in comparison.to_markdown()
    assert "make_cost_scorer([[0.0, 1.0" in python_call(comparison)
    again = Comparison.from_json(comparison.to_json())
    assert again.settings["scoring"] == {"costs": costs.tolist()}


def test_a_test_set_is_measured_by_costs():
    X, y = overlapping(n=600, n_classes=3)
    costs = np.array([[0.0, 1.0, 10.0], [1.0, 0.0, 10.0], [1.0, 1.0, 0.0]])
    machines = {"plain": WestonWatkinsSVC(gamma=0.02), "costly": WestonWatkinsSVC(gamma=0.02, costs=costs)}
    comparison = compare(
        X[:300], y[:300], X[300:], y[300:], machines=machines, grid={"C": [1.0]}, scoring=make_cost_scorer(costs)
    )
    for row in comparison.table:
        fitted = machines[row["machine"]].fit(X[:300], y[:300])
        assert row["rate"] == pytest.approx(1 - mean_cost(y[300:], fitted.predict(X[300:]), costs) / 10)
    assert comparison.significance.test == SIGN_FLIPS
    assert comparison.verdict[0].startswith("plain is worse than costly")


def test_without_costs_nothing_is_another():
    X, y = random_classes(3, n=60, seed=3)
    plain, named = (compare(X, y, machines=["DAG"], grid=GRID, cv=3, scoring=scoring) for scoring in (None, "accuracy"))
    assert plain.table[0]["rate"] == named.table[0]["rate"]
    assert plain.settings["scoring"] is None


def test_flipped_signs():
    rng = np.random.default_rng(0)
    few = rng.normal(size=(2, 8))
    d = few[0] - few[1]
    sums = np.array([np.abs(np.sum(d * (1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)), axis=1))])
    assert sign_flips(*few) == pytest.approx(np.mean(sums >= abs(d.sum()) * (1 - 1e-12)))
    right = rng.random((2, 4000)) < np.array([[0.8], [0.78]])
    assert sign_flips(*right.astype(float)) == pytest.approx(mcnemar(*right), abs=0.02)
    assert sign_flips([1.0, 2.0], [1.0, 2.0]) == 1.0


@pytest.mark.parametrize(
    ("scoring", "words"),
    [
        ("f1", "scoring must be None, 'accuracy'"),
        (make_cost_scorer(ordinal_costs(4)), "3 x 3"),
        (make_cost_scorer(ordinal_costs(3), classes=["a", "b", "c"]), "has costs of the classes"),
    ],
)
def test_what_is_refused(scoring, words):
    X, y = random_classes(3, n=60, seed=3)
    with pytest.raises(ValueError, match=words):
        compare(X, y, machines=["DAG"], grid=GRID, cv=3, scoring=scoring)


def test_a_test_set_has_no_class_without_costs():
    X, y = random_classes(3, n=60, seed=3)
    with pytest.raises(ValueError, match="there is no cost of it"):
        compare(X, y, X, y + 1, machines=["DAG"], grid=GRID, scoring=make_cost_scorer(ordinal_costs(3)))
