"""Small data sets, scaled so that kernels behave; every call returns fresh arrays."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs, make_classification


def iris():
    """150 x 4, 3 classes, standardised."""
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def wine():
    """178 x 13, 3 classes, standardised."""
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def digits(n=None):
    """The first ``n`` rows of 1797 x 64, 10 classes, in [0, 1]."""
    X, y = load_digits(return_X_y=True)
    return X[:n] / 16.0, y[:n]


def overlapping(n=3000, n_features=20, n_classes=5, seed=0):
    """Classes that no machine separates."""
    return make_classification(
        n_samples=n,
        n_features=n_features,
        n_informative=n_features // 2,
        n_classes=n_classes,
        n_clusters_per_class=2,
        class_sep=0.7,
        flip_y=0.1,
        random_state=seed,
    )


def separable(n=60, n_classes=3, seed=0):
    """Blobs in the plane, far apart."""
    angle = 2 * np.pi * np.arange(n_classes) / n_classes
    centers = 6.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    return make_blobs(n, centers=centers, cluster_std=0.7, random_state=seed)


def random_classes(k, n=80, n_features=4, seed=0):
    """Weak structure and every one of ``k`` classes present: pairwise values that often disagree."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % k)
    centers = rng.normal(size=(k, n_features))
    return 0.5 * centers[y] + rng.normal(size=(n, n_features)), y


DATA_SETS = {"iris": iris, "wine": wine, "digits": lambda: digits(500)}


def paper_file(name, part):
    """Return the file of a data set of the papers, or skip the test: they are not part of the repository."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    path = Path(os.environ.get("POLYMARGIN_DATA", default)) / name / f"{name}.{part}.svm.bz2"
    if not path.exists():
        pytest.skip(f"the data of the papers are not there: {path.name}; POLYMARGIN_DATA names their folder")
    return path
