"""OutputCodeSVC: the problems of a code against quadratic programs, and the three decodings against loops."""

import numpy as np
import pytest
from reference.certificate import audit_problems, code_problems
from reference.compare import assert_optimal, fitted_bits, oracle, training_problem
from reference.data import digits, iris, random_classes, wine
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.multiclass import OutputCodeClassifier
from sklearn.svm import SVC

from polymargin import OneVsOneSVC, OneVsRestSVC, OutputCodeSVC, certify, load_model, save_model
from polymargin.decision import code_probabilities
from polymargin.selection import KernelSearchCV

CODES = ["one-vs-one", "one-vs-rest", "dense", "sparse", "exhaustive"]
MIXED = np.array([[1, 1, 0], [-1, 1, 1], [0, -1, -1]])


def plain_scores(decoding, values, code):
    """Return the score of each class by loops over rows, classes and problems."""
    scores = np.zeros((len(values), len(code)))
    for i, row in enumerate(values):
        for c, word in enumerate(code):
            for f, m in zip(row, word, strict=True):
                loss = (1 - np.sign(m * f)) / 2 if decoding == "hamming" else max(0.0, 1 - m * f)
                scores[i, c] -= loss
    return scores


@pytest.mark.parametrize("code", [*CODES, MIXED], ids=str)
def test_every_problem_is_optimal(code):
    X, y = random_classes(3, n=45, seed=1)
    machine = OutputCodeSVC(C=2.0, code=code, tol=1e-8).fit(X, y)
    best, K = oracle(machine, X, y)
    assert_optimal(machine, X, y, best.primal, rel=1e-6, infeasibility=1e-9)
    np.testing.assert_allclose(machine.problem_decision_function(X), best.scores(K), atol=1e-4)


@pytest.mark.parametrize("code", CODES)
def test_the_certificate_is_that_of_the_fit(code):
    X, y = wine()
    machine = OutputCodeSVC(code=code).fit(X, y)
    proof = certify(machine, X, y)
    assert proof.primal_objective == pytest.approx(machine.primal_objective_, rel=1e-9)
    assert proof.dual_objective == pytest.approx(machine.dual_objective_, rel=1e-9)
    assert proof.infeasibility < 1e-12


def test_pairs_with_hamming_decoding_are_one_against_one():
    X, y = digits(600)
    code, pairs = OutputCodeSVC(C=10, gamma=0.001).fit(X[:400], y[:400]), OneVsOneSVC(C=10, gamma=0.001)
    pairs.fit(X[:400], y[:400])
    np.testing.assert_array_equal(code.predict(X), pairs.predict(X))
    assert code.dual_objective_ == pairs.dual_objective_
    np.testing.assert_array_equal(code.support_, pairs.support_)


def test_each_against_the_rest_with_loss_decoding_is_one_against_all():
    X, y = digits(600)
    code = OutputCodeSVC(C=10, gamma=0.001, code="one-vs-rest", decoding="loss").fit(X[:400], y[:400])
    rest = OneVsRestSVC(C=10, gamma=0.001).fit(X[:400], y[:400])
    assert code.dual_objective_ == pytest.approx(rest.dual_objective_, rel=1e-6)
    # Two classes differ by max(0, 1 + f) - max(0, 1 - f) of their values, which grows with f.
    np.testing.assert_array_equal(code.predict(X), rest.predict(X))


@pytest.mark.parametrize("decoding", ["hamming", "loss"])
@pytest.mark.parametrize("code", [*CODES, MIXED], ids=str)
def test_scores_are_those_of_loops(code, decoding):
    X, y = random_classes(3, n=60, seed=2)
    machine = OutputCodeSVC(code=code, decoding=decoding).fit(X, y)
    scores = plain_scores(decoding, machine.problem_decision_function(X), machine.code_book_)
    np.testing.assert_allclose(machine.decision_function(X), scores, atol=1e-9)
    sure = np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0] > 1e-9
    np.testing.assert_array_equal(machine.predict(X)[sure], scores.argmax(axis=1)[sure])


def test_ties_go_to_the_class_that_sorts_first():
    X, y = random_classes(5, n=150, seed=3)
    machine = OutputCodeSVC(code="one-vs-rest").fit(X, y)  # where no class is positive, all are alike
    scores = machine.decision_function(X)
    tied = (scores == scores.max(axis=1, keepdims=True)).sum(axis=1) > 1
    assert tied.sum() >= 5
    np.testing.assert_array_equal(machine.predict(X)[tied], scores[tied].argmax(axis=1))


