"""Squared hinges: their optimum by quadratic programs in the primal, by LinearSVC, and by a second solver."""

import numpy as np
import piqp
import pytest
from reference.compare import fitted_bits
from reference.data import iris, overlapping, random_classes, separable, wine
from reference.kernels import kernel_matrix
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from polymargin import (
    CrammerSingerSVC,
    JointSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    WestonWatkinsSVC,
    certify,
    load_model,
    losses,
    save_model,
)
from polymargin.selection import KernelSearchCV

JOINT = [WestonWatkinsSVC, CrammerSingerSVC]
MACHINES = [OneVsOneSVC, OneVsRestSVC, *JOINT]
every_machine = pytest.mark.parametrize("Machine", MACHINES)
every_joint = pytest.mark.parametrize("Machine", JOINT)
every_bias = pytest.mark.parametrize("bias", [None, "regularized", "free"])


def squared(Machine, **parameters):
    return Machine(loss="squared_hinge", gamma=0.3, **parameters)


def assert_certified(machine, X, y, *, gap=1e-6, sample_weight=None):
    """The certificate is that of the fit, and the dual point is feasible."""
    proof = certify(machine, X, y, sample_weight)
    assert proof.infeasibility <= 1e-12
    assert -1e-12 <= proof.duality_gap <= gap
    assert proof.primal_objective == pytest.approx(machine.primal_objective_, rel=1e-8)
    assert proof.dual_objective == pytest.approx(machine.dual_objective_, rel=1e-8)


# The optimum


