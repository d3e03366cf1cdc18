"""Time several labels beside scikit-learn's `OneVsRestClassifier(SVC())` and `OneVsRestClassifier(LinearSVC())`.

Topics of Reuters-21578, whose documents may have several, and data that `make_multilabel_classification` makes.
LIBLINEAR's bias is regularised, as that of the machine beside it.
"""

import argparse
import bz2
import json
import statistics
import time
import warnings
from collections import Counter
from typing import Any, NamedTuple

import datasets
from joblib import parallel_config
from report import Cell, Table, console, number, publish
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from polymargin import OneVsRestSVC

LEAST = 8.0
LEAST_DOCUMENTS = 10
"""Of a topic in the training part, for it to be a label."""


class Data(NamedTuple):
    """Both parts of a data set."""

    name: str
    X_train: Any
    Y_train: Any
    X_test: Any
    Y_test: Any


class Fit(NamedTuple):
    """One fit of one contender."""

    data: str
    kernel: str
    contender: str
    threads: int
    seconds: float
    micro: float
    macro: float
    subset: float


def reuters(most: int) -> Data:
    """Tf-idf of title and text of the ModApte split, of at most so many training documents, and their topics."""
    with bz2.open(datasets.data_folder() / "reuters21578" / "reuters21578.jsonl.bz2", "rt") as lines:
        documents = [json.loads(line) for line in lines]
    train = [document for document in documents if document["split"] == "train"][:most]
    test = [document for document in documents if document["split"] == "test"]
    counts = Counter(topic for document in train for topic in document["topics"])
    labels = MultiLabelBinarizer(classes=sorted(t for t, count in counts.items() if count >= LEAST_DOCUMENTS))
    words = TfidfVectorizer(sublinear_tf=True, min_df=2)
    texts = [[f"{document['title']} {document['text']}" for document in part] for part in (train, test)]
    topics = [[document["topics"] for document in part] for part in (train, test)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # topics of few documents are left out
        Y_train, Y_test = labels.fit_transform(topics[0]), labels.transform(topics[1])
    return Data("reuters21578", words.fit_transform(texts[0]), Y_train, words.transform(texts[1]), Y_test)


def made(n: int) -> Data:
    """Bags of 40 words in 20 labels, of which a row has three in the mean."""
    X, Y = make_multilabel_classification(n + 1000, 40, n_classes=20, n_labels=3, random_state=0)
    scaler = StandardScaler().fit(X[:n])
    return Data("made", scaler.transform(X[:n]), Y[:n], scaler.transform(X[n:]), Y[n:])


def contenders(kernel: str, threads: int) -> dict[str, Any]:
    """Return both."""
    if kernel == "linear":
        theirs = OneVsRestClassifier(LinearSVC(loss="hinge"), n_jobs=threads)
        return {"polymargin": OneVsRestSVC(kernel=kernel, bias="regularized", n_jobs=threads), "scikit-learn": theirs}
    return {
        "polymargin": OneVsRestSVC(kernel=kernel, n_jobs=threads),
        "scikit-learn": OneVsRestClassifier(SVC(kernel=kernel, cache_size=2000), n_jobs=threads),
    }


def race(data: Data, kernel: str, options: argparse.Namespace) -> list[Fit]:
    """Fit both in turns; who takes long does so once."""
    found: list[Fit] = []
    for turn in range(options.rounds):
        for name, machine in contenders(kernel, options.threads).items():
            if any(f.contender == name and f.seconds > options.long for f in found):
                continue
            start = time.perf_counter()
            with parallel_config(max_nbytes=None):  # LIBLINEAR does not take what is mapped into memory
                machine.fit(data.X_train, data.Y_train)
            seconds = time.perf_counter() - start
            predicted = machine.predict(data.X_test)
            micro, macro = (f1_score(data.Y_test, predicted, average=a, zero_division=0) for a in ("micro", "macro"))
            subset = accuracy_score(data.Y_test, predicted)
            found.append(Fit(data.name, kernel, name, options.threads, seconds, micro, macro, subset))
            console.print(f"  {data.name}, {kernel}, {name}, {turn}: {seconds:.3g} s", style="dim")
    return found


def row(found: list[Fit], labels: int) -> list[Cell]:
    """Compare the medians."""
    by = {name: [f for f in found if f.contender == name] for name in ("polymargin", "scikit-learn")}
    seconds = {name: statistics.median(f.seconds for f in of) for name, of in by.items()}
    ratio = seconds["scikit-learn"] / seconds["polymargin"]
    measures = [[100 * by[name][0][-3 + m] for name in by] for m in range(3)]
    return [
        Cell(found[0].data),
        Cell(found[0].kernel),
        number(labels, "d"),
        *(number(s) for s in seconds.values()),
        number(ratio, ".1f", ratio >= LEAST if found[0].kernel != "linear" else None),
        *(Cell(f"{ours:.1f} / {theirs:.1f}") for ours, theirs in measures),
    ]


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", nargs="+", default=["rbf", "linear"])
    parser.add_argument("--data", nargs="+", choices=["made", "reuters21578"], default=["made", "reuters21578"])
    parser.add_argument("--rows", type=int, default=2000, help="of the training parts with another kernel than linear")
    parser.add_argument("--linear-rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", type=float, default=5.0, help="seconds of a fit that is not repeated")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a quarter of the rows")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    found, rows = [], []
    for kernel in options.kernels:
        n = (options.linear_rows if kernel == "linear" else options.rows) // (4 if options.quick else 1)
        for name in options.data:
            data = made(n) if name == "made" else reuters(n)
            fits = race(data, kernel, options)
            found += fits
            rows.append(row(fits, data.Y_train.shape[1]))
    columns = [
        "data set",
        "kernel",
        "labels",
        "polymargin",
        "scikit-learn",
        "ratio",
        "micro F1",
        "macro F1",
        "whole sets",
    ]
    table = Table(f"Fits of several labels, {options.threads} threads: seconds", columns, rows)
    table.note = f"Medians. Bar with a kernel: {LEAST:g}. Scores on the test rows in per cent, ours / theirs."
    publish("Several labels", options.output, [table], notes=options.note, data=[f._asdict() for f in found])


if __name__ == "__main__":
    main()
