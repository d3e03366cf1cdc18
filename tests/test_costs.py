"""What makes costs between classes, and what measures by them."""

import doctest
from pathlib import Path

import numpy as np
import pytest
from reference.data import iris
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from polymargin.costs import (
    cheapest_classes,
    checked_costs,
    make_cost_scorer,
    mean_cost,
    ordinal_costs,
    taxonomy_costs,
)

PATHS = ["a.x.1", "a.x.2", "a.y", "b"]
WAYS = np.array([[0, 2, 3, 4], [2, 0, 3, 4], [3, 3, 0, 3], [4, 4, 3, 0]])


def test_ways_through_a_tree_are_counted():
    np.testing.assert_array_equal(taxonomy_costs(PATHS, normalise=None), WAYS)
    np.testing.assert_array_equal(taxonomy_costs([path.split(".") for path in PATHS], normalise=None), WAYS)
    np.testing.assert_array_equal(
        taxonomy_costs(np.array([path.replace(".", "/") for path in PATHS]), separator="/", normalise=None), WAYS
    )


def test_a_tree_and_its_paths_are_the_same():
    parents = {"a.x": "a", "a.x.1": "a.x", "a.x.2": "a.x", "a.y": "a", "a": None, "b": None}
    np.testing.assert_array_equal(taxonomy_costs(parents, normalise=None), WAYS)
    rooted = parents | {"a": "root", "b": "root", "root": None}
    np.testing.assert_array_equal(taxonomy_costs(rooted, normalise=None), WAYS)
    np.testing.assert_array_equal(taxonomy_costs(parents, classes=["b", "a.y"], normalise=None), [[0, 3], [3, 0]])


def test_a_class_may_be_within_the_tree():
    np.testing.assert_array_equal(
        taxonomy_costs(["talk.religion", "talk.religion.misc"], normalise=None), [[0, 1], [1, 0]]
    )


def test_deep_edges_may_be_short():
    costs = taxonomy_costs(PATHS, decay=0.5, normalise=None)
    assert costs[0, 1] == 2 * 0.25
    assert costs[0, 2] == 0.5 + 0.25 + 0.5
    assert costs[0, 3] == 1 + 0.5 + 0.25 + 1


@pytest.mark.parametrize(
    "make", [lambda n: taxonomy_costs(PATHS, normalise=n), lambda n: ordinal_costs(5, normalise=n)]
)
def test_costs_have_a_unit(make):
    assert make("max").max() == 1.0
    costs = make("mean")
    assert costs.sum() / (len(costs) * (len(costs) - 1)) == pytest.approx(1.0)
    np.testing.assert_allclose(make("max") * make(None).max(), make(None))


def test_distances_of_ranks():
    np.testing.assert_array_equal(ordinal_costs(3, power=2), [[0, 1, 4], [1, 0, 1], [4, 1, 0]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: taxonomy_costs(["a.b"]), "two classes"),
        (lambda: taxonomy_costs(["a.b", "a.c", "a.b"]), "path of its own"),
        (lambda: taxonomy_costs(["a..b", "c"]), "a path must be like 'a.b.c'"),
        (lambda: taxonomy_costs([(), ("a",)]), "a path must be like"),
        (lambda: taxonomy_costs({"a": "b", "b": "a"}, classes=["a", "b"]), "circle"),
        (lambda: taxonomy_costs({"a": None}, classes=["a", "q"]), "no node 'q'"),
        (lambda: taxonomy_costs(["a", "b"], classes=["a", "b"]), "mapping"),
        (lambda: taxonomy_costs(["a", "b"], decay=0.0), "decay must be above 0"),
        (lambda: taxonomy_costs(["a", "b"], normalise="sum"), "'max', 'mean' or None"),
        (lambda: ordinal_costs(1), "at least 2"),
        (lambda: ordinal_costs(3, power=-1), "above 0"),
        (lambda: checked_costs([[0, 1], [1, 2]]), "0 on the diagonal.*2.0 in row 1, column 1"),
        (lambda: checked_costs([[0, -1], [1, 0]]), "at least 0, got -1.0 in row 0, column 1"),
        (lambda: checked_costs([[0, 1]]), "square"),
        (lambda: checked_costs(ordinal_costs(3), 2), "2 x 2, got \\(3, 3\\)"),
        (lambda: mean_cost([0, 1], [0], ordinal_costs(2)), "as many entries"),
        (lambda: mean_cost([0, 1], [0, 1], ordinal_costs(3)), "give classes="),
        (lambda: mean_cost([0, 1], [0, 5], ordinal_costs(2), classes=[0, 1]), "y_pred has .*5"),
        (lambda: cheapest_classes([0.5, 0.5], ordinal_costs(2)), "a row for each example"),
        (lambda: cheapest_classes([[0.5, 0.5]], ordinal_costs(2), classes=[1, 2, 3]), "classes must be 2"),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_mean_cost_is_a_plain_sum():
    rng = np.random.default_rng(0)
    names = np.array(["b", "a", "c"])  # not sorted: the order of the costs
    costs = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0.0]])
    true, called, weight = rng.choice(names, 50), rng.choice(names, 50), rng.uniform(size=50)
    at = {name: place for place, name in enumerate(names)}
    each = np.array([costs[at[t], at[c]] for t, c in zip(true, called, strict=True)])
    assert mean_cost(true, called, costs, classes=names) == pytest.approx(each.mean())
    assert mean_cost(true, called, costs, classes=names, sample_weight=weight) == pytest.approx(
        each @ weight / weight.sum()
    )
    assert mean_cost(true, called, 1 - np.eye(3)) == pytest.approx(np.mean(true != called))


def test_a_scorer_for_scikit_learn():
    X, y = iris()
    scorer = make_cost_scorer(ordinal_costs(3))
    machine = SVC().fit(X, y)
    assert scorer(machine, X, y) == -mean_cost(y, machine.predict(X), ordinal_costs(3))
    search = GridSearchCV(SVC(), {"C": [0.01, 1.0]}, scoring=scorer, cv=3).fit(X, y)
    assert search.best_params_ == {"C": 1.0}
    named = make_cost_scorer(ordinal_costs(3), classes=[2, 1, 0])
    assert named(machine, X, y) == scorer(machine, X, y)


def test_the_cheapest_class_is_the_one_of_least_expected_cost():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4), size=30)
    costs = rng.uniform(0.1, 3.0, (4, 4)) * (1 - np.eye(4))
    expected = np.array([[sum(row[y] * costs[y, m] for y in range(4)) for m in range(4)] for row in p])
    np.testing.assert_array_equal(cheapest_classes(p, costs), expected.argmin(axis=1))
    np.testing.assert_array_equal(cheapest_classes(p, 1 - np.eye(4)), p.argmax(axis=1))


def test_the_examples_of_the_page_run():
    page = Path(__file__).resolve().parents[1] / "docs" / "costs.md"
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 10
    assert result.failed == 0
