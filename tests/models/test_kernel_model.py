"""Models: frozen values that score, and say what is wrong with them."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from reference.data import iris, overlapping
from reference.kernels import kernel_matrix
from scipy import sparse

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, OutputCodeSVC, UncertaintySVC
from polymargin.models import ClassLayout, PairLayout, all_pairs, pair_index, pair_list


def expanded(model, X):
    """Return the scores by the definition of the layout, one term after the other."""
    vectors = model.vectors
    K = kernel_matrix(X, vectors, model.kernel.kind, gamma=model.kernel.gamma)
    scores = np.tile(model.intercepts, (len(X), 1))
    for score in range(model.layout.n_scores):
        members, rows = model.layout.terms(score, model.class_counts)
        for member, row in zip(members, rows, strict=True):
            scores[:, score] += model.coefficients[row, member] * K[:, member]
    return scores


@pytest.mark.parametrize("Estimator", [OneVsOneSVC, OneVsRestSVC, CrammerSingerSVC, UncertaintySVC, OutputCodeSVC])
@pytest.mark.parametrize("k", [2, 4])
def test_scores_are_the_expansions_of_the_layout(Estimator, k):
    X, y = overlapping(n=120)
    X, y = X[y < k], y[y < k]
    model = Estimator(gamma=0.3).fit(X, y).model_
    np.testing.assert_allclose(model.raw_scores(X[:20], 1)[0], expanded(model, X[:20]), atol=1e-9)
    assert model.layout.n_classes == k
    assert len(model.intercept) == model.layout.n_intercepts


def test_copies_are_the_model_itself_and_pickles_its_fields():
    X, y = iris()
    model = OneVsOneSVC().fit(X, y).model_
    model.raw_scores(X, 1)  # prepares what no pickle could hold
    assert copy.copy(model) is copy.deepcopy(model) is model
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.raw_scores(X, 1)[0], model.raw_scores(X, 1)[0])
    assert not loaded.coefficients.flags.writeable


@pytest.mark.parametrize(
    ("field", "change", "defect"),
    [
        ("coefficients", lambda a: a[:, 1:], "dual_coef_ has shape"),
        ("coefficients", lambda a: a * np.nan, "dual_coef_ is not finite"),
        ("support", lambda a: a - 10**6, "support_ must not be negative"),
        ("class_counts", lambda a: a + 1, "n_support_ does not count support_"),
        ("intercept", lambda a: a[1:], "intercept_ has shape"),
        ("vectors", lambda a: a.astype(np.int64), "support_vectors_ has type int64"),
        ("kernel", lambda k: replace(k, gamma=-1.0), "_kernel must have a finite gamma"),
        ("class_order", lambda _: np.array([0, 0, 1]), "_tie_order must name every class once"),
    ],
)
def test_what_does_not_belong_together_is_named(field, change, defect):
    model = OneVsOneSVC().fit(*iris()).model_
    assert model.defect is None
    broken = replace(model, **{field: change(getattr(model, field))})
    assert " ".join(broken.defect).startswith(defect)


def test_sparse_vectors_score_dense_rows():
    X, y = overlapping(n=120)
    X = X * (X > 0)
    model = OneVsRestSVC(gamma=0.3).fit(sparse.csr_matrix(X), y).model_
    np.testing.assert_allclose(model.raw_scores(X, 1)[0], model.raw_scores(sparse.csr_matrix(X), 1)[0], atol=1e-9)


# Layouts


@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_all_pairs_are_laid_out_as_in_scikit_learn(k):
    layout = all_pairs(k)
    assert layout.n_scores == k * (k - 1) // 2
    assert layout.height == k - 1
    assert layout.sign == (-1.0 if k == 2 else 1.0)
    for p, (i, j) in enumerate(layout.pairs):
        assert pair_index(i, j, k) == p
        assert layout.rows[p].tolist() == [j - 1, i]
    np.testing.assert_array_equal(pair_list(k), layout.pairs)


def test_terms_and_blocks_tell_the_same():
    layout = PairLayout.of(np.array([[1, 3], [0, 1], [2, 3]]), 4)
    counts = np.array([2, 3, 1, 4], dtype=np.int32)
    by_blocks = {}
    for (begin, end), columns in layout.blocks(counts):
        for vector in range(begin, end):
            for row, column in enumerate(columns):
                by_blocks.setdefault(column, {})[vector] = row
    for score in range(3):
        members, rows = layout.terms(score, counts)
        assert by_blocks[score] == dict(zip(members.tolist(), rows.tolist(), strict=True))
        owner = np.repeat(np.arange(4), counts)[members]
        np.testing.assert_array_equal(layout.coefficient_rows(np.full(len(members), score), owner), rows)


def test_one_of_two_opposite_intercepts_is_kept():
    two, one, more = ClassLayout(2, 2), ClassLayout(2, 1), ClassLayout(3, 3)
    assert two.opposite
    assert not one.opposite
    assert not more.opposite
    np.testing.assert_array_equal(two.intercepts(two.kept(np.array([-1.5, 1.5]))), [-1.5, 1.5])
    np.testing.assert_array_equal(more.intercepts(more.kept(np.arange(3.0))), np.arange(3.0))
