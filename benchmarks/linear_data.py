"""Data of the linear benchmarks: large, mostly sparse, labels 0 .. k-1; every file is parsed once.

What is kept in ``build/bench-cache`` are the raw counts and values; scaling is cheap and stays visible here.
"""

import bz2
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import datasets
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix, vstack

Matrix = Any
"""A `csr_matrix` or a dense array; the peers know the older sparse class alone."""
Pair = tuple[Matrix, Matrix]
Parts = tuple[Matrix, NDArray, Matrix, NDArray]
"""Training rows and labels, test rows and labels."""

COVTYPE_TEST_SHARE = 0.1
ROWS, TEST_ROWS, FEATURES = 20_000, 4_000, 20_000
TOPIC_WORDS, OWN_WORDS, COMMON_WORDS = 40, 15, 37
"""Of the synthetic text: words that a class knows, and how many words of a row are of its class, and of any."""


@dataclass(frozen=True)
class Source:
    """Files of a data set, and how its rows are scaled; where there is but one file, the split is our own."""

    n_features: int
    scale: Callable[[Matrix, Matrix], Pair]
    parts: tuple[str, ...] = datasets.PARTS


@dataclass(frozen=True)
class LinearData:
    """A prepared data set; every class occurs in the training part."""

    name: str
    X_train: Matrix
    y_train: NDArray
    X_test: Matrix
    y_test: NDArray
    n_classes: int


FIELDS = ("data", "indices", "indptr", "shape")


def pack(prefix: str, X: csr_matrix, y: NDArray) -> Iterator[tuple[str, NDArray]]:
    """A sparse matrix and its labels as the arrays that are kept."""
    yield from ((f"{prefix}_{name}", getattr(X, name)) for name in FIELDS)
    yield f"{prefix}_y", y


def unpack(prefix: str, arrays: Any) -> tuple[csr_matrix, NDArray]:
    """The inverse of `pack`."""
    data, indices, indptr, shape, y = (arrays[f"{prefix}_{name}"] for name in (*FIELDS, "y"))
    return csr_matrix((data, indices, indptr), shape=tuple(shape)), y


def parse(folder: str, parts: tuple[str, ...], n_features: int) -> Iterator[tuple[str, NDArray]]:
    """Read LIBSVM text without ever making it dense."""
    from sklearn.datasets import load_svmlight_file

    for part in parts:
        path = datasets.data_folder() / folder / f"{folder}.{part}.svm.bz2"
        X, y = load_svmlight_file(str(path), n_features=n_features, zero_based=False)
        yield from pack(part, X, y.astype(np.int64) - 1)


def read(folder: str, parts: tuple[str, ...], n_features: int) -> list[tuple[csr_matrix, NDArray]]:
    """The raw parts, from the cache if they are there."""
    path = datasets.cache_file(f"{folder}-sparse", lambda: parse(folder, parts, n_features))
    with np.load(path) as arrays:
        return [unpack(part, arrays) for part in parts]


def unit_rows(train: Matrix, test: Matrix) -> Pair:
    """Every row at length one; empty rows stay empty."""
    from sklearn.preprocessing import normalize

    return normalize(train), normalize(test)


def tf_idf(train: Matrix, test: Matrix) -> Pair:
    """Term frequency times inverse document frequency of the training part, rows at unit length."""
    from sklearn.feature_extraction.text import TfidfTransformer

    weights = TfidfTransformer().fit(train)
    return weights.transform(train), weights.transform(test)


def unit_bytes(train: Matrix, test: Matrix) -> Pair:
    """Bytes to [0, 1]."""
    return train / 255, test / 255


def unit_columns(train: Matrix, test: Matrix) -> Pair:
    """Columns divided by the largest size of a value in the training part: zeros stay zeros."""
    from sklearn.preprocessing import MaxAbsScaler

    scaler = MaxAbsScaler().fit(train)
    return scaler.transform(train), scaler.transform(test)


def standardised(train: Matrix, test: Matrix) -> Pair:
    """Mean zero and variance one by the training part: dense, as the zeros are gone."""
    from sklearn.preprocessing import StandardScaler

    train, test = train.toarray(), test.toarray()
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test)


SOURCES = {
    "news20": Source(62_061, unit_rows),
    "20newsgroups": Source(64_141, tf_idf),
    "reuters8": Source(14_040, tf_idf),
    "mnist": Source(784, unit_bytes),
    "covtype": Source(54, standardised, ("all",)),
}


