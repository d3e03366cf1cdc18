"""UncertaintySVC: the pairs it chooses and the classes it gives, against the plain algorithm on scikit-learn's SVC."""

import copy
import time

import numpy as np
import pytest
from reference.compare import fitted_bits
from reference.data import digits, iris, overlapping, random_classes, wine
from reference.kernels import gamma_value, kernel_matrix
from reference.uncertainty import choose, nearest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from polymargin import OneVsOneSVC, UncertaintySVC, certify
from polymargin.decision import ColumnDistances, column_scores, pair_list
from polymargin.formulations import chosen_pairs

DATA = {"iris": iris, "wine": wine, "digits": lambda: digits(500), "overlapping": lambda: overlapping(n=400)}
ALL_PROBES = 10**6


def pair_machine(X, y, i, j, C, gamma):
    """scikit-learn's machine for two classes, the first being positive."""
    rows = np.flatnonzero((y == i) | (y == j))
    return SVC(C=C, gamma=gamma, tol=1e-8).fit(X[rows], y[rows] == i)


def said(values, answers):
    """What pairs with these decision values answer."""
    return values >= 0 if answers == "signs" else np.interp(values, [-1, 1], [0, 1])


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("max_pairs", [0.5, 1.0, 4])
@pytest.mark.parametrize("min_distance", [0.8, np.inf])
@pytest.mark.parametrize("answers", ["signs", "margins"])
def test_pairs_matrix_and_classes_are_those_of_the_plain_algorithm(name, max_pairs, min_distance, answers):
    X, y = DATA[name]()
    k, C = len(np.unique(y)), 3.0
    gamma = gamma_value("scale", X)
    params = {"max_pairs": max_pairs, "min_distance": min_distance, "probe_size": ALL_PROBES, "answers": answers}
    machine = UncertaintySVC(C=C, tol=1e-6, random_state=3, **params).fit(X, y)
    every = k * (k - 1) // 2
    most = min(max_pairs, every) if isinstance(max_pairs, int) else int(np.ceil(max_pairs * every))
    plain = {}

    def asked(i, j):
        plain[i, j] = pair_machine(X, y, i, j, C, gamma)
        return said(plain[i, j].decision_function(X), answers)

    trained, matrix, distances = choose(machine.pairs_[0], asked, y, k, most, min_distance)
    assert machine.pairs_.tolist() == [list(pair) for pair in trained]
    exact = 1e-12 if answers == "signs" else 1e-5  # shares are counts
    np.testing.assert_allclose(machine.decision_matrix_, matrix, atol=exact)
    np.testing.assert_allclose(machine.distances_, distances, atol=10 * exact)
    X_new = X + 0.3 * np.random.default_rng(0).normal(size=X.shape)
    values = np.column_stack([plain[pair].decision_function(X_new) for pair in trained])
    np.testing.assert_allclose(machine.pairwise_decision_function(X_new), values, atol=1e-4)
    if answers == "signs":
        clear = np.abs(values).min(axis=1) > 1e-4
    else:
        distance = np.linalg.norm(said(values, answers)[:, :, None] - matrix[None], axis=1)
        clear = np.diff(np.sort(distance, axis=1)[:, :2])[:, 0] > 1e-3
    assert clear.sum() > 0.9 * len(X)
    np.testing.assert_array_equal(machine.predict(X_new)[clear], nearest(said(values, answers), matrix)[clear])


def test_probes_are_training_examples_and_at_most_so_many():
    X, y = digits(600)
    machine = UncertaintySVC(probe_size=7, random_state=1).fit(X, y)
    counts = machine.decision_matrix_ * 7
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    many = UncertaintySVC(probe_size=ALL_PROBES, random_state=1).fit(X, y)
    for p, pair in enumerate(many.pairs_):
        positive = many.pairwise_decision_function(X)[:, p] >= 0
        for c in range(10):
            assert many.decision_matrix_[p, c] == pytest.approx(positive[y == c].mean())
        assert many.decision_matrix_[p, pair[0]] > 0.9 > 0.1 > many.decision_matrix_[p, pair[1]]


def test_the_largest_score_is_the_prediction_and_scores_are_distances():
    X, y = random_classes(6, n=180, seed=4)
    machine = UncertaintySVC(max_pairs=7, min_distance=np.inf).fit(X, y)
    scores = machine.decision_function(X)
    np.testing.assert_array_equal(machine.classes_[scores.argmax(axis=1)], machine.predict(X))
    answers = machine.pairwise_decision_function(X) >= 0
    expected = np.linalg.norm(answers[:, :, None] - machine.decision_matrix_[None], axis=1)
    np.testing.assert_allclose(-scores, expected, atol=1e-6)


