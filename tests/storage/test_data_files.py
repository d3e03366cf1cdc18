"""Data sets in files."""

import numpy as np
import pytest
from reference.data import random_classes
from sklearn.datasets import dump_svmlight_file

from polymargin.storage import read_data


def test_svmlight(tmp_path):
    X, y = random_classes(3, n=30, n_features=4, seed=0)
    X[:, 3] = 0.0
    dump_svmlight_file(X, y, str(tmp_path / "data"), zero_based=False)
    found, labels = read_data(tmp_path / "data")
    assert np.allclose(found.toarray(), X[:, :3])
    assert np.array_equal(labels, y)


@pytest.mark.parametrize("head", ["", "kind,width,height\n"])
def test_csv(tmp_path, head):
    (tmp_path / "data.csv").write_text(head + "cat,1, 2.5\ndog,-3,4e2\n")
    X, y = read_data(tmp_path / "data.csv")
    assert X.tolist() == [[1.0, 2.5], [-3.0, 400.0]]
    assert y.tolist() == ["cat", "dog"]
    (tmp_path / "data.csv").write_text("1,2,cat\n-3,4,dog\n")
    assert read_data(tmp_path / "data.csv", label="last")[1].tolist() == ["cat", "dog"]


def test_npz(tmp_path):
    np.savez(tmp_path / "data.npz", X=np.eye(3), y=[0, 1, 1])
    X, y = read_data(str(tmp_path / "data.npz"))
    assert np.array_equal(X, np.eye(3))
    assert y.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n2\n", "one column"),
        ("a,b\n", "no rows"),
        ("a,1,2\nb,1,x\n", "example 1 has a feature that is not a number"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_data(tmp_path / "data.csv")


def test_bad_npz(tmp_path):
    np.savez(tmp_path / "data.npz", A=np.eye(3))
    with pytest.raises(ValueError, match="must have arrays X and y, it has A"):
        read_data(tmp_path / "data.npz")
    np.savez(tmp_path / "code.npz", X=np.eye(3), y=np.array([{}, [], 1], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_data(tmp_path / "code.npz")
