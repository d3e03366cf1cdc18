"""Rates that the search counts by itself."""

import numpy as np
import pytest
from reference.data import iris, overlapping
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import CrammerSingerSVC, OneVsOneSVC
from polymargin.formulations import Pairs
from polymargin.selection import KernelSearchCV
from polymargin.selection.rate import RateScorer, last_step, rate

GRID = {"C": [8.0, 0.5, 64.0], "gamma": [0.02, 0.5]}
FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)


def test_predictions_in_a_column_are_counted_row_by_row():
    assert rate(np.array([[0], [1], [2]]), np.array([0, 1, 1])) == 2 / 3


def test_decisions_on_the_same_fit_are_measured_at_once(monkeypatch):
    X, y = overlapping(n=200)
    decisions = ["votes", "dag", "adag"]
    scoring = {decision: RateScorer(decision) for decision in decisions}
    together = KernelSearchCV(OneVsOneSVC(), GRID, cv=FOLDS, scoring=scoring, refit=False).fit(X, y)
    monkeypatch.setattr(Pairs, "is_family", False)
    apart = KernelSearchCV(OneVsOneSVC(), GRID, cv=FOLDS, scoring=scoring, refit=False).fit(X, y)
    rates = []
    for decision in decisions:
        alone = KernelSearchCV(OneVsOneSVC(decision=decision), GRID, cv=FOLDS, refit=False).fit(X, y)
        rates.append([alone.cv_results_[f"split{fold}_test_score"] for fold in range(4)])
        for search in (together, apart):
            found = [search.cv_results_[f"split{fold}_test_{decision}"] for fold in range(4)]
            np.testing.assert_array_equal(found, rates[-1])
    assert not np.array_equal(rates[0], rates[1])  # the decisions do differ here


@pytest.mark.parametrize("machine", [OneVsOneSVC(decision="dag"), make_pipeline(StandardScaler(), OneVsOneSVC())])
def test_the_rate_by_a_decision_leaves_the_machine_as_it_was(machine):
    X, y = overlapping(n=200)
    machine.fit(X, y)
    before = repr(machine), machine.predict(X)
    other = clone(machine)
    last_step(other).decision = "adag"
    assert RateScorer("adag")(machine, X, y) == other.fit(X, y).score(X, y)
    assert repr(machine) == before[0]
    np.testing.assert_array_equal(machine.predict(X), before[1])


def test_a_fold_without_test_rows_and_a_prediction_that_fails_have_the_error_score(monkeypatch):
    X, y = iris()
    empty = [(np.arange(150), np.array([], dtype=int)), (np.arange(150), np.arange(0, 150, 5))]
    with pytest.warns(UserWarning, match="Scoring failed|non-finite"):
        search = KernelSearchCV(OneVsOneSVC(), {"C": [1.0]}, cv=empty, refit=False).fit(X, y)
    assert np.isnan(search.cv_results_["split0_test_score"][0])
    assert search.cv_results_["split1_test_score"][0] > 0.9

    def refuse(machine, X):
        raise RuntimeError("no prediction today")

    monkeypatch.setattr(CrammerSingerSVC, "predict", refuse)
    with pytest.warns(UserWarning, match="no prediction today"):
        search = KernelSearchCV(CrammerSingerSVC(), {"C": [1.0]}, cv=3, refit=False).fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"][0])