def test_a_tie_goes_to_the_smaller_index():
    # The same shares in another order: as far from no answer at all, though not to the last bit.
    matrix = np.array([[4, 17, 22, 26, 16], [22, 26, 16, 17, 4]]).T / 30
    answers = np.zeros((1, 5), dtype=bool)
    squares = (matrix**2).sum(axis=0)
    assert squares[0] != squares[1]
    scores = column_scores(answers, matrix)
    assert scores[0, 0] == scores[0, 1]
    assert column_scores(answers, matrix[:, ::-1]).argmax() == 0
    distances = ColumnDistances(4)
    distances.add(np.array([0, 1]), np.array([1.0, 0.0, 0.5, 0.5]))
    assert distances.nearest()[0].tolist() == [2, 3]
    distances.add(np.array([2, 3]), np.array([0.5, 0.5, 1.0, 0.0]))
    pair, least = distances.nearest()  # the other four are equally far
    assert pair.tolist() == [0, 2]
    assert least == pytest.approx(np.sqrt(0.5))


def test_probes_give_the_same_answers_without_room_for_their_kernel_values(monkeypatch):
    X, y = digits(500)
    ample = UncertaintySVC(min_distance=np.inf, answers="margins").fit(X, y)
    monkeypatch.setattr(chosen_pairs, "_SHARE_OF_PROBES", 1e-4)  # of the memory, which is enough for some
    tight = UncertaintySVC(min_distance=np.inf, answers="margins", cache_size=10).fit(X, y)
    monkeypatch.setattr(chosen_pairs, "_SHARE_OF_PROBES", 0.0)
    none = UncertaintySVC(min_distance=np.inf, answers="margins").fit(X, y)
    assert ample.n_kernel_evaluations_ < none.n_kernel_evaluations_
    for other in (tight, none):
        np.testing.assert_array_equal(other.pairs_, ample.pairs_)
        np.testing.assert_allclose(other.decision_matrix_, ample.decision_matrix_, atol=1e-9)


def test_margins_lose_less_than_signs_at_half_the_pairs():
    X, y = digits(1500)
    train, test = slice(0, 1000), slice(1000, None)
    rates = {
        answers: np.mean(
            [
                UncertaintySVC(C=10, min_distance=np.inf, answers=answers, random_state=seed)
                .fit(X[train], y[train])
                .score(X[test], y[test])
                for seed in range(3)
            ]
        )
        for answers in ("signs", "margins")
    }
    all_pairs = OneVsOneSVC(C=10).fit(X[train], y[train]).score(X[test], y[test])
    assert all_pairs - rates["margins"] < 0.5 * (all_pairs - rates["signs"])


def test_no_pair_is_trained_twice_and_all_of_them_are_one_against_one():
    X, y = digits(400)
    machine = UncertaintySVC(max_pairs=1.0, min_distance=np.inf, tol=1e-8).fit(X, y)
    assert sorted(map(tuple, machine.pairs_.tolist())) == list(map(tuple, pair_list(10).tolist()))
    assert machine.distances_[-1] == np.inf
    plain = OneVsOneSVC(tol=1e-8).fit(X, y)
    order = np.lexsort(machine.pairs_.T[::-1])
    np.testing.assert_allclose(
        machine.pairwise_decision_function(X)[:, order], plain.pairwise_decision_function(X), atol=1e-6
    )
    assert machine.dual_objective_ == pytest.approx(plain.dual_objective_, rel=1e-9)
    np.testing.assert_array_equal(np.sort(machine.support_), np.sort(plain.support_))


@pytest.mark.parametrize(
    ("max_pairs", "expected"), [(0.5, 23), (1.0, 45), (0.01, 1), (0.2, 9), (1, 1), (17, 17), (99, 45)]
)
def test_max_pairs_is_a_share_rounded_up_or_a_number(max_pairs, expected):
    X, y = digits(300)
    assert len(UncertaintySVC(max_pairs=max_pairs, min_distance=np.inf).fit(X, y).pairs_) == expected


