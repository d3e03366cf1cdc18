"""What must not change an answer, on problems that hypothesis draws.

Problems are solved to 1e-6, and decision values compared to ``CLOSE``: far below what a wrong rule would
change, and above what two roads to the same optimum differ by. Problems with every variable at a bound are
left out: there an interval of offsets is optimal. The all-together machines are tried with each bias.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference.compare import offsets_are_unique, optimum, scores
from reference.composition import pairs, upper_bounds
from reference.kernels import gamma_value, kernel_matrix
from scipy import sparse
from sklearn.svm import SVC

from polymargin import (
    CrammerSingerSVC,
    LeeLinWahbaSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    TotalMaximumSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)

CLOSE = 1e-4
TOGETHER = [WestonWatkinsSVC, CrammerSingerSVC, LeeLinWahbaSVC, TotalMaximumSVC]
BIASES = (None, "regularized", "free")
every_machine = pytest.mark.parametrize(
    "Machine", [OneVsOneSVC, OneVsRestSVC, *TOGETHER, LinearProgramSVC, UncertaintySVC, OutputCodeSVC]
)


@dataclass(frozen=True)
class Problem:
    """Rows and classes to fit, fresh rows to score, and a machine's parameters."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    params: dict
    bias: str | None  # of the machines that have a choice

    def machine(self, Machine, **params):
        bias = {"bias": self.bias} if Machine in TOGETHER else {}
        probes = {"probe_size": 1000} if Machine is UncertaintySVC else {}  # all examples: nothing is drawn but a pair
        return Machine(**{"tol": 1e-6, **self.params, **bias, **probes, **params})

    def scores(self, Machine, *, X=None, y=None, X_new=None, sample_weight=None, **params):
        machine = self.machine(Machine, **params)
        y = self.y if y is None else y
        machine.fit(self.X if X is None else X, y, sample_weight=sample_weight)
        bound = upper_bounds(y, machine.C, machine.class_weight, sample_weight)
        assume(offsets_are_unique(machine, y, bound))
        return scores(machine, self.X_new if X_new is None else X_new)


@st.composite
def problems(draw, classes=(2, 4), kernels=("linear", "poly", "rbf"), biases=BIASES):
    """Draw 8 to 14 rows per class of overlapping normal clouds."""
    k = draw(st.integers(*classes))
    per_class = draw(st.integers(8, 14))
    n_features = draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = rng.permutation(np.repeat(np.arange(k), per_class))
    X = rng.normal(size=(k, n_features))[y] + rng.normal(size=(len(y), n_features))
    params = {
        "C": draw(st.sampled_from([0.3, 1.0, 10.0])),
        "kernel": draw(st.sampled_from(kernels)),
        "gamma": 0.3,
    }
    if params["kernel"] == "poly":
        params |= {"degree": 2, "coef0": 1.0, "gamma": 0.1}
    bias = draw(st.sampled_from(biases))
    return Problem(X, y, rng.normal(scale=1.5, size=(25, n_features)), params, bias)


def assert_close(actual, expected, close=CLOSE):
    np.testing.assert_allclose(actual, expected, atol=close * max(1.0, np.abs(expected).max()))


@every_machine
@given(problem=problems(), data=st.data())
def test_order_of_rows(Machine, problem, data):
    order = np.array(data.draw(st.permutations(range(len(problem.y)))))
    assert_close(problem.scores(Machine, X=problem.X[order], y=problem.y[order]), problem.scores(Machine))


@every_machine
@given(problem=problems(), data=st.data())
def test_order_of_features(Machine, problem, data):
    order = np.array(data.draw(st.permutations(range(problem.X.shape[1]))))
    shuffled = problem.scores(Machine, X=problem.X[:, order], X_new=problem.X_new[:, order])
    assert_close(shuffled, problem.scores(Machine))


@every_machine
@given(
    problem=problems(),
    names=st.lists(
        st.text(min_size=1, max_size=5).filter(lambda s: "\0" not in s), min_size=4, max_size=4, unique=True
    ),
)
def test_names_of_classes_that_keep_their_order(Machine, problem, names):
    labels = np.array(sorted(names))
    assume((labels == np.unique(labels)).all())
    np.testing.assert_array_equal(problem.scores(Machine, y=labels[problem.y]), problem.scores(Machine))


@given(problem=problems())
def test_reversed_classes_reverse_the_pairs(problem):
    k = problem.y.max() + 1
    column = {pair: p for p, pair in enumerate(pairs(k))}
    mirrored = [column[k - 1 - j, k - 1 - i] for i, j in pairs(k)]
    reversed_scores = problem.scores(OneVsOneSVC, y=k - 1 - problem.y)
    assert_close(-reversed_scores[:, mirrored], problem.scores(OneVsOneSVC))


