"""The exact step on one example's coefficients against a generic quadratic program."""

import numpy as np
import piqp
import pytest

from polymargin import _core

LOSSES = ["weston-watkins", "crammer-singer"]
CORE = {"weston-watkins": _core.WestonWatkins(2.0), "crammer-singer": _core.CrammerSinger()}


def best_row(loss, gradient, curvature, label, cost_bound, row):
    """Return the minimum over the feasible set of ``g'd + curvature / 2 |d|^2`` by PIQP, d the change of the row."""
    k = len(row)
    C = 1e30 if np.isinf(cost_bound) else cost_bound
    low, high = np.full(k, -1e30), np.zeros(k)
    if loss == "weston-watkins":
        low, high = np.full(k, -C), np.zeros(k)
        low[label], high[label] = -1e30, 1e30
    else:
        high[label] = C
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-12
    # The root of the gap is how far a coordinate that only just meets its bound may be from it.
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-14
    solver.setup(
        P=curvature * np.eye(k),
        c=gradient - curvature * row,
        A=np.ones((1, k)),
        b=np.zeros(1),
        x_l=low,
        x_u=high,
    )
    assert solver.solve() == piqp.PIQP_SOLVED
    return np.asarray(solver.result.x)


def feasible_row(loss, k, label, cost_bound, rng):
    """Return a random row of the feasible set, some of its coefficients at their bounds."""
    C = 3.0 if np.isinf(cost_bound) else cost_bound
    a = C * rng.random(k) * (rng.random(k) < 0.6)
    if loss == "weston-watkins":
        a[rng.random(k) < 0.2] = C
    a[label] = 0.0
    if loss == "crammer-singer" and a.sum() > C:
        a *= C / a.sum()
    row = -a
    row[label] = a.sum()
    return row


def value(gradient, curvature, row, new):
    """Return what the step changes of the objective."""
    change = new - row
    return gradient @ change + 0.5 * curvature * change @ change


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cost_bound", [0.3, 2.0, np.inf])
@pytest.mark.parametrize("ties", [False, True])
def test_step_is_the_minimum_of_the_quadratic_program(loss, cost_bound, ties):
    rng = np.random.default_rng(7)
    for _ in range(60):
        k = int(rng.integers(2, 9))
        label = int(rng.integers(k))
        gradient = rng.integers(-2, 3, size=k).astype(float) if ties else 2.0 * rng.normal(size=k)
        curvature = float(rng.uniform(0.1, 3.0))
        row = feasible_row(loss, k, label, cost_bound, rng)
        ours = _core.exact_step(CORE[loss], gradient, curvature, label, cost_bound, row)
        theirs = best_row(loss, gradient, curvature, label, cost_bound, row)
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
        assert value(gradient, curvature, row, ours) <= value(gradient, curvature, row, theirs) + 1e-9
        assert abs(ours.sum()) <= 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_without_curvature_the_step_goes_to_a_corner(loss):
    rng = np.random.default_rng(8)
    for _ in range(60):
        k = int(rng.integers(2, 9))
        label = int(rng.integers(k))
        gradient = rng.normal(size=k)
        row = feasible_row(loss, k, label, 1.5, rng)
        ours = _core.exact_step(CORE[loss], gradient, 0.0, label, 1.5, row)
        theirs = best_row(loss, gradient, 0.0, label, 1.5, row)
        np.testing.assert_allclose(gradient @ ours, gradient @ theirs, atol=1e-6)
        assert abs(ours.sum()) <= 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_without_curvature_or_bound_there_may_be_no_minimum(loss):
    row = np.zeros(3)
    assert _core.exact_step(CORE[loss], np.array([0.0, 1.0, -1.0]), 0.0, 0, np.inf, row) is None
    stays = _core.exact_step(CORE[loss], np.array([2.0, 1.0, -1.0]), 0.0, 0, np.inf, row)
    np.testing.assert_array_equal(stays, row)


# Absolute margins: what the own class and the others have at most, in units of C, what all have together, and the loss.
ABSOLUTE = {
    "lee-lin-wahba": (0.0, 1.0, np.inf, _core.AbsoluteSum()),
    "total-sum": (1.0, 1.0, np.inf, _core.AbsoluteSum(1.0, 1.0)),
    "self": (1.0, 0.0, np.inf, _core.AbsoluteSum(1.0, 0.0)),
    "reinforced": (0.3, 0.7, np.inf, _core.AbsoluteSum(0.3, 0.7, 4.0)),
    "max": (0.0, np.inf, 1.0, _core.AbsoluteMaximum()),
    "total-max": (np.inf, np.inf, 1.0, _core.AbsoluteMaximum(own=True)),
}


def limits(name, k, label, cost_bound):
    """Return what each `|B_m|` and their sum have at most; a product of nothing and infinity is nothing."""
    own, others, most = (0.0 if u == 0 else u * cost_bound for u in ABSOLUTE[name][:3])
    each = np.full(k, others)
    each[label] = own
    return each, most