def whole(name: str) -> tuple[csr_matrix, NDArray]:
    """All rows of a data set, as they are stored, and their labels."""
    source = SOURCES[name]
    rows, labels = zip(*read(name, source.parts, source.n_features), strict=True)
    return vstack(rows, format="csr"), np.concatenate(labels)


def split_file(name: str) -> Parts:
    """A data set with a training and a test file."""
    source = SOURCES[name]
    (train, y_train), (test, y_test) = read(name, source.parts, source.n_features)
    train, test = source.scale(train, test)
    return train, y_train, test, y_test


def covtype(scale: Callable[[Matrix, Matrix], Pair]) -> Parts:
    """One file; nobody's split is published, so a fixed random one."""
    X, y = whole("covtype")
    order = np.random.default_rng(0).permutation(len(y))
    test, train = np.split(order, [round(COVTYPE_TEST_SHARE * len(y))])
    X_train, X_test = scale(X[train], X[test])
    return X_train, y[train], X_test, y[test]


def reuters_52() -> Parts:
    """R52: the documents of one topic whose topic occurs in both parts."""
    with np.load(datasets.cache_file("reuters-52", parse_reuters)) as arrays:
        return *unpack("train", arrays), *unpack("test", arrays)


def parse_reuters() -> Iterator[tuple[str, NDArray]]:
    """Tf-idf of title and text; words and their weights are those of the training part."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    with bz2.open(datasets.data_folder() / "reuters21578" / "reuters21578.jsonl.bz2", "rt") as lines:
        documents = [document for document in map(json.loads, lines) if document["label"] is not None]
    parts = {part: [document for document in documents if document["split"] == part] for part in datasets.PARTS}
    topics = sorted(set.intersection(*({document["label"] for document in part} for part in parts.values())))
    number = {topic: index for index, topic in enumerate(topics)}
    words = TfidfVectorizer()
    for part, transform in (("train", words.fit_transform), ("test", words.transform)):
        known = [document for document in parts[part] if document["label"] in number]
        X = transform(f"{document['title']} {document['text']}" for document in known)
        yield from pack(part, csr_matrix(X), np.array([number[document["label"]] for document in known]))


def synthetic(n_classes: int) -> Parts:
    """Text-like rows of about 50 words: some of the words of the row's class, the others common to all, as by Zipf."""
    rng = np.random.default_rng(0)
    rows = ROWS + TEST_ROWS
    y = np.concatenate([rng.permutation(np.arange(ROWS) % n_classes), rng.integers(n_classes, size=TEST_ROWS)])
    topics = rng.integers(FEATURES, size=(n_classes, TOPIC_WORDS))
    own = topics[y[:, None], rng.integers(TOPIC_WORDS, size=(rows, OWN_WORDS))]
    zipf = 1 / (10 + np.arange(FEATURES))
    common = rng.choice(FEATURES, p=zipf / zipf.sum(), size=(rows, COMMON_WORDS))
    words = np.hstack([own, common])
    where = (np.repeat(np.arange(rows), words.shape[1]), words.ravel())
    X = coo_matrix((1 + rng.exponential(size=words.size), where), shape=(rows, FEATURES)).tocsr()
    train, test = unit_rows(X[:ROWS], X[ROWS:])
    return train, y[:ROWS], test, y[ROWS:]


def iris() -> Parts:
    """The small problem that warms every contender up before anything is timed."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    return csr_matrix(X), y, csr_matrix(X), y


LARGE: dict[str, Callable[[], Parts]] = {
    "news20": lambda: split_file("news20"),
    "20newsgroups": lambda: split_file("20newsgroups"),
    "mnist": lambda: split_file("mnist"),
    "covtype": lambda: covtype(standardised),
}
MANY_CLASSES: dict[str, Callable[[], Parts]] = {
    "r52": reuters_52,
    "synthetic-1000": lambda: synthetic(1_000),
    "synthetic-10000": lambda: synthetic(10_000),
}
OTHERS: dict[str, Callable[[], Parts]] = {"covtype-sparse": lambda: covtype(unit_columns), "iris": iris}
ALL = LARGE | MANY_CLASSES | OTHERS


def load(name: str) -> LinearData:
    """Load both parts of a data set."""
    X_train, y_train, X_test, y_test = ALL[name]()
    return LinearData(name, X_train, y_train, X_test, y_test, int(y_train.max()) + 1)