@pytest.mark.parametrize("Machine", [OneVsRestSVC, *TOGETHER])
@given(problem=problems(classes=(3, 4)))
def test_reversed_classes_reverse_the_columns(Machine, problem):
    k = problem.y.max() + 1
    assert_close(problem.scores(Machine, y=k - 1 - problem.y)[:, ::-1], problem.scores(Machine))


@every_machine
@given(problem=problems(), gamma=st.sampled_from([0.3, "scale", "auto"]), data=st.data())
def test_a_repeated_row_is_a_weight(Machine, problem, gamma, data):
    n = len(problem.y)
    repeats = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    repeated = problem.scores(
        Machine, X=np.repeat(problem.X, repeats, axis=0), y=np.repeat(problem.y, repeats), gamma=gamma
    )
    assert_close(problem.scores(Machine, sample_weight=repeats, gamma=gamma), repeated)


@every_machine
@given(problem=problems(), gamma=st.sampled_from([0.3, "scale"]), seed=st.integers(0, 1000))
def test_a_row_of_weight_zero_is_absent(Machine, problem, gamma, seed):
    weight = (np.random.default_rng(seed).random(len(problem.y)) < 0.7).astype(float)
    kept = weight > 0
    assume(len(np.unique(problem.y[kept])) == len(np.unique(problem.y)))
    without = problem.scores(Machine, X=problem.X[kept], y=problem.y[kept], gamma=gamma)
    assert_close(problem.scores(Machine, sample_weight=weight, gamma=gamma), without)


@every_machine
@given(problem=problems(), factors=st.lists(st.floats(0.1, 5.0), min_size=4, max_size=4))
def test_class_weight_is_a_sample_weight(Machine, problem, factors):
    by_class = problem.scores(Machine, class_weight=dict(enumerate(factors)))
    assert_close(by_class, problem.scores(Machine, sample_weight=np.array(factors)[problem.y]))


@every_machine
@given(problem=problems(), factor=st.floats(0.1, 10.0))
def test_a_factor_of_all_weights_is_a_factor_of_the_cost(Machine, problem, factor):
    weight = np.full(len(problem.y), factor)
    larger = problem.scores(Machine, C=factor * problem.params["C"])
    assert_close(problem.scores(Machine, sample_weight=weight), larger)


@every_machine
@given(problem=problems(), position=st.integers(0, 2))
def test_a_feature_that_is_always_zero(Machine, problem, position):
    wider = problem.scores(
        Machine,
        X=np.insert(problem.X, position, 0.0, axis=1),
        X_new=np.insert(problem.X_new, position, 0.0, axis=1),
    )
    assert_close(wider, problem.scores(Machine))


@every_machine
@given(problem=problems(kernels=("rbf", "poly")), factor=st.floats(0.01, 100.0))
def test_scaling_of_rows_against_gamma(Machine, problem, factor):
    scaled = problem.scores(
        Machine, X=factor * problem.X, X_new=factor * problem.X_new, gamma=problem.params["gamma"] / factor**2
    )
    assert_close(scaled, problem.scores(Machine))


@every_machine
@given(problem=problems(kernels=("rbf",)), factor=st.floats(0.01, 100.0))
def test_scaling_of_rows_with_gamma_scale(Machine, problem, factor):
    scaled = problem.scores(Machine, X=factor * problem.X, X_new=factor * problem.X_new, gamma="scale")
    assert_close(scaled, problem.scores(Machine, gamma="scale"))


@every_machine
@given(problem=problems(kernels=("linear",), biases=(None, "free")), factor=st.floats(0.1, 10.0))
def test_scaling_of_rows_against_the_cost_of_the_linear_machine(Machine, problem, factor):
    scaled = problem.scores(
        Machine, X=factor * problem.X, X_new=factor * problem.X_new, C=problem.params["C"] / factor**2
    )
    assert_close(scaled, problem.scores(Machine))


@every_machine
@given(problem=problems(kernels=("rbf", "linear")), shift=st.floats(-10.0, 10.0))
def test_translation(Machine, problem, shift):
    free = problem.bias == "free" if Machine in TOGETHER else Machine is not LinearProgramSVC
    assume(problem.params["kernel"] == "rbf" or free)
    moved = problem.scores(Machine, X=problem.X + shift, X_new=problem.X_new + shift)
    assert_close(moved, problem.scores(Machine), close=1e-3)


@every_machine
@given(problem=problems(), seed=st.integers(0, 1000))
def test_rotation(Machine, problem, seed):
    d = problem.X.shape[1]
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    assert_close(
        problem.scores(Machine, X=problem.X @ rotation, X_new=problem.X_new @ rotation),
        problem.scores(Machine),
    )


