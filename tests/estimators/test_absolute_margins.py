"""Machines of absolute margins: their optimum, scores that sum to zero, and what they are equal to."""

import pickle

import numpy as np
import pytest
from reference.absolute import LOSSES, solve
from reference.compare import fitted_bits, training_problem
from reference.data import iris, overlapping, random_classes, separable, wine
from scipy import sparse
from scipy.optimize import linprog
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from polymargin import (
    AbsoluteMaximumSVC,
    CrammerSingerSVC,
    JointSVC,
    LeeLinWahbaSVC,
    MaximumMarginRegressionSVC,
    ReinforcedSVC,
    TotalMaximumSVC,
    TotalSumSVC,
    WestonWatkinsSVC,
    certify,
    compare,
    load_model,
    losses,
    save_model,
)
from polymargin.comparison.contestants import contestants
from polymargin.selection import KernelSearchCV

MACHINES = list(LOSSES)
BIASES = [None, "regularized", "free"]
every_machine = pytest.mark.parametrize("Machine", MACHINES)
every_bias = pytest.mark.parametrize("bias", BIASES)


def all_scores(machine, X):
    """Return the scores of all classes, also when there are two."""
    values = machine.decision_function(X)
    return np.column_stack([-values, values]) if values.ndim == 1 else values


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
    X, y = random_classes(k, n=32, seed=20 + k)
    for C, kernel in ((0.1, "rbf"), (1.0, "linear"), (20.0, "rbf")):
        machine = Machine(C=C, bias=bias, gamma=0.3, kernel=kernel, tol=1e-7).fit(X, y)
        K, bound = training_problem(machine, X, y)
        best, scores = solve(K, y, bound, LOSSES[Machine], bias)
        assert machine.converged_
        assert machine.primal_objective_ == pytest.approx(best, rel=1e-6)
        assert machine.dual_objective_ == pytest.approx(best, rel=1e-6)
        if bias != "free":
            np.testing.assert_allclose(all_scores(machine, X), scores, atol=2e-4 * max(1.0, np.abs(scores).max()))
        assert_certified(machine, X, y)


@every_machine
@every_bias
def test_scores_sum_to_zero(Machine, bias):
    X, y = overlapping(n=300, n_classes=5)
    for params in ({}, {"kernel": "linear", "solver": "sequential-dual"}):
        machine = Machine(C=2.0, bias=bias, **params).fit(X, y)
        scores = machine.decision_function(X)
        assert np.abs(scores.sum(axis=1)).max() <= 1e-9 * max(1.0, np.abs(scores).max())
        assert np.abs(machine.dual_coef_.sum(axis=0)).max() <= 1e-12 * np.abs(machine.dual_coef_).max()
        assert abs(machine.intercept_.sum()) <= 1e-9 * max(1.0, np.abs(machine.intercept_).max())


@every_machine
@every_bias
def test_weighted_solution_is_the_optimum(Machine, bias):
    X, y = random_classes(3, n=30, seed=5)
    weight = np.random.default_rng(5).uniform(0.1, 3.0, len(y))
    weight[4] = 0.0
    machine = Machine(C=1.5, bias=bias, gamma=0.3, class_weight={0: 2.0}, tol=1e-7)
    machine.fit(X, y, sample_weight=weight)
    K, bound = training_problem(machine, X, y, weight)
    used = bound > 0
    best, _ = solve(K[np.ix_(used, used)], y[used], bound[used], LOSSES[Machine], bias)
    assert machine.primal_objective_ == pytest.approx(best, rel=1e-6)
    assert 4 not in machine.support_
    assert_certified(machine, X, y, sample_weight=weight)


@every_machine
@every_bias
def test_hard_margin_is_the_optimum(Machine, bias):
    X, y = separable(n=30)
    machine = Machine(C=np.inf, bias=bias, gamma=0.2, tol=1e-8).fit(X, y)
    K, bound = training_problem(machine, X, y)
    best, _ = solve(K, y, bound, LOSSES[Machine], bias)
    assert machine.primal_objective_ == pytest.approx(best, rel=1e-5)
    assert_certified(machine, X, y, gap=1e-5)