def best_absolute_row(name, gradient, curvature, label, cost_bound, row):
    """Return the minimum of ``g'd + curvature / 2 d'Pd`` by PIQP, in the multipliers ``a = sigma B``."""
    k = len(row)
    sigma = np.where(np.arange(k) == label, 1.0, -1.0)
    each, most = limits(name, k, label, cost_bound)
    means = np.eye(k) - 1.0 / k
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-13
    solver.setup(
        P=curvature * sigma[:, None] * means * sigma,
        c=sigma * (gradient - curvature * means @ row),
        G=np.ones((1, k)),
        h_l=np.array([-1e30]),
        h_u=np.array([min(most, 1e30)]),
        x_l=np.zeros(k),
        x_u=np.minimum(each, 1e30),
    )
    assert solver.solve() == piqp.PIQP_SOLVED
    return sigma * np.asarray(solver.result.x)


def absolute_row(name, k, label, cost_bound, rng):
    """Return a random row of the feasible set, some of its coefficients at their bounds."""
    each, most = limits(name, k, label, 3.0 if np.isinf(cost_bound) else cost_bound)
    a = np.minimum(each, 3.0) * rng.random(k) * (rng.random(k) < 0.7)
    at_bound = np.isfinite(each) & (rng.random(k) < 0.2)
    a[at_bound] = each[at_bound]
    if a.sum() > most or (np.isfinite(most) and a.sum() > 0 and rng.random() < 0.5):
        a *= most / a.sum()
    return np.where(np.arange(k) == label, 1.0, -1.0) * a


def absolute_value(gradient, curvature, row, new):
    """Return what the step changes of the objective: a change of all classes alike costs nothing but its slope."""
    change = new - row
    return gradient @ change + 0.5 * curvature * (change @ change - change.sum() ** 2 / len(row))


def is_feasible(name, label, cost_bound, row):
    each, most = limits(name, len(row), label, cost_bound)
    a = np.where(np.arange(len(row)) == label, 1.0, -1.0) * row
    return np.all(a >= 0) and np.all(a <= each) and a.sum() <= most * (1 + 1e-14)


@pytest.mark.parametrize("name", ABSOLUTE)
@pytest.mark.parametrize("cost_bound", [0.3, 2.0, np.inf])
@pytest.mark.parametrize("ties", [False, True])
def test_absolute_step_is_the_minimum_of_the_quadratic_program(name, cost_bound, ties):
    rng = np.random.default_rng(17)
    loss = ABSOLUTE[name][3]
    for _ in range(80):
        k = int(rng.integers(2, 9))
        label = int(rng.integers(k))
        gradient = rng.integers(-2, 3, size=k).astype(float) if ties else 2.0 * rng.normal(size=k)
        curvature = float(rng.uniform(0.1, 3.0))
        row = absolute_row(name, k, label, cost_bound, rng)
        if np.isinf(cost_bound):  # else all could grow together without an end, which scores that sum to zero forbid
            gradient -= gradient.mean()
        ours = _core.exact_step(loss, gradient, curvature, label, cost_bound, row)
        theirs = best_absolute_row(name, gradient, curvature, label, cost_bound, row)
        assert is_feasible(name, label, cost_bound, ours)
        best = absolute_value(gradient, curvature, row, theirs)
        assert absolute_value(gradient, curvature, row, ours) <= best + 1e-9 * max(1.0, abs(best))
        np.testing.assert_allclose(ours - ours.mean(), theirs - theirs.mean(), atol=1e-5)


@pytest.mark.parametrize("name", ABSOLUTE)
def test_absolute_step_stays_at_its_minimum(name):
    rng = np.random.default_rng(18)
    loss = ABSOLUTE[name][3]
    for _ in range(60):
        k = int(rng.integers(2, 9))
        label = int(rng.integers(k))
        gradient, row = rng.normal(size=k), absolute_row(name, k, label, 1.5, rng)
        first = _core.exact_step(loss, gradient, 0.7, label, 1.5, row)
        change = first - row
        there = gradient + 0.7 * (change - change.mean())
        again = _core.exact_step(loss, there, 0.7, label, 1.5, first)
        np.testing.assert_allclose(again, first, atol=1e-12)


@pytest.mark.parametrize("name", ABSOLUTE)
def test_without_curvature_the_absolute_step_goes_to_a_corner(name):
    rng = np.random.default_rng(19)
    loss = ABSOLUTE[name][3]
    for _ in range(60):
        k = int(rng.integers(2, 9))
        label = int(rng.integers(k))
        gradient, row = rng.normal(size=k), absolute_row(name, k, label, 1.5, rng)
        ours = _core.exact_step(loss, gradient, 0.0, label, 1.5, row)
        theirs = best_absolute_row(name, gradient, 0.0, label, 1.5, row)
        assert is_feasible(name, label, 1.5, ours)
        np.testing.assert_allclose(gradient @ ours, gradient @ theirs, atol=1e-6)
    right = np.array([1.0, -2.0, -3.0])
    assert _core.exact_step(loss, -right, 0.0, 0, np.inf, np.zeros(3)) is None
    np.testing.assert_array_equal(_core.exact_step(loss, right, 0.0, 0, np.inf, np.zeros(3)), np.zeros(3))


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="for each class"):
        _core.exact_step(_core.CrammerSinger(), np.zeros(3), 1.0, 3, 1.0, np.zeros(3))
