"""Data of the sweep: whatever small and middle sets the data folder has, made ones, and scikit-learn's own.

Nothing is listed by name where it can be found: pointed at another folder, the sweep runs on sets that nobody tuned on.
"""

import importlib.util
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_svmlight_files,
    load_wine,
    make_blobs,
    make_classification,
)
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

Matrix = Any
"""A dense array or a `csr_matrix`."""
Problem = tuple[Matrix, NDArray]
Loader = Callable[[], Problem]

MOST_BYTES = 2_000_000
"""Of a compressed file: what is larger is neither small nor middle."""
MOST_ROWS = 3_000
"""Of a larger set so many are drawn: a cell that takes minutes says little that one of seconds does not."""
SPARSE_FEATURES = 2_000
"""Data with more columns stay sparse, and only linear machines see them."""
SCALINGS = ("raw", "standardised", "range")


def training_file(folder: Path) -> Path | None:
    """The rows to fit: the training part, or all where there is no other; None where the file is large or not there."""
    for part in ("train", "all"):
        path = folder / f"{folder.name}.{part}.svm.bz2"
        if path.exists():
            return path if path.stat().st_size <= MOST_BYTES else None
    return None


def read(path: Path) -> Problem:
    """Parse a file once; too many rows are thinned out, the same ones every time."""

    def parse() -> Iterable[tuple[str, NDArray]]:
        X, y = load_svmlight_files([str(path)], zero_based=False)
        kept = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_ROWS])
        X = X[kept]
        return [(name, np.asarray(getattr(X, name))) for name in FIELDS] + [("y", y[kept].astype(np.int64))]

    name = f"sweep-{path.parent.name}-{path.stat().st_size}-{MOST_ROWS}"
    with np.load(datasets.cache_file(name, parse)) as arrays:
        data, indices, indptr, shape = (arrays[name] for name in FIELDS)
        X = csr_matrix((data, indices, indptr), shape=tuple(shape))
        return (X if X.shape[1] > SPARSE_FEATURES else X.toarray()), arrays["y"]


FIELDS = ("data", "indices", "indptr", "shape")


def unequal(rows: int, shares: list[float], seed: int, **options: Any) -> Problem:
    """Classes of very different sizes, which overlap."""
    return make_classification(
        rows, 10, n_informative=6, n_classes=len(shares), weights=shares, random_state=seed, **options
    )


def scikit_learn() -> dict[str, Loader]:
    """What everybody has: its data sets, and made ones with many and with unequal classes."""
    loaders = {"iris": load_iris, "wine": load_wine, "breast-cancer": load_breast_cancer, "digits": load_digits}
    found: dict[str, Loader] = {f"sklearn-{name}": partial(load, return_X_y=True) for name, load in loaders.items()}
    tenths = [0.3, 0.28, 0.16, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01, 0.01]
    return found | {
        "made-unequal": partial(unequal, 3830, [0.9, 0.06, 0.02, 0.01, 0.01], 0, class_sep=0.8),
        "made-unequal-10": partial(unequal, 1484, tenths, 1, n_clusters_per_class=1, class_sep=0.7),
        "made-blobs-10": partial(make_blobs, 350, 6, centers=10, cluster_std=3.0, random_state=2),
        "made-blobs-15": partial(make_blobs, 251, 8, centers=15, cluster_std=4.0, random_state=3),
        "made-noise": partial(unequal, 2250, [0.25] * 4, 4, flip_y=0.3),
    }


def generated(folder: Path) -> dict[str, Loader]:
    """The generators of the data folder, if it has them."""
    path = folder / "generate.py"
    if not path.exists():
        return {}
    spec = importlib.util.spec_from_file_location("generate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {
        "overlapping-1000-10": partial(module.overlapping, 1000, 10),
        "overlapping-3000-20": partial(module.overlapping, 3000, 20),
        "clusters": module.clusters,
    }


def stored(folder: Path) -> dict[str, Loader]:
    """Small and middle sets of the data folder, the smallest first."""
    files = [path for each in sorted(folder.iterdir()) if each.is_dir() and (path := training_file(each))]
    return {path.parent.name: partial(read, path) for path in sorted(files, key=lambda path: path.stat().st_size)}


def find() -> dict[str, Loader]:
    """All problems by name; without a data folder those that scikit-learn can make."""
    try:
        folder = datasets.data_folder()
    except FileNotFoundError:
        return scikit_learn()
    return scikit_learn() | generated(folder) | stored(folder)


def scaled(X: Matrix, scaling: str) -> Matrix:
    """Raw, to mean 0 and variance 1, or to [-1, 1]; zeros of sparse data stay zeros."""
    if scaling == "raw":
        return X if issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
    if issparse(X):
        scaler = StandardScaler(with_mean=False) if scaling == "standardised" else MaxAbsScaler()
    else:
        scaler = StandardScaler() if scaling == "standardised" else MinMaxScaler((-1, 1))
    return scaler.fit_transform(X)


def few_of_each(y: NDArray, most: int = 20) -> NDArray:
    """Places of the first rows of every class, in order."""
    return np.sort(np.concatenate([np.flatnonzero(y == label)[:most] for label in np.unique(y)]))


@cache
def raw(name: str) -> Problem:
    """A problem as it is: parsed once for each process, as all scalings come in turns."""
    return find()[name]()


def load(name: str, scaling: str) -> Problem:
    """A problem, ready to fit."""
    X, y = raw(name)
    return scaled(X, scaling), y