@pytest.mark.parametrize("Machine", [M for M in MACHINES if M is not MaximumMarginRegressionSVC])
def test_no_hard_margin_where_there_is_none(Machine):
    X, y = random_classes(3, n=30, seed=6)
    X[0] = X[np.flatnonzero(y != y[0])[0]]
    with pytest.raises(ValueError, match="separate"):
        Machine(C=np.inf).fit(X, y)


# What is the same


@every_machine
def test_two_classes_are_the_binary_machine(Machine):
    X, y = random_classes(2, n=60, seed=7)
    C = 3.0
    binary = SVC(C=C if Machine is TotalSumSVC else C / 2, gamma=0.3, tol=1e-8).fit(X, y)
    machine = Machine(C=C, gamma=0.3, bias="free", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), binary.decision_function(X), atol=1e-5)


@every_machine
@every_bias
def test_linear_solver_is_the_kernel_solver(Machine, bias):
    X, y = overlapping(n=400, n_features=8, n_classes=4)
    params = {"C": 0.3, "kernel": "linear", "bias": bias}
    linear = Machine(solver="sequential-dual", tol=1e-7, **params).fit(X, y)
    kernel = Machine(solver="decomposition", tol=1e-7, stop="violation", **params).fit(X, y)
    assert linear.dual_objective_ == pytest.approx(kernel.dual_objective_, rel=2e-6)
    scores = kernel.decision_function(X)
    if bias != "free":
        np.testing.assert_allclose(linear.decision_function(X), scores, atol=1e-2 * max(1.0, np.abs(scores).max()))
    assert_certified(linear, X, y, gap=2e-7)
    np.testing.assert_allclose(linear.coef_.sum(axis=0), 0.0, atol=1e-9 * max(1.0, np.abs(linear.coef_).max()))


@every_machine
@every_bias
@pytest.mark.parametrize("params", [{}, {"kernel": "linear", "solver": "sequential-dual"}])
def test_sparse_is_dense_and_threads_do_not_matter(Machine, bias, params):
    X, y = wine()
    X = np.where(np.abs(X) < 0.4, 0.0, X)
    machines = [Machine(C=5.0, bias=bias, tol=1e-6, n_jobs=jobs, **params).fit(X, y) for jobs in (1, 2, 3)]
    bits = [fitted_bits(machine, X) for machine in machines]
    assert bits[0] == bits[1] == bits[2]
    other = Machine(C=5.0, bias=bias, tol=1e-6, **params).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(other.decision_function(X), machines[0].decision_function(X), atol=2e-2)
    assert other.dual_objective_ == pytest.approx(machines[0].dual_objective_, rel=1e-5)


@every_machine
@every_bias
def test_warm_start_is_a_cold_one(Machine, bias):
    X, y = overlapping(n=300, n_features=8, n_classes=4)
    for params in ({"gamma": 0.1}, {"kernel": "linear", "solver": "sequential-dual"}):
        machine = Machine(C=1.0, bias=bias, warm_start=True, tol=1e-5, **params).fit(X, y)
        first = machine.n_iter_
        machine.fit(X, y)
        assert machine.n_iter_ <= max(first / 2, 2 * len(y))
        machine.set_params(C=4.0).fit(X, y)
        cold = Machine(C=4.0, bias=bias, tol=1e-5, **params).fit(X, y)
        assert machine.dual_objective_ == pytest.approx(cold.dual_objective_, rel=1e-3)


def test_reinforced_machines_end_at_those_that_they_combine():
    X, y = iris()
    one = ReinforcedSVC(share=1.0, tol=1e-6).fit(X, y)
    assert one.dual_objective_ == pytest.approx(LeeLinWahbaSVC(tol=1e-6).fit(X, y).dual_objective_, rel=1e-6)
    # The right class alone, which is to have twice as much: the machine for twice the scores, and C.
    other = ReinforcedSVC(share=0.0, C=1.0, tol=1e-6).fit(X, y)
    single = MaximumMarginRegressionSVC(C=0.5, tol=1e-6).fit(X, y)
    assert other.dual_objective_ == pytest.approx(4 * single.dual_objective_, rel=1e-6)


# The family by its parts

