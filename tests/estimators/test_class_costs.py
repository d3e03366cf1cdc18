"""Costs between classes: the optimum, what is the same, what is refused, and where the costs go."""

import pickle

import numpy as np
import pytest
from reference.class_costs import LOSSES, optimum
from reference.compare import fitted_bits, training_problem
from reference.data import overlapping, random_classes, separable
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from polymargin import (
    CrammerSingerSVC,
    JointSVC,
    MaximumMarginRegressionSVC,
    ReinforcedSVC,
    WestonWatkinsSVC,
    _core,
    certify,
    load_model,
    losses,
    save_model,
)
from polymargin.costs import make_cost_scorer, mean_cost, ordinal_costs
from polymargin.selection import KernelSearchCV, known_cost, regularization_path

MACHINES = list(LOSSES)
BIASES = [None, "regularized", "free"]
RELATIVE = [WestonWatkinsSVC, CrammerSingerSVC]
every_machine = pytest.mark.parametrize("Machine", MACHINES)
every_bias = pytest.mark.parametrize("bias", BIASES)


def some_costs(k, seed=0, zero=True):
    """Return costs that are not symmetric, of several sizes, one of them perhaps zero."""
    costs = np.random.default_rng(seed).uniform(0.2, 4.0, (k, k))
    np.fill_diagonal(costs, 0.0)
    if zero and k > 2:
        costs[0, 1] = 0.0
    return costs


def assert_certified(machine, X, y, *, gap=1e-6, sample_weight=None):
    """The certificate is that of the fit, and the dual point is feasible."""
    proof = certify(machine, X, y, sample_weight)
    assert proof.infeasibility <= 1e-12
    assert -1e-12 <= proof.duality_gap <= gap
    assert proof.primal_objective == pytest.approx(machine.primal_objective_, rel=1e-9)
    assert proof.dual_objective >= machine.dual_objective_ * (1 - 1e-9)


# The optimum


@every_machine
@every_bias
@pytest.mark.parametrize("k", [2, 3, 4])
def test_solution_is_the_optimum(Machine, bias, k):
    X, y = random_classes(k, n=28, seed=20 + k)
    costs = some_costs(k, seed=k)
    weight = np.random.default_rng(k).uniform(0.5, 2.0, len(y))
    for C, kernel in ((0.1, "rbf"), (1.0, "linear"), (20.0, "rbf")):
        machine = Machine(C=C, bias=bias, gamma=0.3, kernel=kernel, costs=costs, tol=1e-7)
        machine.fit(X, y, sample_weight=weight)
        K, bound = training_problem(machine, X, y, weight)
        best = optimum(K, y, bound, LOSSES[Machine], costs, bias)
        assert machine.converged_
        assert machine.primal_objective_ == pytest.approx(best, rel=1e-6)
        assert machine.dual_objective_ == pytest.approx(best, rel=1e-6)
        assert_certified(machine, X, y, sample_weight=weight)


@every_machine
def test_hard_margin_is_the_optimum(Machine):
    X, y = separable(n=24)
    costs = some_costs(int(y.max()) + 1, seed=3, zero=False)
    machine = Machine(C=np.inf, gamma=0.2, costs=costs, bias=None, tol=1e-8).fit(X, y)
    K, _ = training_problem(machine, X, y)
    best = optimum(K, y, np.full(len(y), 1e4), LOSSES[Machine], costs, None)
    assert machine.primal_objective_ == pytest.approx(best, rel=1e-5)
    assert_certified(machine, X, y, gap=1e-5)


@every_machine
@every_bias
def test_linear_solver_is_the_kernel_solver(Machine, bias):
    X, y = overlapping(n=400, n_features=8, n_classes=4)
    params = {"C": 0.3, "kernel": "linear", "bias": bias, "costs": some_costs(4, seed=9), "tol": 1e-7}
    linear = Machine(solver="sequential-dual", **params).fit(X, y)
    kernel = Machine(solver="decomposition", stop="violation", **params).fit(X, y)
    assert linear.dual_objective_ == pytest.approx(kernel.dual_objective_, rel=2e-6)
    assert linear.primal_objective_ == pytest.approx(kernel.primal_objective_, rel=2e-6)
    assert_certified(linear, X, y)