def features_of(K):
    """Return features whose products are the kernel's values."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-13 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def minimum(P, c, G, h):
    """Return the least ``1/2 x'Px + c'x`` with ``Gx >= h``."""
    for precision in (1e-12, 1e-11, 1e-10):
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = precision
        solver.settings.max_iter = 500
        solver.setup(np.asfortranarray(P), c, G=np.asfortranarray(G), h_l=h)
        if solver.solve() == piqp.PIQP_SOLVED:
            x = np.asarray(solver.result.x)
            return float(0.5 * x @ P @ x + c @ x)
    raise RuntimeError("the reference could not be solved")


def least_objective(Z, rows, shared, costs, bias, k):
    """Return the least objective of ``k`` weight vectors: ``rows`` are (example, k differences, margin) of hinges.

    Hinges of an example have one slack together if ``shared``, else one each: all by the definition of the primal.
    """
    n, d = Z.shape
    width = d + 1
    slack = np.array([i for i, _, _ in rows]) if shared else np.arange(len(rows))
    count = n if shared else len(rows)
    owner = np.arange(n) if shared else np.array([i for i, _, _ in rows])
    penalty = np.tile(np.append(np.ones(d), {"regularized": 1.0, "free": 0.0, None: 1.0}[bias]), k)
    P = np.diag(np.concatenate([penalty, 2.0 * costs[owner]]))
    G = np.zeros((len(rows), len(P)))
    for r, (i, difference, _) in enumerate(rows):
        z = np.append(Z[i], 0.0 if bias is None else 1.0)
        G[r, : k * width] = np.kron(difference, z)
        G[r, k * width + slack[r]] = 1.0
    assert len(P) == k * width + count
    return minimum(P, np.zeros(len(P)), G, np.array([margin for _, _, margin in rows], dtype=float))


def joint_objective(K, y, costs, Machine, bias):
    classes, codes = np.unique(y, return_inverse=True)
    k, margin = len(classes), 2.0 if Machine is WestonWatkinsSVC else 1.0
    unit = np.eye(k)
    rows = [(i, unit[c] - unit[m], margin) for i, c in enumerate(codes) for m in range(k) if m != c]
    return least_objective(features_of(K), rows, Machine is CrammerSingerSVC, costs, bias, k)


def binary_objective(K, signs, costs, bias):
    used = np.flatnonzero(signs)
    rows = [(at, np.array([signs[i]]), 1.0) for at, i in enumerate(used)]
    return least_objective(features_of(K[np.ix_(used, used)]), rows, False, costs[used], bias, 1)


def binary_signs(Machine, y):
    """Return the signs of the examples in each binary problem."""
    classes = np.unique(y)
    if Machine is OneVsRestSVC:
        positive = classes[1:] if len(classes) == 2 else classes
        return [np.where(y == c, 1.0, -1.0) for c in positive]
    pairs = [(a, b) for at, a in enumerate(classes) for b in classes[at + 1 :]]
    return [np.where(y == a, 1.0, np.where(y == b, -1.0, 0.0)) for a, b in pairs]


@every_joint
@every_bias
@pytest.mark.parametrize("k", [2, 4])
def test_joint_solution_is_the_optimum(Machine, bias, k):
    X, y = random_classes(k, n=24, seed=40 + k)
    weight = np.random.default_rng(k).uniform(0.2, 3.0, len(y))
    for C, kernel in ((0.05, "rbf"), (1.0, "linear"), (30.0, "rbf")):
        machine = squared(Machine, C=C, bias=bias, kernel=kernel, tol=1e-8).fit(X, y, weight)
        best = joint_objective(kernel_matrix(X, X, kernel, gamma=0.3), y, C * weight, Machine, bias)
        assert machine.converged_
        assert machine.primal_objective_ == pytest.approx(best, rel=1e-6)
        assert machine.dual_objective_ == pytest.approx(best, rel=1e-6)
        assert_certified(machine, X, y, sample_weight=weight)


@pytest.mark.parametrize("Machine", [OneVsOneSVC, OneVsRestSVC])
@pytest.mark.parametrize("k", [2, 3])
def test_binary_solution_is_the_optimum(Machine, k):
    X, y = random_classes(k, n=40, seed=50 + k)
    weight = np.random.default_rng(k).uniform(0.2, 3.0, len(y))
    for C, kernel in ((0.01, "rbf"), (1.0, "linear"), (1e3, "rbf")):
        machine = squared(Machine, C=C, kernel=kernel, tol=1e-8).fit(X, y, weight)
        K = kernel_matrix(X, X, kernel, gamma=0.3)
        best = sum(binary_objective(K, signs, C * weight, "free") for signs in binary_signs(Machine, y))
        assert machine.converged_
        assert machine.primal_objective_ == pytest.approx(best, rel=1e-6)
        assert machine.dual_objective_ == pytest.approx(best, rel=1e-6)
        assert_certified(machine, X, y, sample_weight=weight)


@pytest.mark.parametrize("bias", [None, "regularized"])
@pytest.mark.parametrize("n", [90, 300])
def test_one_vs_rest_is_linear_svc(bias, n):
    X, y = overlapping(n=n, n_features=6, n_classes=3)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, n)
    for C in (0.01, 1.0):
        theirs = LinearSVC(C=C, dual=False, tol=1e-10, max_iter=10_000, fit_intercept=bias is not None)
        theirs.fit(X, y, weight)
        ours = squared(OneVsRestSVC, C=C, kernel="linear", bias=bias, tol=1e-10).fit(X, y, weight)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, np.broadcast_to(theirs.intercept_, (3,)), rtol=1e-4, atol=1e-5)


# A second solver


@pytest.mark.parametrize("Machine", [OneVsRestSVC, *JOINT])
@every_bias
def test_solvers_agree_on_the_linear_kernel(Machine, bias):
    X, y = overlapping(n=150, n_features=6, n_classes=4)
    for C in (0.003, 0.05):
        loops = squared(Machine, C=C, kernel="linear", bias=bias, solver="sequential-dual", tol=1e-8).fit(X, y)
        assert loops.converged_
        assert_certified(loops, X, y)
        if Machine is OneVsRestSVC and bias != "free":
            other = sum(binary_objective(X @ X.T, signs, np.full(150, C), bias) for signs in binary_signs(Machine, y))
        else:
            rows = squared(Machine, C=C, kernel="linear", bias=bias, solver="decomposition", tol=1e-8).fit(X, y)
            other = rows.primal_objective_
        assert loops.primal_objective_ == pytest.approx(other, rel=1e-6)


def test_wide_data_go_over_to_kernel_values():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 120)
    X = rng.normal(size=(120, 400)) + 0.2 * y[:, None]
    for bias in (None, "regularized", "free"):
        machine = squared(OneVsRestSVC, C=1e4, kernel="linear", bias=bias, tol=1e-8).fit(X, y)
        assert machine.converged_
        assert_certified(machine, X, y)


@every_machine
def test_larger_problems_reach_their_gap(Machine):
    X, y = overlapping(n=1500, n_features=8, n_classes=5)
    for C in (0.1, 100.0):
        machine = squared(Machine, C=C, stop="gap", tol=1e-6).fit(X, y)
        assert machine.converged_
        assert_certified(machine, X, y)


# What squares have in common with hinges


@every_machine
def test_weights_count_as_copies(Machine):
    X, y = iris()
    weight = np.arange(len(y)) % 3
    weighted = squared(Machine, C=2.0, tol=1e-8).fit(X, y, weight)
    copies = squared(Machine, C=2.0, tol=1e-8).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.primal_objective_ == pytest.approx(copies.primal_objective_, rel=1e-9)
    np.testing.assert_allclose(weighted.decision_function(X), copies.decision_function(X), atol=1e-6)


@every_machine
def test_hard_margins_are_those_of_hinges(Machine):
    X, y = separable()
    hinge = Machine(C=np.inf, gamma=0.3, tol=1e-8).fit(X, y)
    square = squared(Machine, C=np.inf, tol=1e-8).fit(X, y)
    assert square.primal_objective_ == pytest.approx(hinge.primal_objective_, rel=1e-6)
    assert_certified(square, X, y)
    soft = squared(Machine, C=1e9, tol=1e-8).fit(X, y)
    assert soft.primal_objective_ == pytest.approx(hinge.primal_objective_, rel=1e-4)


@every_machine
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_warm_starts_lead_to_the_same_optimum(Machine, kernel):
    X, y = wine()
    X = StandardScaler().fit_transform(X)
    machine = squared(Machine, C=0.1, kernel=kernel, warm_start=True, stop="gap", tol=1e-7).fit(X, y)
    for C in (10.0, 0.5):
        machine.set_params(C=C).fit(X, y)
        cold = squared(Machine, C=C, kernel=kernel, stop="gap", tol=1e-7).fit(X, y)
        assert machine.converged_
        assert machine.primal_objective_ == pytest.approx(cold.primal_objective_, rel=1e-6)
        assert_certified(machine, X, y)


@every_machine
def test_loss_may_change_between_warm_fits(Machine):
    X, y = overlapping(n=200, n_classes=3)
    machine = Machine(C=1.0, warm_start=True, stop="gap", tol=1e-7).fit(X, y)
    for loss in ("squared_hinge", "hinge"):
        machine.set_params(loss=loss).fit(X, y)
        cold = Machine(C=1.0, loss=loss, stop="gap", tol=1e-7).fit(X, y)
        assert machine.primal_objective_ == pytest.approx(cold.primal_objective_, rel=1e-6)


@every_machine
def test_threads_do_not_change_a_bit(Machine):
    X, y = overlapping(n=400, n_classes=4)
    one, three = (squared(Machine, n_jobs=threads).fit(X, y) for threads in (1, 3))
    assert fitted_bits(one, X) == fitted_bits(three, X)


@every_machine
def test_models_on_disk_keep_the_loss(Machine, tmp_path):
    X, y = iris()
    machine = squared(Machine).fit(X, y)
    save_model(machine, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert loaded.loss == "squared_hinge"
    np.testing.assert_array_equal(loaded.decision_function(X), machine.decision_function(X))
    assert_certified(loaded, X, y, gap=1e-2)


@every_machine
def test_searches_find_what_single_fits_find(Machine):
    X, y = overlapping(n=240, n_classes=3)
    grid = {"C": [0.01, 0.3, 10.0, 300.0], "gamma": [0.05, 0.5]}
    search = KernelSearchCV(squared(Machine, tol=1e-6), grid, cv=3).fit(X, y)
    plain = GridSearchCV(squared(Machine, tol=1e-6), grid, cv=3).fit(X, y)
    ours, theirs = search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    assert search.cv_results_["params"] == plain.cv_results_["params"]
    np.testing.assert_allclose(ours, theirs, atol=1.5 / len(y))


@pytest.mark.parametrize(("kernel", "bias"), [("rbf", "free"), ("linear", "free"), ("linear", "regularized")])
def test_several_labels_are_a_machine_each(kernel, bias):
    X, y = iris()
    labels = np.column_stack([y == 0, y != 1, X[:, 1] > 3.0]).astype(int)
    machine = squared(OneVsRestSVC, kernel=kernel, bias=bias, tol=1e-8).fit(X, labels)
    assert_certified(machine, X, labels)
    for column, own in enumerate(labels.T):
        alone = squared(OneVsRestSVC, kernel=kernel, bias=bias, tol=1e-8).fit(X, own)
        scores = machine.decision_function(X)[:, column]
        near = np.sqrt(2e-8 * alone.primal_objective_) * (1.0 + np.linalg.norm(X, axis=1).max())  # what the gaps allow
        np.testing.assert_allclose(scores, alone.decision_function(X), atol=2.0 * near)


def test_probabilities_come_from_held_out_values():
    X, y = iris()
    machine = squared(OneVsOneSVC, decision="coupling").fit(X, y)
    probabilities = machine.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(machine.classes_[probabilities.argmax(axis=1)], machine.predict(X))
    assert np.log(probabilities[np.arange(len(y)), y]).mean() > -0.2


def test_joint_svc_is_the_machine_of_its_parts():
    X, y = iris()
    for aggregation, Machine in (("sum", WestonWatkinsSVC), ("max", CrammerSingerSVC)):
        parts = squared(JointSVC, aggregation=aggregation).fit(X, y)
        whole = squared(Machine, bias="regularized").fit(X, y)
        np.testing.assert_array_equal(parts.dual_coef_, whole.dual_coef_)


@pytest.mark.parametrize("parameters", [{"margins": "absolute"}, {"margins": "absolute", "reinforced": 0.5}])
def test_absolute_margins_have_no_squares(parameters):
    with pytest.raises(ValueError, match=r"squared_hinge.*needs margins='relative'"):
        JointSVC(loss="squared_hinge", **parameters).fit(*iris())


def test_solvers_for_plain_hinges_say_so():
    X, y = iris()
    with pytest.raises(ValueError, match=r"cutting-plane.*needs loss='hinge'"):
        WestonWatkinsSVC(loss="squared_hinge", kernel="linear", solver="cutting-plane").fit(X, y)
    with pytest.raises(ValueError, match="simplex"):
        CrammerSingerSVC(loss="squared_hinge", kernel="linear", solver="exponentiated-gradient").fit(X, y)


@pytest.mark.parametrize("loss", [losses.SquaredWestonWatkins(1.5), losses.SquaredCrammerSinger()], ids=str)
def test_conjugate_term_is_that_of_the_loss(loss):
    """With ``h`` the hinges, ``C L(h) + q(a) >= a'h`` for all rows a >= 0, and there is equality at the slopes."""
    rng = np.random.default_rng(0)
    labels, cost, k = np.array([1]), np.array([0.7]), 4
    own = labels[0]
    for _ in range(200):
        scores = rng.normal(size=(1, k))
        hinges = np.maximum(0.0, loss.margin - (scores[0, own] - scores[0]))
        hinges[own] = 0.0
        if isinstance(loss, losses.SquaredWestonWatkins):
            slopes = 2.0 * cost[0] * hinges
        else:
            slopes = np.where(np.arange(k) == hinges.argmax(), 2.0 * cost[0] * hinges.max(), 0.0)
        for a, tight in ((slopes, True), (rng.exponential(size=k) * (np.arange(k) != own), False)):
            row = -a[None, :].copy()
            row[0, own] = a.sum()
            young = cost[0] * loss.values(scores, labels)[0] + loss.conjugate(row, labels, cost) - a @ hinges
            assert abs(young) < 1e-12 if tight else young > -1e-12