PARTS = {
    ("relative", "sum"): WestonWatkinsSVC(),
    ("relative", "max"): CrammerSingerSVC(bias="regularized"),
    ("absolute", "sum"): LeeLinWahbaSVC(),
    ("absolute", "max"): AbsoluteMaximumSVC(),
    ("absolute", "total"): TotalMaximumSVC(),
    ("absolute", "total-sum"): TotalSumSVC(),
    ("absolute", "self"): MaximumMarginRegressionSVC(),
}


@pytest.mark.parametrize("parts", PARTS, ids=str)
def test_joint_machine_is_the_one_of_that_name(parts):
    X, y = iris()
    margins, aggregation = parts
    joint = JointSVC(C=3.0, margins=margins, aggregation=aggregation).fit(X, y)
    named = PARTS[parts].set_params(C=3.0).fit(X, y)
    assert fitted_bits(joint, X) == fitted_bits(named, X)
    assert_certified(joint, X, y, gap=1e-3)


def test_joint_machine_is_reinforced():
    X, y = iris()
    joint = JointSVC(margins="absolute", reinforced=0.7).fit(X, y)
    assert fitted_bits(joint, X) == fitted_bits(ReinforcedSVC(share=0.7).fit(X, y), X)


@pytest.mark.parametrize("aggregation", ["total", "total-sum", "self"])
def test_relative_margins_have_no_total(aggregation):
    with pytest.raises(ValueError, match=r"needs margins='absolute'.*'sum', 'max'"):
        JointSVC(aggregation=aggregation).fit(*iris())


@pytest.mark.parametrize("parts", [{}, {"margins": "absolute", "aggregation": "max"}])
def test_only_one_machine_is_reinforced(parts):
    with pytest.raises(ValueError, match=r"reinforced=0\.5 needs margins='absolute' and aggregation='sum'"):
        JointSVC(reinforced=0.5, **parts).fit(*iris())


@every_machine
@pytest.mark.parametrize("solver", ["cutting-plane", "exponentiated-gradient"])
def test_solvers_that_need_relative_margins_say_so(Machine, solver):
    with pytest.raises(ValueError, match="sequential-dual"):
        Machine(kernel="linear", solver=solver).fit(*iris())


# With the tools


@every_machine
def test_models_are_saved_pickled_and_searched(Machine, tmp_path):
    X, y = iris()
    machine = Machine(C=2.0).fit(X, y)
    save_model(machine, tmp_path / "machine.safetensors")
    for same in (load_model(tmp_path / "machine.safetensors"), pickle.loads(pickle.dumps(machine))):
        np.testing.assert_array_equal(same.decision_function(X), machine.decision_function(X))
    grid = {"C": [0.1, 10.0], "gamma": [0.1, 1.0]}
    found = KernelSearchCV(Machine(), grid, cv=3).fit(X, y)
    plain = GridSearchCV(Machine(), grid, cv=3).fit(X, y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])


def test_comparisons_know_the_family():
    X, y = iris()
    names = ["Lee-Lin-Wahba", "reinforced", "ADM", "ATM", "ATS", "MMR"]
    assert [c.name for c in contestants("family", "rbf", None)] == ["Weston-Watkins", "Crammer-Singer", *names]
    assert not set(names) & {c.name for c in contestants("all", "rbf", None)}
    table = compare(X, y, machines=["Lee-Lin-Wahba", "MMR"], grid={"C": [1.0]}, cv=3).table
    assert [row["machine"] for row in table] == ["Lee-Lin-Wahba", "MMR"]


# The losses as values


def absolute_losses(k):
    """Yield each loss with its definition."""
    for Machine, loss in LOSSES.items():
        yield Machine().formulation.loss.of(k), loss


@pytest.mark.parametrize("k", [2, 3, 6])
def test_values_and_margins_are_the_definition(k):
    rng = np.random.default_rng(k)
    scores, labels = rng.normal(size=(40, k)), rng.integers(0, k, 40)
    for ours, loss in absolute_losses(k):
        np.testing.assert_allclose(ours.values(scores, labels), loss.values(scores, labels), atol=1e-13)
        margins = ours.smallest_margins(scores, labels)
        for i in range(len(labels)):  # scaled so far, the loss is zero, and not a little less
            enough = np.append(scores[i] / margins[i] if margins[i] > 0 else scores[i], [])
            if margins[i] > 0:
                assert loss.values(enough[None], labels[i : i + 1])[0] <= 1e-12
                assert loss.values(0.99 * enough[None], labels[i : i + 1])[0] > 0
            else:
                assert loss.values(1e6 * enough[None], labels[i : i + 1])[0] > 0