@pytest.mark.parametrize(
    ("Machine", "solver"),
    [
        (WestonWatkinsSVC, "cutting-plane"),
        (CrammerSingerSVC, "cutting-plane"),
        (CrammerSingerSVC, "exponentiated-gradient"),
    ],
)
@pytest.mark.parametrize("bias", [None, "regularized"])
def test_competitors_find_the_same(Machine, solver, bias):
    X, y = overlapping(n=120, n_features=8, n_classes=4)
    params = {"C": 0.5, "kernel": "linear", "bias": bias, "costs": some_costs(4, seed=2)}
    other = Machine(solver=solver, tol=1e-4, **params).fit(X, y)
    kernel = Machine(solver="decomposition", tol=1e-7, **params).fit(X, y)
    assert other.converged_
    assert other.dual_objective_ <= kernel.primal_objective_ * (1 + 1e-9)
    assert other.primal_objective_ == pytest.approx(kernel.primal_objective_, rel=2e-4)
    assert_certified(other, X, y, gap=1e-4)


@pytest.mark.parametrize("Machine", RELATIVE)
@pytest.mark.parametrize("bias", BIASES)
def test_interior_points_take_over(Machine, bias):
    X, y = overlapping(n=600, n_features=8, n_classes=3)
    X = X * np.geomspace(0.01, 300.0, 8)
    machine = Machine(C=1e6, kernel="linear", bias=bias, costs=some_costs(3, seed=4), tol=1e-6).fit(X, y)
    assert machine.converged_
    assert machine.solver_used_ == "interior-point"
    assert certify(machine, X, y).duality_gap <= 1e-6


@pytest.mark.parametrize("Machine", RELATIVE)
def test_newton_steps_find_the_same(Machine):
    X, y = overlapping(n=5000, n_features=8, n_classes=4)
    params = {"C": 100.0, "kernel": "linear", "bias": "regularized", "costs": some_costs(4, seed=6), "tol": 1e-5}
    machine = Machine(**params).fit(X, y)
    assert machine.converged_
    assert_certified(machine, X, y, gap=1e-5)


@pytest.mark.parametrize("Machine", [WestonWatkinsSVC, CrammerSingerSVC, *MACHINES[2:4]])
def test_exact_step_is_no_worse_than_any_other(Machine):
    rng = np.random.default_rng(8)
    loss = Machine(costs=some_costs(4, seed=5)).formulation.loss.of(4).core
    plain = Machine().formulation.loss.of(4).core
    for _ in range(20):
        g, row = rng.normal(size=4), np.zeros(4)
        assert np.array_equal(_core.exact_step(loss, g, 0.7, 2, 1.0, row), _core.exact_step(plain, g, 0.7, 2, 1.0, row))


# What is the same


@every_machine
def test_costs_of_one_are_none(Machine):
    X, y = overlapping(n=200, n_classes=4)
    for params in ({}, {"kernel": "linear"}, {"bias": "free"}):
        with_costs = Machine(costs=1.0 - np.eye(4), **params).fit(X, y)
        assert fitted_bits(with_costs, X) == fitted_bits(Machine(**params).fit(X, y), X)


@every_machine
@every_bias
def test_larger_costs_are_larger_scores(Machine, bias):
    X, y = random_classes(4, n=60, seed=2)
    costs = some_costs(4, seed=1)
    one = Machine(C=2.0, bias=bias, costs=costs, tol=1e-8).fit(X, y)
    for scale in (1e-6, 3.0, 1e5):
        other = Machine(C=2.0 * scale, bias=bias, costs=scale * costs, tol=1e-8 * scale).fit(X, y)
        assert other.dual_objective_ == pytest.approx(scale**2 * one.dual_objective_, rel=1e-6)
        np.testing.assert_allclose(
            other.decision_function(X) / scale,
            one.decision_function(X),
            atol=1e-4 * np.abs(one.decision_function(X)).max(),
        )