@every_machine
@given(problem=problems(), index=st.sampled_from([np.int32, np.int64]), density=st.floats(0.2, 1.0))
def test_sparse_is_dense(Machine, problem, index, density):
    keep = np.random.default_rng(0).random(problem.X.shape) < density
    X = problem.X * keep
    X_sparse, new_sparse = sparse.csr_matrix(X), sparse.csr_matrix(problem.X_new)
    for A in (X_sparse, new_sparse):
        A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    assert_close(problem.scores(Machine, X=X_sparse, X_new=new_sparse), problem.scores(Machine, X=X))


@every_machine
@given(problem=problems())
def test_single_precision_is_nearly_double(Machine, problem):
    single = problem.scores(Machine, X=problem.X.astype(np.float32), X_new=problem.X_new.astype(np.float32))
    assert_close(single, problem.scores(Machine), close=1e-3)


@every_machine
@given(problem=problems())
def test_precomputed_and_callable_are_the_kernel_itself(Machine, problem):
    def kernel(A, B):
        names = ("kernel", "gamma", "degree", "coef0")
        return kernel_matrix(A, B, **{name: problem.params[name] for name in names if name in problem.params})

    direct = problem.scores(Machine)
    K, K_new = kernel(problem.X, problem.X), kernel(problem.X_new, problem.X)
    assert_close(problem.scores(Machine, kernel="precomputed", X=K, X_new=K_new), direct)
    assert_close(problem.scores(Machine, kernel=kernel), direct)


@every_machine
@given(problem=problems())
def test_the_independent_optimum(Machine, problem):
    machine = problem.machine(Machine).fit(problem.X, problem.y)
    names = ("kernel", "degree", "coef0")
    params = {name: problem.params[name] for name in names if name in problem.params}
    K = kernel_matrix(problem.X, problem.X, gamma=gamma_value(machine.gamma, problem.X), **params)
    best = optimum(machine, K, problem.y, upper_bounds(problem.y, machine.C))
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-6)
    assert machine.dual_objective_ <= machine.primal_objective_ * (1 + 1e-12)
    assert machine.duality_gap_ < 1e-4


@pytest.mark.parametrize("Machine", [OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC])
@given(problem=problems(classes=(2, 2), biases=("free",)))
def test_two_classes_are_the_binary_machine(Machine, problem):
    machine = problem.machine(Machine).fit(problem.X, problem.y)
    assume(offsets_are_unique(machine, problem.y, upper_bounds(problem.y, machine.C)))
    # At 1e-5 scikit-learn's own scores are off by more than CLOSE now and then.
    binary = SVC(tol=1e-7, max_iter=1_000_000, **problem.params).fit(problem.X, problem.y)
    assert_close(machine.decision_function(problem.X_new), binary.decision_function(problem.X_new))


@given(problem=problems(classes=(3, 4)))
def test_a_class_left_out_leaves_the_other_pairs_alone(problem):
    k = problem.y.max() + 1
    kept = problem.y < k - 1
    without = problem.scores(OneVsOneSVC, X=problem.X[kept], y=problem.y[kept])
    columns = [p for p, (_, j) in enumerate(pairs(k)) if j < k - 1]
    assert_close(without, problem.scores(OneVsOneSVC)[:, columns])


@given(problem=problems(classes=(3, 4)))
def test_coefficients_of_every_problem_sum_to_zero(problem):
    rest = OneVsRestSVC(**problem.params).fit(problem.X, problem.y)
    bound = problem.params["C"]
    np.testing.assert_allclose(rest.dual_coef_.sum(axis=1), 0.0, atol=1e-9 * bound * len(problem.y))
    one = OneVsOneSVC(**problem.params).fit(problem.X, problem.y)
    assert np.abs(one.dual_coef_.sum()) <= 1e-9 * bound * len(problem.y)
    for machine in (rest, one):
        assert np.abs(machine.dual_coef_).max() <= bound * (1 + 1e-12)


@pytest.mark.parametrize("Machine", TOGETHER)
@given(problem=problems())
def test_classes_share_out_what_they_get(Machine, problem):
    machine = problem.machine(Machine, tol=1e-3).fit(problem.X, problem.y)
    size = 1e-9 * problem.params["C"] * len(problem.y)
    np.testing.assert_allclose(machine.dual_coef_.sum(axis=0), 0.0, atol=size)
    if problem.bias == "free":
        np.testing.assert_allclose(machine.dual_coef_.sum(axis=1), 0.0, atol=size)
    else:
        expected = machine.dual_coef_.sum(axis=1) if problem.bias == "regularized" else np.zeros(len(machine.classes_))
        shown = expected[1:] if len(expected) == 2 else expected
        np.testing.assert_allclose(machine.intercept_, shown, atol=size)


@every_machine
@given(problem=problems(), n_jobs=st.sampled_from([1, 2, 3]), cache_size=st.sampled_from([1, 50]))
def test_resources(Machine, problem, n_jobs, cache_size):
    assert_close(problem.scores(Machine, n_jobs=n_jobs, cache_size=cache_size), problem.scores(Machine))