@pytest.mark.parametrize("k", [2, 3, 6])
def test_dual_rows_are_the_best_that_reach_the_scores_alike(k):
    rng = np.random.default_rng(k)
    labels, costs = rng.integers(0, k, 60), rng.uniform(0.2, 3.0, 60)
    sigma = np.where(labels[:, None] == np.arange(k), 1.0, -1.0)
    for ours, _ in absolute_losses(k):
        own, others, most = ours._limits()
        limits = np.where(sigma > 0, own, others) * np.ones((60, k))
        limits = np.where(limits == 0, 0.0, np.minimum(limits, 2.0) * costs[:, None])
        a = limits * rng.random((60, k)) * (rng.random((60, k)) < 0.7)
        a *= np.minimum(1.0, most * costs / np.maximum(a.sum(axis=1), 1e-300))[:, None]
        rows = sigma * a
        assert ours.excess(rows, labels, costs) <= 1e-15
        found = ours.dual_rows(ours.kept(rows), labels, costs)
        np.testing.assert_allclose(ours.kept(found), ours.kept(rows), atol=1e-12)
        assert ours.excess(found, labels, costs) <= 1e-12
        for i in range(60):
            one = slice(i, i + 1)
            assert ours.dual_value(found[one], labels[one]) >= ours.dual_value(rows[one], labels[one]) - 1e-12
            kept = ours.kept(rows)[i]
            steps = [
                t for t in np.linspace(-8, 8, 161) if ours.excess((kept + t)[None], labels[one], costs[one]) <= 1e-12
            ]
            values = [ours.dual_value((kept + t)[None], labels[one]) for t in steps]
            assert max(values, default=-np.inf) <= ours.dual_value(found[one], labels[one]) + 1e-12


def test_a_reinforced_loss_has_to_be_told_the_number_of_classes():
    with pytest.raises(ValueError, match="number of classes"):
        _ = losses.reinforced(0.5).core


# Fisher consistency: the best scores for known probabilities of the classes, by linear programming


def best_lead(loss, p):
    """Return by how much another class can lead the most probable one among the scores of least expected loss."""
    k, best = len(p), int(p.argmax())
    hinges = [(y, m) for y in range(k) for m in range(k) if (loss.own if m == y else loss.others) > 0]
    n_slacks = k if loss.largest else len(hinges)
    cost, A, b = np.zeros(k + n_slacks), np.zeros((len(hinges), k + n_slacks)), np.zeros(len(hinges))
    for row, (y, m) in enumerate(hinges):
        slack = k + (y if loss.largest else row)
        A[row, m], A[row, slack] = (-1.0 if m == y else 1.0), -1.0
        b[row] = -loss.of(k) if m == y else -1.0
        cost[slack] = p[y] * (1.0 if loss.largest else loss.own if m == y else loss.others)
    sums, bounds = np.r_[np.ones(k), np.zeros(n_slacks)][None], [(None, None)] * k + [(0, None)] * n_slacks
    least = linprog(cost, A, b, sums, [0.0], bounds).fun
    leads = []
    for m in range(k):
        aim = np.zeros(k + n_slacks)
        aim[best], aim[m] = 1.0, -1.0
        if m != best:
            face = np.vstack([A, cost]), np.r_[b, least + 1e-9]
            found = linprog(aim, *face, sums, [0.0], bounds)
            leads.append(-found.fun if found.status == 0 else np.inf)
    return max(leads)


CONSISTENT = {LeeLinWahbaSVC, ReinforcedSVC}


@every_machine
def test_fisher_consistency(Machine):
    rng = np.random.default_rng(3)
    least = np.inf
    for _ in range(25):
        p = rng.dirichlet(np.full(int(rng.integers(3, 5)), 8.0))
        if np.diff(np.sort(p))[-1] > 0.02:
            worst = best_lead(LOSSES[Machine], p)
            least = min(least, -worst)
    assert (least > 0.1) == (Machine in CONSISTENT)