@every_machine
def test_the_order_of_classes_does_not_matter(Machine):
    X, y = random_classes(4, n=60, seed=3)
    costs, order = some_costs(4, seed=7), np.array([2, 0, 3, 1])  # class c is called order[c]
    renamed = np.zeros_like(costs)
    renamed[np.ix_(order, order)] = costs
    one = Machine(costs=costs, tol=1e-8).fit(X, y)
    other = Machine(costs=renamed, tol=1e-8).fit(X, order[y])
    assert other.dual_objective_ == pytest.approx(one.dual_objective_, rel=1e-7)
    np.testing.assert_allclose(other.decision_function(X)[:, order], one.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("Machine", RELATIVE)
def test_equal_costs_are_another_margin(Machine):
    X, y = random_classes(3, n=50, seed=4)
    costs = 3.0 * (1.0 - np.eye(3))
    one = Machine(costs=costs, C=2.0, tol=1e-8).fit(X, y)
    plain = Machine(C=2.0 / 3.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(one.decision_function(X), 3.0 * plain.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("Machine", RELATIVE)
def test_the_loss_is_at_least_what_the_largest_score_costs(Machine):
    rng = np.random.default_rng(9)
    costs = some_costs(5, seed=8)
    loss = Machine(costs=costs).formulation.loss.of(5)
    scores, labels = rng.normal(scale=2.0, size=(500, 5)), rng.integers(5, size=500)
    margin = 2.0 if Machine is WestonWatkinsSVC else 1.0
    assert np.all(loss.values(scores, labels) >= margin * costs[labels, scores.argmax(axis=1)])


def test_named_machines_are_joint_machines_by_their_parts():
    X, y = overlapping(n=100, n_classes=3)
    costs = some_costs(3)
    for named, parts in (
        (WestonWatkinsSVC(costs=costs), JointSVC(costs=costs)),
        (CrammerSingerSVC(costs=costs), JointSVC(aggregation="max", bias=None, costs=costs)),
        (ReinforcedSVC(costs=costs), JointSVC(margins="absolute", reinforced=0.5, costs=costs)),
    ):
        assert np.array_equal(named.fit(X, y).decision_function(X), parts.fit(X, y).decision_function(X))


# Costs do what they are for


def test_dear_mistakes_become_rare():
    X, y = overlapping(n=1200, n_classes=3)
    (X, X_new), (y, y_new) = np.split(X, 2), np.split(y, 2)
    costs = np.array([[0.0, 1.0, 10.0], [1.0, 0.0, 10.0], [1.0, 1.0, 0.0]])
    for Machine in (WestonWatkinsSVC, CrammerSingerSVC, ReinforcedSVC):
        called = [Machine(gamma=0.02, costs=each).fit(X, y).predict(X_new) for each in (None, costs)]
        dear = [np.sum((classes == 2) & (y_new != 2)) for classes in called]
        assert dear[1] < 0.1 * dear[0]
        assert mean_cost(y_new, called[1], costs) < 0.5 * mean_cost(y_new, called[0], costs)


# Where the costs go


def test_warm_starts_and_paths():
    X, y = overlapping(n=200, n_classes=4)
    for Machine in (WestonWatkinsSVC, CrammerSingerSVC, ReinforcedSVC):
        machine = Machine(costs=some_costs(4), tol=1e-6)
        cold = clone(machine).set_params(C=4.0).fit(X, y)
        warm = regularization_path(machine, X, y, costs=[1.0, 2.0, 4.0])[-1]
        assert warm.dual_objective_ == pytest.approx(cold.dual_objective_, rel=1e-6)


def test_other_costs_start_from_the_last_solution():
    X, y = overlapping(n=200, n_classes=4)
    machine = WestonWatkinsSVC(tol=1e-6, warm_start=True).fit(X, y).set_params(costs=some_costs(4)).fit(X, y)
    assert_certified(machine, X, y)


@pytest.mark.parametrize("Machine", [*RELATIVE, ReinforcedSVC])
def test_model_files_and_pickles_keep_them(Machine, tmp_path):
    X, y = overlapping(n=80, n_classes=3)
    machine = Machine(costs=some_costs(3)).fit(X, y)
    save_model(machine, tmp_path / "model.safetensors")
    for copy in (load_model(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(machine))):
        assert np.array_equal(copy.costs, machine.costs)
        assert np.array_equal(copy.decision_function(X), machine.decision_function(X))
        assert certify(copy, X, y) == certify(machine, X, y)


def test_searches_take_them():
    X, y = overlapping(n=120, n_classes=3)
    costs = ordinal_costs(3)
    grid = {"C": [0.1, 1.0, 10.0], "costs": [None, costs], "gamma": [0.1, 1.0]}
    scorer = make_cost_scorer(costs)
    ours = KernelSearchCV(WestonWatkinsSVC(tol=1e-6), grid, cv=3, scoring=scorer).fit(X, y)
    theirs = GridSearchCV(WestonWatkinsSVC(tol=1e-6), grid, cv=3, scoring=scorer).fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.03)
    copy = clone(WestonWatkinsSVC(costs=costs))
    assert np.array_equal(copy.costs, costs)


# What is refused


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ([1.0, 2.0, 3.0], "square"),
        (np.ones((3, 2)), "square"),
        (ordinal_costs(4), "3 x 3"),
        (-ordinal_costs(3), "at least 0"),
        (np.ones((3, 3)), "0 on the diagonal"),
        (np.where(np.eye(3) > 0, 0.0, np.nan), "finite"),
        (np.where(np.eye(3) > 0, 0.0, np.inf), "finite"),
        (np.zeros((3, 3)), "positive number"),
        ([["a", "b", "c"]] * 3, "numbers"),
    ],
)
def test_costs_that_are_none(costs, words):
    X, y = random_classes(3, n=30, seed=1)
    for machine in (CrammerSingerSVC(costs=costs), JointSVC(margins="absolute", costs=costs)):
        with pytest.raises(ValueError, match=words):
            machine.fit(X, y)


