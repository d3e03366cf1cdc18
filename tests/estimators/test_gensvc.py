"""GenSVM: its loss by definition, its optimum by a quadratic program and by majorisation, and its bound."""

import warnings

import numpy as np
import piqp
import pytest
import scipy.sparse as sp
from reference.compare import fitted_bits
from reference.data import iris, overlapping, random_classes, wine
from reference.gensvm import corners, majorise, objective
from reference.kernels import kernel_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from polymargin import GenSVC, certify, load_model, save_model
from polymargin.solvers import HuberNormLoss, Objective, simplex
from polymargin.support.blocks import row_blocks

every_bias = pytest.mark.parametrize("bias", ["free", "regularized", None])


def features_of(K):
    """Return features whose products are the kernel's values."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-12 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def least_objective(Z, codes, costs, kappa, bias):
    """Return the least objective for p = 1.

    A Huber hinge is the least ``a^2 / 2(kappa + 1) + b`` with ``a + b >= 1 - q`` and ``b >= 0``.
    """
    d = Z.shape[1]
    k = int(codes.max()) + 1
    U = simplex(k)
    rows = [(i, U[c] - U[m]) for i, c in enumerate(codes) for m in range(k) if m != c]
    owner = np.array([i for i, _ in rows])
    size, count = (d + 1) * (k - 1), len(rows)
    penalty = np.tile(np.append(np.ones(d), {"regularized": 1.0, "free": 0.0, None: 1.0}[bias]), k - 1)
    P = np.diag(np.concatenate([penalty, costs[owner] / (kappa + 1.0), np.zeros(count)]))
    c = np.concatenate([np.zeros(size + count), costs[owner]])
    G = np.zeros((count, len(c)))
    for r, (i, difference) in enumerate(rows):
        G[r, :size] = np.kron(difference, np.append(Z[i], 0.0 if bias is None else 1.0))
        G[r, [size + r, size + count + r]] = 1.0
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
    solver.settings.max_iter = 500
    low = np.concatenate([np.full(size, -1e30), np.zeros(2 * count)])
    solver.setup(np.asfortranarray(P), c, G=np.asfortranarray(G), h_l=np.ones(count), x_l=low)
    assert solver.solve() == piqp.PIQP_SOLVED
    x = np.asarray(solver.result.x)
    return float(0.5 * x @ P @ x + c @ x)


def test_corners_are_a_regular_simplex():
    for k in (2, 3, 6):
        U = simplex(k)
        distances = np.linalg.norm(U[:, None] - U[None], axis=2)
        np.testing.assert_allclose(distances, 1.0 - np.eye(k), atol=1e-12)
        np.testing.assert_allclose(U.sum(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(U @ U.T, corners(k) @ corners(k).T, atol=1e-12)


@pytest.mark.parametrize("p", [1.0, 1.3, 2.0])
@pytest.mark.parametrize("kappa", [-0.9, 0.0, 3.0])
def test_derivatives_are_those_of_the_definition(p, kappa):
    rng, loss, k = np.random.default_rng(0), HuberNormLoss(p, kappa), 4
    for scores in 2.0 * rng.normal(size=(20, 1, k)):
        label = rng.integers(0, k, 1)
        value, slopes, curvature = loss.evaluate(scores, label)
        q = [scores[0, label[0]] - scores[0, m] for m in range(k) if m != label[0]]
        assert value[0] == pytest.approx(objective(q, p, kappa), rel=1e-12)
        for unit in np.eye(k):
            step = 1e-6 * unit
            ahead, behind = loss.evaluate(scores + step, label), loss.evaluate(scores - step, label)
            assert slopes[0] @ unit == pytest.approx((ahead.values - behind.values)[0] / 2e-6, abs=1e-5)
            bent = (ahead.slopes - behind.slopes)[0] / 2e-6
            np.testing.assert_allclose(loss.product(curvature, label, unit[None])[0], bent, atol=1e-4)


@every_bias
@pytest.mark.parametrize("k", [2, 4])
def test_solution_is_the_optimum_of_the_quadratic_program(bias, k):
    X, y = random_classes(k, n=28, seed=60 + k)
    weight = np.random.default_rng(k).uniform(0.2, 3.0, len(y))
    for C, kappa, kernel in ((0.1, 0.0, "rbf"), (1.0, 2.0, "linear"), (20.0, -0.7, "rbf")):
        machine = GenSVC(C=C, kappa=kappa, bias=bias, gamma=0.3, kernel=kernel, tol=1e-7).fit(X, y, weight)
        Z = features_of(kernel_matrix(X, X, kernel, gamma=0.3))
        best = least_objective(Z, np.unique(y, return_inverse=True)[1], C * weight, kappa, bias)
        assert machine.converged_
        assert machine.primal_objective_ == pytest.approx(best, rel=1e-6)
        assert machine.dual_objective_ <= best * (1 + 1e-8)
        assert machine.dual_objective_ == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_majorisation_leads_to_the_same_optimum(p):
    X, y = iris()
    X, y = StandardScaler().fit_transform(X)[::5], y[::5]
    kappa, C = 0.5, 0.05
    machine = GenSVC(C=C, p=p, kappa=kappa, kernel="linear", tol=1e-8).fit(X, y)
    found = majorise(X, y, p, kappa, 1.0 / (2.0 * len(y) * C), steps=300)
    assert machine.primal_objective_ == pytest.approx(C * len(y) * found, rel=1e-8)
    assert machine.primal_objective_ <= C * len(y) * found * (1 + 1e-8)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
@every_bias
def test_bound_is_below_every_objective(p, bias):
    X, y = overlapping(n=150, n_classes=4)
    for C, kappa in ((1e-3, 5.0), (1.0, 0.0), (100.0, -0.9)):
        best = GenSVC(C=C, p=p, kappa=kappa, bias=bias, tol=1e-7).fit(X, y)
        assert best.converged_
        for steps in (1, 3):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                early = GenSVC(C=C, p=p, kappa=kappa, bias=bias, tol=1e-7, max_iter=steps).fit(X, y)
            assert early.dual_objective_ <= best.primal_objective_ * (1 + 1e-9)
            assert early.primal_objective_ >= best.dual_objective_ * (1 - 1e-9)


@every_bias
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_any_cost_on_any_scale_is_solved(kernel, bias):
    for data in (iris, wine):  # raw: features of wine differ by a factor of a thousand
        X, y = data()
        kept = np.concatenate([np.flatnonzero(y == c)[: 10 + 20 * i] for i, c in enumerate(np.unique(y))])
        for C, p, kappa in ((1e-3, 1.0, 0.0), (1e5, 1.0, 0.0), (1e4, 1.0, -0.99), (1e4, 2.0, 5.0)):
            machine = GenSVC(C=C, p=p, kappa=kappa, kernel=kernel, bias=bias).fit(X[kept], y[kept])
            assert machine.converged_
            assert machine.duality_gap_ <= 1e-3
            assert machine.n_iter_ < 300


def test_sparse_examples_and_many_variables_are_no_different():
    X, y = overlapping(n=150, n_classes=7)  # 900 variables: by conjugate gradients
    many = GenSVC(C=1e3, gamma=0.5, tol=1e-6).fit(X, y)
    assert many.converged_
    sparse = GenSVC(C=1e3, gamma=0.5, tol=1e-6).fit(sp.csr_array(X), y)
    assert sparse.primal_objective_ == pytest.approx(many.primal_objective_, rel=1e-9)
    few = [GenSVC(C=10.0, kernel="linear", tol=1e-6).fit(data, y) for data in (X, sp.csr_array(X))]
    np.testing.assert_allclose(few[0].decision_function(X), few[1].decision_function(X), atol=1e-8)


def test_exact_inverses_are_those_of_the_products():
    rng = np.random.default_rng(5)
    Z, labels = rng.normal(size=(40, 3)), np.arange(40) % 4
    for p, free in ((1.0, True), (1.5, False), (2.0, True)):
        with row_blocks(1) as blocks:
            loss = HuberNormLoss(p, 0.5)
            objective = Objective(Z, labels, rng.uniform(0.5, 2.0, 40), loss, simplex(4), free, blocks)
            point, direction = rng.normal(size=(2, objective.size))
            V, b = objective.split(direction)
            direction = objective.join(V, b - b.mean())
            inverse = objective.exact_inverse(point, lambda: True)
            np.testing.assert_allclose(inverse(objective.hessian_product(point, direction)), direction, atol=1e-9)
            assert objective.exact_inverse(point, lambda: False) is None


@pytest.mark.parametrize("p", [1.0, 1.5])
def test_softer_losses_are_nowhere_larger(p):
    scores, labels = 3.0 * np.random.default_rng(1).normal(size=(200, 3)), np.zeros(200, dtype=int)
    series = HuberNormLoss(p, -0.95).softer(1e4)
    values = np.array([loss.evaluate(scores, labels).values for loss in series])
    assert len(series) > 5
    assert np.all(np.diff(values, axis=0) >= -1e-12)
    assert len(HuberNormLoss(p, 0.0).softer(1.0)) == 1


def test_nearest_corner_is_the_class():
    X, y = wine()
    X = StandardScaler().fit_transform(X)
    machine = GenSVC(p=1.5, kernel="linear").fit(X, y)
    scores = machine.decision_function(X)
    np.testing.assert_allclose(scores.sum(axis=1), 0.0, atol=1e-9)
    v = scores @ simplex(3) * 2.0  # U'U = 1/2
    nearest = np.linalg.norm(v[:, None] - simplex(3)[None], axis=2).argmin(axis=1)
    np.testing.assert_array_equal(machine.classes_[nearest], machine.predict(X))


def test_weights_count_as_copies_and_threads_for_nothing():
    X, y = iris()
    weight = np.arange(len(y)) % 3
    weighted = GenSVC(C=2.0, p=1.5, tol=1e-9).fit(X, y, weight)
    copies = GenSVC(C=2.0, p=1.5, tol=1e-9, gamma=weighted.model_.kernel.gamma)
    copies.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.decision_function(X), copies.decision_function(X), atol=1e-5)
    X, y = overlapping(n=400, n_classes=4)
    one, three = (GenSVC(n_jobs=threads).fit(X, y) for threads in (1, 3))
    assert fitted_bits(one, X) == fitted_bits(three, X)


def test_models_and_warm_starts(tmp_path):
    X, y = wine()
    machine = GenSVC(warm_start=True, tol=1e-7).fit(X, y)
    save_model(machine, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.decision_function(X), machine.decision_function(X))
    again = machine.n_iter_
    assert machine.fit(X, y).n_iter_ <= again
    assert machine.set_params(C=3.0).fit(X, y).primal_objective_ == pytest.approx(
        GenSVC(C=3.0, tol=1e-7).fit(X, y).primal_objective_, rel=1e-6
    )


def test_what_it_cannot_do_is_refused():
    X, y = iris()
    with pytest.raises((TypeError, ValueError), match="dual"):
        certify(GenSVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="C must be finite"):
        GenSVC(C=np.inf).fit(*iris())
