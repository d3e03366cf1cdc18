"""When a fit ends: at the tolerance, at a limit, or never in silence."""

import re
import warnings

import numpy as np
import pytest
from reference.compare import audit, scores
from reference.composition import one_vs_one, one_vs_rest, pairs
from reference.data import iris, overlapping, separable
from reference.kernels import kernel_matrix
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from polymargin import (
    CrammerSingerSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)

MACHINES = [
    OneVsOneSVC,
    OneVsRestSVC,
    WestonWatkinsSVC,
    CrammerSingerSVC,
    UncertaintySVC,
    OutputCodeSVC,
    LinearProgramSVC,
]
LIMITS = {"max_iter": {"max_iter": 2}, "time_limit": {"time_limit": 1e-6}}


def numbers(text):
    """Return the numbers of a message."""
    return [float(n) for n in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", text)]


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_warns_with_the_gap_that_was_reached(Machine, limit):
    X, y = overlapping(n=1500)
    machine = Machine(C=100.0, **LIMITS[limit])
    with pytest.warns(ConvergenceWarning, match=limit) as caught:
        machine.fit(X, y)
    message = str(caught[0].message)
    assert "gap" in message
    quoted = numbers(message)
    gap = machine.duality_gap_
    assert any(n == pytest.approx(g, rel=0.06) for n in quoted for g in (gap, 100 * gap)), (message, gap)
    assert not machine.converged_
    assert gap > 1e-3


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("limit", LIMITS)
def test_a_stopped_fit_is_feasible_and_tells_the_truth(Machine, limit):
    X, y = overlapping(n=300)
    machine = Machine(C=100.0, tol=1e-8, **LIMITS[limit])
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    assert machine.dual_objective_ <= machine.primal_objective_
    checked = audit(machine, X, y)
    assert checked.infeasibility < 1e-9
    assert machine.dual_objective_ == pytest.approx(checked.dual, rel=1e-5, abs=1e-6)
    assert machine.primal_objective_ == pytest.approx(checked.primal, rel=1e-5)
    assert machine.predict(X).shape == y.shape
    assert np.isfinite(scores(machine, X)).all()


@pytest.mark.parametrize("Machine", MACHINES)
def test_reasons_to_stop_have_different_names(Machine):
    X, y = overlapping(n=300)
    reasons = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, limit in {"tol": {}, **LIMITS}.items():
            reasons[name] = Machine(C=100.0, **limit).fit(X, y).stop_reason_
    assert len(set(reasons.values())) == 3, reasons


@pytest.mark.parametrize("Machine", MACHINES)
def test_limits_that_are_not_reached_do_not_matter(Machine):
    X, y = iris()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        limited = Machine(max_iter=1_000_000, time_limit=600.0).fit(X, y)
        free = Machine().fit(X, y)
    assert limited.converged_
    assert limited.stop_reason_ == free.stop_reason_
    np.testing.assert_array_equal(limited.dual_coef_, free.dual_coef_)


@pytest.mark.parametrize("Machine", MACHINES)
def test_a_smaller_tolerance_gives_a_smaller_gap(Machine):
    X, y = overlapping(n=1200)  # up to 1,024 examples answers are made exact, whatever the tolerance
    exact = Machine(C=10.0, tol=1e-8).fit(X, y)
    loose = Machine(C=10.0, tol=0.5).fit(X, y)
    assert exact.duality_gap_ < 1e-6
    assert exact.duality_gap_ <= loose.duality_gap_ + 1e-12
    assert loose.dual_objective_ <= exact.dual_objective_ * (1 + 1e-6)
    if Machine is LinearProgramSVC:  # it ends at a vertex, whatever the tolerance
        assert loose.n_iter_ <= exact.n_iter_
    else:
        assert np.sum(loose.n_iter_) < np.sum(exact.n_iter_)


@pytest.mark.parametrize("Machine", [OneVsOneSVC, OneVsRestSVC])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_iris])
@pytest.mark.parametrize("C", [10.0, 1e4])
def test_linear_kernels_on_data_that_nobody_scaled_come_to_an_end(Machine, load, C):
    X, y = load(return_X_y=True)  # features up to 4,000; pairs of variables alone take millions of steps
    machine = (
        Machine(C=C, kernel="linear", solver="decomposition")
        if Machine is OneVsRestSVC
        else Machine(C, kernel="linear")
    )
    machine.set_params(max_iter=200_000).fit(X, y)
    assert machine.converged_
    assert machine.duality_gap_ <= 1e-3 * C * len(X)
    assert machine.score(X, y) > 0.9


@pytest.mark.parametrize("k", [2, 3, 5])
def test_hard_margin_one_vs_one_separates(k):
    X, y = separable(n=30 * k, n_classes=k)
    machine = OneVsOneSVC(C=np.inf, kernel="linear", tol=1e-4).fit(X, y)
    assert machine.converged_
    values = scores(machine, X)
    for column, (i, j) in enumerate(pairs(k)):
        assert values[y == i, column].min() >= 1 - 1e-3
        assert values[y == j, column].max() <= -1 + 1e-3
    best = one_vs_one(kernel_matrix(X, X, "linear"), y, np.full(len(y), np.inf))
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-4)
    assert machine.score(X, y) == 1.0


@pytest.mark.parametrize("k", [2, 3])
def test_hard_margin_one_vs_rest_separates(k):
    X, y = separable(n=30 * k, n_classes=k)
    machine = OneVsRestSVC(C=np.inf, kernel="linear", tol=1e-4).fit(X, y)
    assert machine.converged_
    values = scores(machine, X)
    for column, c in enumerate(range(k) if k > 2 else [1]):
        assert values[y == c, column].min() >= 1 - 1e-3
        assert values[y != c, column].max() <= -1 + 1e-3
    best = one_vs_rest(kernel_matrix(X, X, "linear"), y, np.full(len(y), np.inf))
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-4)


@pytest.mark.parametrize("Machine", MACHINES)
def test_hard_margin_of_inseparable_data_says_so(Machine):
    X, y = iris()
    X, y = np.vstack([X, X[:1]]), np.append(y, 2)  # one point, two labels
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises((ValueError, ConvergenceWarning), match=r"(?i)separa"):
            Machine(C=np.inf, time_limit=20.0).fit(X, y)