def test_costs_need_margins_of_the_wrong_classes():
    X, y = random_classes(3, n=30, seed=1)
    for machine in (JointSVC(margins="absolute", aggregation="self"), ReinforcedSVC(share=0.0)):
        with pytest.raises(ValueError, match="margins of the wrong classes"):
            machine.set_params(costs=ordinal_costs(3)).fit(X, y)
    assert "costs" not in MaximumMarginRegressionSVC().get_params()


def test_costs_need_plain_hinges():
    X, y = random_classes(3, n=30, seed=1)
    for machine in (WestonWatkinsSVC(), CrammerSingerSVC(), JointSVC()):
        with pytest.raises(ValueError, match="need loss='hinge'"):
            machine.set_params(loss="squared_hinge", costs=ordinal_costs(3)).fit(X, y)


def test_a_hard_margin_of_zero_has_no_scale():
    X, y = separable(n=24)
    costs = some_costs(int(y.max()) + 1)
    with pytest.raises(ValueError, match="C=inf needs costs above 0"):
        WestonWatkinsSVC(C=np.inf, costs=costs).fit(X, y)


def test_known_cost_knows_no_costs():
    X, y = random_classes(3, n=30, seed=1)
    with pytest.raises(ValueError, match="costs=None"):
        known_cost(WestonWatkinsSVC(kernel="linear", costs=ordinal_costs(3)), X, y)


def test_losses_are_values():
    costs = ordinal_costs(3)
    assert losses.WestonWatkins(costs=costs) == losses.WestonWatkins(costs=costs.copy())
    assert losses.WestonWatkins(costs=costs) != losses.WestonWatkins()
    assert losses.WestonWatkins(costs=costs) != losses.WestonWatkins(costs=2 * costs)
    assert len({losses.CrammerSinger(costs=costs), losses.CrammerSinger(costs=costs.copy())}) == 1
