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


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="for each class"):
        _core.exact_step(_core.CrammerSinger(), np.zeros(3), 1.0, 3, 1.0, np.zeros(3))