@pytest.mark.parametrize("decoding", ["hamming", "loss", "probability"])
def test_a_row_has_its_class_whatever_rows_are_beside_it(decoding):
    X, y = digits(500)
    machine = OutputCodeSVC(code="dense", decoding=decoding, gamma=0.001).fit(X[:300], y[:300])
    alone = np.concatenate([machine.predict(row[None]) for row in X])
    np.testing.assert_array_equal(machine.predict(X), alone)


@pytest.mark.parametrize("code", [[[1], [-1]], [[-1], [1]], *CODES], ids=str)
@pytest.mark.parametrize("decoding", ["hamming", "loss", "probability"])
def test_two_classes_have_one_problem(code, decoding):
    X, y = random_classes(2, n=60, seed=4)
    machine = OutputCodeSVC(code=code, decoding=decoding, tol=1e-6).fit(X, y)
    assert machine.code_book_.shape == (2, 1)
    values = machine.decision_function(X)
    assert values.shape == (60,)
    np.testing.assert_array_equal(machine.predict(X), (values > 0).astype(int))
    if decoding != "probability":
        np.testing.assert_allclose(values, OneVsOneSVC(tol=1e-6).fit(X, y).decision_function(X), atol=1e-4)


# Probabilities.


def best_likelihood(r, code):
    """Return the largest likelihood that a general optimiser finds, from several starts."""

    def loss(exponents):
        p = np.exp(exponents - exponents.max())
        p /= p.sum()
        up, down = p @ (code > 0), p @ (code < 0)
        seen = np.sum(r * np.log(up / (up + down)) + (1 - r) * np.log(down / (up + down)))
        return -seen - 0.01 * np.log(p).mean()

    starts = np.random.default_rng(0).normal(size=(4, len(code)))
    return -min(minimize(loss, start, method="BFGS").fun for start in starts)


@pytest.mark.parametrize("kind", ["one-vs-one", "one-vs-rest", "dense", "sparse"])
def test_probabilities_are_the_likeliest(kind):
    rng = np.random.default_rng(5)
    X, y = random_classes(5, n=100, seed=5)
    code = OutputCodeSVC(code=kind).fit(X, y).code_book_
    positive = rng.uniform(0.02, 0.98, (8, code.shape[1]))
    p = code_probabilities(positive, code)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p > 0).all()
    up, down = p @ (code > 0), p @ (code < 0)
    reached = np.sum(positive * np.log(up / (up + down)) + (1 - positive) * np.log(down / (up + down)), axis=1)
    reached += 0.01 * np.log(p).mean(axis=1)
    for r, value in zip(positive, reached, strict=True):
        assert value >= best_likelihood(r, code) - 1e-7


def test_probabilities_that_fit_are_found_again():
    code = OutputCodeSVC(code="dense").fit(*random_classes(6, n=120, seed=6)).code_book_
    p = np.random.default_rng(6).dirichlet(np.ones(6), 50)
    up, down = p @ (code > 0), p @ (code < 0)
    np.testing.assert_allclose(code_probabilities(up / (up + down), code), p, atol=5e-3)  # the prior


@pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest", "dense"])
def test_probabilities_say_how_sure_the_machine_is(code):
    X, y = digits(1200)
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    machine = OutputCodeSVC(C=10, code=code, decoding="probability").fit(X_train, y_train)
    p = machine.predict_proba(X_test)
    np.testing.assert_array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(X_test))
    np.testing.assert_allclose(machine.predict_log_proba(X_test), np.log(p))
    coupled = OneVsOneSVC(C=10, decision="coupling").fit(X_train, y_train)
    assert log_loss(y_test, p) < 2 * log_loss(y_test, coupled.predict_proba(X_test))


def test_probabilities_are_asked_for_before_the_fit():
    X, y = iris()
    machine = OutputCodeSVC().fit(X, y)
    assert not hasattr(machine, "predict_proba")
    with pytest.raises(NotFittedError, match="decoding='probability' was set afterwards"):
        machine.set_params(decoding="probability").predict(X)


# Codes.


