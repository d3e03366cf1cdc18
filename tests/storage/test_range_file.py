"""Ranges of features in svm-scale's format, and data scaled by them."""

import numpy as np
import pytest
from reference.data import wine
from reference.mutations import mutated, outcome
from scipy import sparse

from polymargin.storage.range_file import Ranges, read_ranges


def test_the_ends_are_met_exactly_and_constant_features_are_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) * 10.0 ** rng.integers(-9, 9, size=6)
    X[:, 2] = 7.0
    scaled = Ranges.of(X, -0.3, 1.7).apply(X)
    varied = np.delete(scaled, 2, axis=1)
    assert (varied.min(axis=0) == -0.3).all()
    assert (varied.max(axis=0) == 1.7).all()
    assert (scaled[:, 2] == 0).all()


def test_a_file_comes_back_as_it_was(tmp_path):
    X, _ = wine()
    X[:, 4] = 1.0
    ranges = Ranges.of(X)
    ranges.save(tmp_path / "range")
    loaded = read_ranges(tmp_path / "range")
    np.testing.assert_array_equal(loaded.apply(X), ranges.apply(X))


def test_sparse_data_are_scaled_as_dense_ones_and_stay_sparse_if_zeros_do():
    X = np.random.default_rng(0).normal(size=(30, 5)) * (np.random.default_rng(1).random((30, 5)) < 0.3)
    positive = np.abs(X)
    for lower, data in ((-1.0, X), (0.0, positive), (0.0, X)):
        found = Ranges.of(sparse.csr_matrix(data), lower).apply(sparse.csr_matrix(data))
        assert sparse.issparse(found) == (data is positive)
        dense = found.toarray() if sparse.issparse(found) else found
        np.testing.assert_array_equal(dense, Ranges.of(data, lower).apply(data))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_other_widths(kind):
    ranges = Ranges.of(np.array([[0.0, 1.0], [2.0, 3.0]]), 0.0, 1.0)
    narrow = ranges.apply(kind([[1.0]]))
    assert np.asarray(narrow).tolist() == [[0.5, -0.5]]  # what is missing is a zero
    with pytest.warns(UserWarning, match="features 3 to 4 are not in the ranges"):
        wide = ranges.apply(kind([[1.0, 2.0, 0.0, 9.0]]))
    assert np.asarray(wide).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1)])
def test_ranges_to_scale_to_have_ends_in_order(ends):
    with pytest.raises(ValueError, match="two finite ends"):
        Ranges.of(np.ones((2, 2)), *ends)


def test_features_that_cannot_be_scaled_are_named():
    with pytest.raises(ValueError, match=r"feature 2 goes from -1e\+308 to 1e\+308"):
        Ranges.of(np.array([[0.0, -1e308], [1.0, 1e308]]))


BAD = {
    "": "line 1, column 1: expected a file of svm-scale",
    "y\n0 1\n": "line 1, column 1: expected a file of svm-scale",
    "x\n": "line 2, column 1: expected the ends",
    "x\n1 0\n": "line 2, column 3: expected an upper end above 1",
    "x\n0 1\n1 2\n": "line 3, column 3: expected 3 numbers",
    "x\n0 1\n0 2 3\n": "line 3, column 1: expected a whole number from 1",
    "x\n0 1\n2 2 3\n1 2 3\n": "line 4, column 1: expected a whole number from 3",
    "x\n0 1\n1 3 2\n": "line 3, column 5: expected a maximum of at least 3",
    "x\n0 1\n1 nan 2\n": "line 3, column 3: expected a finite number",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_are_named(text, tmp_path):
    (tmp_path / "range").write_text(text)
    with pytest.raises(ValueError, match=BAD[text]):
        read_ranges(tmp_path / "range")


def test_mutations_are_read_or_refused_by_place(tmp_path):
    Ranges.of(wine()[0]).save(tmp_path / "good")
    good, rng = (tmp_path / "good").read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(500):
        (tmp_path / "range").write_bytes(mutated(good, rng, b"0123456789.e-+ \nx"))
        found = outcome(read_ranges, tmp_path / "range")
        if isinstance(found, str):
            refused += 1
            assert ", line " in found
        else:
            assert np.isfinite(found.largest - found.least).all()
    assert 100 < refused < 500