def test_min_distance_stops():
    X, y = digits(500)
    free = UncertaintySVC(max_pairs=1.0, min_distance=np.inf).fit(X, y)
    stopped = UncertaintySVC(max_pairs=1.0, min_distance=0.8).fit(X, y)
    n = len(stopped.pairs_)
    assert 1 < n < 45
    assert stopped.distances_[-1] > 0.8 >= stopped.distances_[:-1].max()
    np.testing.assert_array_equal(stopped.pairs_, free.pairs_[:n])
    np.testing.assert_array_equal(stopped.distances_, free.distances_[:n])
    assert (np.diff(free.distances_[:-1]) > -1.0).all()
    at_once = UncertaintySVC(max_pairs=1.0, min_distance=0).fit(X, y)
    assert len(at_once.pairs_) == np.flatnonzero(free.distances_ > 0)[0] + 1


@pytest.mark.parametrize("max_pairs", [0.5, 1.0, 1])
def test_two_classes_are_the_binary_machine(max_pairs):
    X, y = random_classes(2, n=90, seed=1)
    machine = UncertaintySVC(max_pairs=max_pairs).fit(X, y)
    plain = OneVsOneSVC().fit(X, y)
    assert machine.pairs_.tolist() == [[0, 1]]
    np.testing.assert_array_equal(machine.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(machine.predict(X), plain.predict(X))
    np.testing.assert_array_equal(machine.dual_coef_, plain.dual_coef_)
    assert machine.distances_.tolist() == [np.inf]


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "precomputed", "callable"])
def test_the_certificate_is_that_of_the_trained_pairs(kernel):
    X, y = wine()
    data = kernel_matrix(X, X, "rbf", gamma=0.05) if kernel == "precomputed" else X
    kind = (lambda A, B: A @ B.T) if kernel == "callable" else kernel
    machine = UncertaintySVC(C=2.0, kernel=kind, tol=1e-6).fit(data, y)
    found = certify(machine, data, y)
    assert found.primal_objective == pytest.approx(machine.primal_objective_, rel=1e-8)
    assert found.dual_objective == pytest.approx(machine.dual_objective_, rel=1e-8)
    assert found.infeasibility < 1e-10
    assert 0 <= machine.duality_gap_ < 1e-5
    if kernel == "linear":
        np.testing.assert_allclose(
            X @ machine.coef_.T + machine.intercept_, machine.pairwise_decision_function(X), atol=1e-8
        )


@pytest.mark.parametrize("kernel", ["precomputed", "callable", "csr"])
def test_kernels_from_elsewhere_and_sparse_rows_choose_the_same_pairs(kernel):
    X, y = digits(400)
    plain = UncertaintySVC(kernel="linear", C=0.1, tol=1e-6).fit(X, y)
    if kernel == "csr":
        other = UncertaintySVC(kernel="linear", C=0.1, tol=1e-6).fit(sparse.csr_array(X), y)
        queries = sparse.csr_array(X)
    elif kernel == "callable":
        other, queries = UncertaintySVC(kernel=lambda A, B: A @ B.T, C=0.1, tol=1e-6).fit(X, y), X
    else:
        other, queries = UncertaintySVC(kernel="precomputed", C=0.1, tol=1e-6).fit(X @ X.T, y), X @ X.T
    np.testing.assert_array_equal(other.pairs_, plain.pairs_)
    np.testing.assert_array_equal(other.decision_matrix_, plain.decision_matrix_)
    np.testing.assert_array_equal(other.predict(queries), plain.predict(X))


def test_random_state_draws_the_first_pair_and_none_is_always_the_same():
    X, y = digits(300)
    first = {tuple(UncertaintySVC(max_pairs=1, random_state=seed).fit(X, y).pairs_[0]) for seed in range(20)}
    assert len(first) > 8
    assert fitted_bits(UncertaintySVC().fit(X, y), X) == fitted_bits(UncertaintySVC().fit(X, y), X)
    generator = np.random.RandomState(0)
    one, two = (UncertaintySVC(random_state=generator).fit(X, y) for _ in range(2))
    assert not np.array_equal(one.pairs_, two.pairs_)


@pytest.mark.parametrize("cache_size", ["auto", 1])
def test_bit_identical_for_any_number_of_threads(cache_size):
    X, y = overlapping(n=1500, n_classes=8)
    params = {"C": 2.0, "cache_size": cache_size, "min_distance": np.inf}
    one = UncertaintySVC(n_jobs=1, **params).fit(X, y)
    for n_jobs in (2, 4):
        other = UncertaintySVC(n_jobs=n_jobs, **params).fit(X, y)
        assert fitted_bits(other, X) == fitted_bits(one, X)
        np.testing.assert_array_equal(other.pairs_, one.pairs_)
        np.testing.assert_array_equal(other.decision_matrix_, one.decision_matrix_)