@pytest.mark.parametrize(("kind", "k", "problems"), [("dense", 10, 34), ("sparse", 10, 50), ("exhaustive", 5, 15)])
def test_made_codes_have_the_problems_of_the_literature(kind, k, problems):
    code = OutputCodeSVC(code=kind).fit(*random_classes(k, n=10 * k)).code_book_
    assert code.shape == (k, problems)
    assert (code.max(axis=0) == 1).all()
    assert (code.min(axis=0) == -1).all()
    assert (0 in code) == (kind == "sparse")
    unsigned = code * code[(code != 0).argmax(axis=0), np.arange(problems)]
    assert len(np.unique(unsigned, axis=1).T) == problems


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("k", [3, 4, 5, 7, 12, 26])
def test_random_codes_keep_rows_apart_and_are_repeated(kind, k):
    X, y = random_classes(k, n=8 * k)
    code = OutputCodeSVC(code=kind, random_state=1).fit(X, y).code_book_
    distances = (code.shape[1] - code @ code.T) / 2
    np.fill_diagonal(distances, np.inf)
    rng = np.random.default_rng(0)
    usual = []
    for _ in range(20):
        draw = rng.choice([-1, 1] if kind == "dense" else [-1, 0, 0, 1], code.shape)
        apart = (code.shape[1] - draw @ draw.T) / 2
        np.fill_diagonal(apart, np.inf)
        usual.append(apart.min())
    assert distances.min() >= np.median(usual)
    np.testing.assert_array_equal(OutputCodeSVC(code=kind, random_state=1).fit(X, y).code_book_, code)
    if k == 26:
        assert (OutputCodeSVC(code=kind, random_state=2).fit(X, y).code_book_ != code).any()


def test_the_size_of_a_random_code_can_be_chosen():
    X, y = random_classes(10, n=100)
    assert OutputCodeSVC(code="dense", code_size=1.5).fit(X, y).code_book_.shape == (10, 15)
    assert OutputCodeSVC(code="dense", code_size=1000).fit(X, y).code_book_.shape == (10, 511)  # all there are


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (np.ones(3), "a row for each of the 3 classes"),
        (np.eye(4), "a row for each of the 3 classes"),
        ([[2, 1], [-1, 1], [1, -1]], "1, -1 and 0 alone"),
        ([[1, np.nan], [-1, 1], [1, -1]], "1, -1 and 0 alone"),
        ([[1, 1], [-1, 1], [0, 1]], "in every column, but column 1"),
        ([[1, -1], [-1, 1], [-1, 1]], "columns 0 and 1 are equal, or opposite"),
        ([[1, 0], [-1, 1], [-1, 1]], "in every column, but column 1"),
        ([[1, 1], [1, 1], [-1, 0]], "in every column, but column 1"),
        ([[1, 1, 1], [1, -1, -1], [-1, 0, 1], [1, 1, 1]], "a row for each of the 3 classes"),
    ],
)
def test_what_is_no_code_is_refused(code, message):
    X, y = iris()
    with pytest.raises(ValueError, match=f"code must.*{message}"):
        OutputCodeSVC(code=code).fit(X, y)


def test_classes_that_a_code_cannot_tell_apart_are_refused():
    X, y = random_classes(4, n=60)
    code = [[1, 1], [1, 1], [-1, 0], [0, -1]]
    with pytest.raises(ValueError, match="rows 0 and 1 are equal"):
        OutputCodeSVC(code=code).fit(X, y)
    with pytest.raises(ValueError, match=r"code_size=0.2.* do not tell 4 classes apart"):
        OutputCodeSVC(code="dense", code_size=0.2).fit(X, y)


def test_a_class_that_no_problem_knows_is_refused():
    X, y = iris()
    with pytest.raises(ValueError, match="class 2 takes part in no problem"):
        OutputCodeSVC(code=[[1], [-1], [0]]).fit(X, y)


def test_too_many_problems_are_refused_with_advice():
    X, y = random_classes(12, n=60)
    with pytest.raises(ValueError, match=r"2,047.*take code='dense'"):
        OutputCodeSVC(code="exhaustive").fit(X, y)


# What all machines have.


