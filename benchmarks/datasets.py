"""The papers' data sets, scaled as the papers scale them, with the parameters the papers report.

The files are LIBSVM text compressed with bzip2 and slow to parse, so the parsed arrays are kept in
``build/bench-cache``. What is kept is the raw data: scaling is cheap and stays visible here.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "bench-cache"
DATA_VARIABLE = "POLYMARGIN_DATA"
PARTS = ("train", "test")


@dataclass(frozen=True)
class Parameters:
    """Cost and RBF width of one machine on one data set."""

    C: float
    gamma: float


@dataclass(frozen=True)
class Source:
    """Where a data set comes from and how it is prepared."""

    folder: str
    n_features: int
    scaling: str
    """``raw``: as stored; ``range``: to [-1, 1] by the training part; ``bytes``: divided by 255."""
    one_vs_one: Parameters
    one_vs_rest: Parameters
    weston_watkins: Parameters | None = None
    crammer_singer: Parameters | None = None
    """The all-together machines; None where the papers have no parameters."""
    dag: Parameters | None = None
    """The papers choose anew for the DAG; None where they came to those of one-against-one."""
    rows: int | None = None
    """Keep this many leading training rows; all of them if None."""
    split: bool = True
    """Whether there is a test part; if not, the training part stands for it too."""


@dataclass(frozen=True)
class Dataset:
    """A prepared data set; the test part is always whole."""

    name: str
    X_train: NDArray
    y_train: NDArray
    X_test: NDArray
    y_test: NDArray
    source: Source


USPS = Parameters(10.0, 1 / 128)
MNIST = Parameters(10.0, 0.02)


def powers(*exponents: int) -> tuple[Parameters, ...]:
    """Pairs of exponents of two, as Table V.2 prints them: C and gamma of one machine after the other."""
    return tuple(Parameters(2.0**c, 2.0**gamma) for c, gamma in zip(exponents[::2], exponents[1::2], strict=True))


# dna, satimage, letter, shuttle: Hsu & Lin 2002, Table V.2, one-against-one, one-against-all, Weston-Watkins,
# Crammer-Singer. The paper has neither usps nor mnist.
SOURCES = {
    "dna": Source("dna", 180, "raw", *powers(3, -6, 2, -6, 4, -6, 1, -6)),
    "satimage": Source("satimage", 36, "range", *powers(4, 0, 2, 1, 3, 0, 2, 2)),
    "letter": Source("letter", 16, "range", *powers(4, 2, 2, 2, 1, 2, 3, 2)),
    "shuttle": Source("shuttle", 9, "range", *powers(11, 3, 9, 4, 9, 4, 12, 4)),
    "usps": Source("usps", 256, "raw", USPS, USPS),
    "mnist-10000": Source("mnist", 784, "bytes", MNIST, MNIST, rows=10_000),
    "mnist-60000": Source("mnist", 784, "bytes", MNIST, MNIST),
}
SIX = ("dna", "satimage", "letter", "shuttle", "usps", "mnist-10000")
"""The six data sets of the papers, mnist in its smaller form."""
LARGE = ("dna", "satimage", "letter", "shuttle")
"""The four data sets of Hsu & Lin that have a test part."""

# The six small data sets of the same table; here the DAG's parameters come last.
SMALL = {
    "iris": Source("iris", 4, "range", *powers(12, -9, 9, -3, 12, -8, 10, -7, 12, -8), split=False),
    "wine": Source("wine", 13, "range", *powers(7, -10, 7, -6, 0, -2, 1, -3, 6, -9), split=False),
    "glass": Source("glass", 9, "range", *powers(11, -2, 11, -2, 9, -4, 4, 1, 12, -3), split=False),
    "vowel": Source("vowel", 10, "range", *powers(4, 0, 4, 1, 3, 0, 1, 3, 2, 2)),
    "vehicle": Source("vehicle", 18, "range", *powers(9, -3, 11, -4, 10, -4, 9, -4, 11, -5), split=False),
    "segment": Source("segment", 19, "range", *powers(6, 0, 7, 0, 5, 0, 0, 3, 11, -3), split=False),
}
ALL = SOURCES | SMALL


def data_folder() -> Path:
    """Find the data: the environment variable first, else a ``shared/data`` beside a parent folder."""
    if given := os.environ.get(DATA_VARIABLE):
        return Path(given)
    for parent in ROOT.parents:
        if (folder := parent / "shared" / "data").is_dir():
            return folder
    raise FileNotFoundError(f"no shared/data folder found above the repository; set {DATA_VARIABLE}")


def parse(source: Source) -> Iterator[tuple[str, NDArray]]:
    """Read both parts of a data set; bytes stay bytes, so that mnist's cache is an eighth of the size."""
    from sklearn.datasets import load_svmlight_file

    for part in PARTS:
        path = data_folder() / source.folder / f"{source.folder}.{part if source.split else 'all'}.svm.bz2"
        X, y = load_svmlight_file(str(path), n_features=source.n_features, zero_based=False)
        X = X.toarray()
        as_bytes = X.astype(np.uint8)
        yield f"X_{part}", as_bytes if np.array_equal(as_bytes, X) else X
        yield f"y_{part}", y.astype(np.int64)


def cache_file(name: str, make: Callable[[], Iterable[tuple[str, NDArray]]]) -> Path:
    """Path of the arrays under this name; makes them on first use, and renames so that a reader never sees half."""
    path = CACHE / f"{name}.npz"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial, **dict(make()))
        partial.replace(path)
    return path


def cached(source: Source) -> Path:
    """Path of the parsed arrays of a data set."""
    return cache_file(source.folder, lambda: parse(source))


def scale(raw: NDArray, train: NDArray, scaling: str, dtype: DTypeLike) -> NDArray:
    """Scale rows by what the training part says; constant columns map to -1 instead of dividing by zero."""
    if scaling == "raw":
        return np.ascontiguousarray(raw, dtype=dtype)
    if scaling == "bytes":
        return np.divide(raw, 255, dtype=dtype)
    low, high = train.min(axis=0).astype(float), train.max(axis=0).astype(float)
    width = np.where(high > low, high - low, 1.0)
    return (2 * (raw - low) / width - 1).astype(dtype)


def load_part(name: str, part: str, dtype: DTypeLike = np.float64) -> tuple[NDArray, NDArray]:
    """Load one part alone: the memory benchmark must not hold the other."""
    source = ALL[name]
    with np.load(cached(source)) as arrays:
        train, raw, y = arrays["X_train"], arrays[f"X_{part}"], arrays[f"y_{part}"]
    rows = slice(source.rows if part == "train" else None)
    return scale(raw[rows], train, source.scaling, dtype), y[rows].copy()


def load(name: str, dtype: DTypeLike = np.float64) -> Dataset:
    """Load both parts of a data set."""
    return Dataset(name, *load_part(name, "train", dtype), *load_part(name, "test", dtype), ALL[name])


def load_iris_like() -> Dataset:
    """Iris as a `Dataset`: the small problem that warms every contender up before anything is timed."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    plain = Parameters(1.0, 0.25)
    return Dataset("iris", X, y, X, y, Source("iris", 4, "raw", *[plain] * 4))