def test_kernel_values_of_a_class_serve_all_its_pairs():
    X, y = overlapping(n=2000, n_classes=4)
    machine = UncertaintySVC(max_pairs=1.0, min_distance=np.inf, probe_size=1).fit(X, y)
    of_class = np.bincount(y)
    within, between = (of_class * (of_class + 1) // 2).sum(), (np.sum(of_class) ** 2 - (of_class**2).sum())
    probes = 4 * sum(len(machine.model_.terms(p)[0]) for p in range(6))
    assert machine.n_kernel_evaluations_ <= within + between + probes


def test_a_warm_start_reaches_the_same_answer_sooner():
    X, y = overlapping(n=1500)
    params = {"tol": 1e-5, "min_distance": np.inf}
    cold = UncertaintySVC(C=2.0, **params).fit(X, y)
    warm = UncertaintySVC(C=1.9, warm_start=True, **params).fit(X, y).set_params(C=2.0).fit(X, y)
    shared = {tuple(p) for p in warm.pairs_} & {tuple(p) for p in cold.pairs_}
    assert len(shared) == len(cold.pairs_)
    assert warm.n_iter_.sum() < 0.7 * cold.n_iter_.sum()
    assert warm.dual_objective_ == pytest.approx(cold.dual_objective_, rel=1e-5)


@pytest.mark.parametrize("limit", [{"time_limit": 0.05}, {"max_iter": 3}])
def test_limits_hold_for_the_whole_fit(limit):
    X, y = overlapping(n=4000, n_classes=10)
    machine = UncertaintySVC(C=1e4, tol=1e-8, min_distance=np.inf, **limit)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    assert machine.stop_reason_ == next(iter(limit))
    assert not machine.converged_
    assert len(machine.pairs_) == len(machine.intercept_) == len(machine.decision_matrix_) >= 1
    assert machine.predict(X[:5]).shape == (5,)
    if "time_limit" in limit:
        assert len(machine.pairs_) < 23
        assert time.perf_counter() - begin < 5
    else:
        assert len(machine.pairs_) == 23


def test_an_impossible_hard_margin_is_refused():
    X, y = overlapping(n=300)
    with pytest.raises(ValueError, match="separated"):
        UncertaintySVC(C=np.inf, kernel="linear").fit(X, y)


def test_weights_count_in_the_shares():
    X, y = random_classes(4, n=80, seed=2)
    weight = np.where(np.arange(len(y)) % 3 == 0, 3.0, 1.0)
    machine = UncertaintySVC(min_distance=np.inf, max_pairs=1.0).fit(X, y, sample_weight=weight)
    positive = machine.pairwise_decision_function(X) >= 0
    for c in range(4):
        share = np.average(positive[y == c], axis=0, weights=weight[y == c])
        np.testing.assert_allclose(machine.decision_matrix_[:, c], share, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("max_pairs", value) for value in (0, 0.0, -1, -0.5, 1.5, np.nan, np.inf, "half", None)),
        *(("min_distance", value) for value in (-0.1, np.nan, "0.8", None)),
        *(("probe_size", value) for value in (0, -1, 1.5, "30", None)),
    ],
)
def test_a_wrong_parameter_is_named(name, value):
    machine = UncertaintySVC(**{name: value})
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        machine.fit(*iris())
    assert not hasattr(machine, "pairs_")


TAMPERED = {
    "a pair too few": ("pairs_", lambda a: a[:-1]),
    "a class that does not exist": ("pairs_", lambda a: a + 1),
    "pairs the wrong way round": ("pairs_", lambda a: a[:, ::-1].copy()),
    "pairs of numbers with fractions": ("pairs_", lambda a: a + 0.5),
    "pairs in one column": ("pairs_", lambda a: a[:, :1]),
    "no pairs": ("pairs_", lambda a: a[:0]),
    "a row too few": ("decision_matrix_", lambda a: a[:-1]),
    "a column too few": ("decision_matrix_", lambda a: a[:, :-1]),
    "shares beyond one": ("decision_matrix_", lambda a: a + 2),
    "shares that are no numbers": ("decision_matrix_", lambda a: a * np.nan),
}


@pytest.mark.parametrize("kind", TAMPERED)
def test_a_tampered_machine_refuses_to_predict(kind):
    X, y = wine()
    machine = UncertaintySVC().fit(X, y)
    name, change = TAMPERED[kind]
    tampered = copy.deepcopy(machine)
    setattr(tampered, name, change(getattr(machine, name)))
    for method in ("predict", "decision_function", "pairwise_decision_function"):
        with pytest.raises(ValueError, match="damaged"):
            getattr(tampered, method)(X)