@pytest.mark.parametrize("decoding", ["loss", "probability"])
def test_threads_and_sparse_rows_change_nothing(decoding):
    X, y = digits(400)
    options = {"code": "sparse", "decoding": decoding, "gamma": 0.001}
    one = OutputCodeSVC(n_jobs=1, **options).fit(X, y)
    assert fitted_bits(OutputCodeSVC(n_jobs=2, **options).fit(X, y), X) == fitted_bits(one, X)
    other = OutputCodeSVC(**options, tol=1e-8).fit(sparse.csr_array(X), y)
    exact = OutputCodeSVC(**options, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(other.decision_function(X), exact.decision_function(X), atol=1e-5)


def test_weights_are_copies():
    X, y = random_classes(4, n=80, seed=8)
    weight = np.random.default_rng(8).integers(1, 4, 80)
    options = {"code": "dense", "tol": 1e-8, "random_state": 0}
    weighted = OutputCodeSVC(**options).fit(X, y, sample_weight=weight)
    copied = OutputCodeSVC(**options, gamma=weighted.model_.kernel.gamma).fit(
        X.repeat(weight, axis=0), y.repeat(weight)
    )
    np.testing.assert_allclose(weighted.problem_decision_function(X), copied.problem_decision_function(X), atol=1e-5)


def test_a_warm_start_needs_fewer_steps():
    X, y = digits(500)
    options = {"code": "dense", "gamma": 0.001, "tol": 1e-6}
    machine = OutputCodeSVC(C=2.0, warm_start=True, **options).fit(X, y)
    steps, dual = machine.n_iter_.sum(), machine.dual_objective_
    assert machine.fit(X, y).n_iter_.sum() < steps / 10
    assert machine.dual_objective_ == pytest.approx(dual, rel=1e-6)


@pytest.mark.parametrize("decoding", ["hamming", "probability"])
def test_files_keep_every_bit(decoding, tmp_path):
    X, y = wine()
    machine = OutputCodeSVC(code=MIXED, decoding=decoding).fit(X, y)
    save_model(machine, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert fitted_bits(loaded, X) == fitted_bits(machine, X)
    np.testing.assert_array_equal(loaded.code_book_, MIXED)


def test_damage_is_noticed():
    X, y = wine()
    machine = OutputCodeSVC(code="dense").fit(X, y)
    machine.code_book_ = -machine.code_book_
    with pytest.raises(ValueError, match="code_book_ is not that of the coefficients"):
        machine.predict(X)


@pytest.mark.parametrize(("code", "decoding"), [("dense", "loss"), ("sparse", "hamming"), (MIXED, "loss")], ids=str)
@pytest.mark.parametrize("random_state", [None, 7])
def test_a_search_solves_the_code_of_each_fit(code, decoding, random_state):
    X, y = wine()
    machine = OutputCodeSVC(code=code, decoding=decoding, random_state=random_state, tol=1e-6)
    grid = {"C": [0.01, 1.0, 50.0], "gamma": [0.1, 2.0]}
    shared, plain = KernelSearchCV(machine, grid).fit(X, y), GridSearchCV(machine, grid).fit(X, y)
    for name in ("split0_test_score", "split3_test_score", "mean_test_score"):
        np.testing.assert_allclose(shared.cv_results_[name], plain.cv_results_[name], atol=1e-12)


def test_codes_that_differ_from_fit_to_fit_are_searched_fit_by_fit():
    X, y = iris()
    machine = OutputCodeSVC(code="dense", random_state=np.random.RandomState(0))
    search = KernelSearchCV(machine, {"C": [0.1, 1.0]}).fit(X, y)
    assert search.best_score_ > 0.9


def test_the_linear_kernel_has_weights():
    X, y = wine()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    machine = OutputCodeSVC(code="sparse", kernel="linear").fit(X, y)
    values = X @ machine.coef_.T + machine.intercept_
    np.testing.assert_allclose(values, machine.problem_decision_function(X), atol=1e-9)


def test_rates_are_those_of_scikit_learn_or_better():
    X, y = digits(1500)
    ours = OutputCodeSVC(gamma=0.001, code="dense", decoding="loss", code_size=1.5, random_state=0)
    theirs = OutputCodeClassifier(SVC(gamma=0.001), code_size=1.5, random_state=0).fit(X[:1000], y[:1000])
    assert ours.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) >= theirs.score(X[1000:], y[1000:]) - 0.005


def test_objectives_are_recomputed_from_the_attributes():
    X, y = random_classes(5, n=100, seed=9)
    machine = OutputCodeSVC(code="sparse", tol=1e-6).fit(X, y)
    audit = audit_problems(code_problems(machine, y), *training_problem(machine, X, y))
    assert audit.primal == pytest.approx(machine.primal_objective_, rel=1e-9)
    assert audit.infeasibility < 1e-12
