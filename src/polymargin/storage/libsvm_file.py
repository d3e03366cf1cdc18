"""One-against-one machines as LIBSVM's text files.

A header of keywords, one to a line, ends with the line ``SV``. Then there is a line for each support vector, those of a
class together: its k - 1 coefficients in the machines of its class, in the order of the other classes, and its features
as ``index:value``, the indices ascending from 1. The value of the machine of two classes is positive for the one that
``label`` names first, and ``rho`` is subtracted from it; exactly 0 is a vote for the other. With ``probA`` and
``probB`` the probability of the first class is 1 / (1 + exp(A f + B)) for the value f.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polymargin.decision import PairProbabilities, Sigmoids, pair_index, pair_list
from polymargin.estimators import OneVsOneSVC
from polymargin.kernels import KERNELS, Kernel
from polymargin.models import KernelModel, Outcome, all_pairs
from polymargin.storage._words import MOST, REAL, BadLineError, Word, words_of
from polymargin.storage.files import PathLike, read_whole, replace_whole
from polymargin.support.numeric import Floats, Ints

_KEYWORDS = {
    *("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label"),
    *("probA", "probB", "nr_sv"),
}
_FEATURE = re.compile(rb"([0-9]{1,10}):(" + REAL + rb")")


def export_libsvm(machine: Any, path: PathLike) -> None:
    """Write a one-against-one machine as a LIBSVM model, for ``svm-predict`` and everything else that reads them.

    Numbers are written so that they come back as they are. ``svm-predict`` gives the labels of a machine that votes to
    the last row, and with ``-b 1`` the probabilities of one that couples, as exactly as LIBSVM couples them (see
    :func:`import_libsvm`). The file is replaced whole, as by :func:`polymargin.save_model`.

    Parameters
    ----------
    machine : fitted OneVsOneSVC
        With ``decision="votes"``, which is what ``svm-predict`` does, or ``"coupling"``, which is ``svm-predict -b 1``;
        with whole numbers as labels, and no Python function as kernel.
    path : str or path-like
        The file, replaced if it is there.
    """
    if not isinstance(machine, OneVsOneSVC):
        raise TypeError(f"LIBSVM's models are one-against-one: export an OneVsOneSVC, not {type(machine).__name__}")
    machine.check_state()
    kernel = machine.model_.kernel
    if callable(kernel.kind):
        raise ValueError("LIBSVM has no kernels in Python: fit with kernel='precomputed' on the values of the function")
    if KERNELS[kernel.kind].libsvm is None:
        raise ValueError(
            f"LIBSVM has no kernel {kernel.kind!r}, only {', '.join(_libsvm_kernels().values())}: "
            "fit with one of these, or with kernel='precomputed' on the kernel values"
        )
    if machine.decision not in ("votes", "coupling"):
        raise ValueError(
            f"LIBSVM decides by votes or by probabilities, this machine by decision={machine.decision!r}: "
            "call set_params(decision='votes') before exporting"
        )
    contents, order = _contents(machine)
    lines = [*_header_lines(kernel, contents), *_vector_lines(machine.model_, contents.coefficients, order)]
    replace_whole(path, ["".join(f"{line}\n" for line in lines).encode("ascii")])


def _libsvm_kernels() -> dict[str, str]:
    """Return LIBSVM's names of the kernels that it has."""
    return {name: entry.libsvm for name, entry in KERNELS.items() if entry.libsvm is not None}


def import_libsvm(path: PathLike, *, n_features: int | None = None) -> OneVsOneSVC:
    """Read a classifier that LIBSVM's ``svm-train`` or :func:`export_libsvm` wrote.

    Parameters
    ----------
    path : str or path-like
        The file; its ``svm_type`` must be ``c_svc`` or ``nu_svc``.
    n_features : int, default=None
        Number of features of the data, at least the largest index in the file, which is the default; for a precomputed
        kernel the number of training examples.

    Returns
    -------
    OneVsOneSVC
        Fitted. Classes are sorted, but where votes tie, or a value is 0, the order of the file decides as in LIBSVM:
        labels are those of ``svm-predict`` to the last row. What the file does not tell is left at what says so:
        ``support_`` counts the vectors (a precomputed kernel has the rows), ``C`` and ``tol`` have their defaults, the
        objectives are NaN, ``converged_`` is False and ``stop_reason_`` is ``"imported"``.

        A model of ``svm-train -b 1`` has ``decision="coupling"``, and ``predict_proba`` and ``predict`` do what
        ``svm-predict -b 1`` does; after ``set_params(decision="votes")`` labels are those of ``svm-predict`` without
        it. With two classes probabilities agree to rounding. With more they differ by a few thousandths, and where the
        two largest are so close, labels may: LIBSVM ends its iteration for them at a violation of 0.005 / k, and they
        are solved for here.
    """
    try:
        model = _Model(read_whole(path))
        return _machine(model, n_features)
    except BadLineError as error:
        raise ValueError(f"{path}, {error}") from None


# Writing.


def _whole_labels(classes: NDArray[Any]) -> list[int]:
    whole = classes.dtype.kind in "iuf" and np.all(classes == np.floor(classes)) and np.all(np.abs(classes) <= MOST)
    if not whole:
        raise ValueError(
            f"LIBSVM's labels are whole numbers of 32 bits, got {classes.tolist()[:4]} of type {classes.dtype}: fit on "
            "codes, for example those of sklearn.preprocessing.LabelEncoder"
        )
    return [int(label) for label in classes]


@dataclass(frozen=True)
class _Contents:
    """The numbers of a file, its classes in any order."""

    labels: Any
    n_support: NDArray[Any]
    coefficients: Floats  # (n_vectors, k - 1)
    rho: Floats
    sigmoids: Sigmoids | None

    @property
    def n_vectors(self) -> int:
        return len(self.coefficients)


def _contents(machine: OneVsOneSVC) -> tuple[_Contents, Ints]:
    """Return what to write, and the support vectors in their order: classes that win ties come first, as in LIBSVM."""
    model, labels = machine.model_, _whole_labels(machine.classes_)
    sign = model.layout.sign
    sigmoids = machine.decision_data_.sigmoids if machine.decision == "coupling" else None
    given = _Contents(labels, model.class_counts, sign * model.coefficients.T, -sign * model.intercept, sigmoids)
    order = model.class_order
    if order is None:
        return given, np.arange(given.n_vectors)
    coefficients, intercept, sigmoids = _reordered(given, order)
    vectors = _grouped(given, order)
    n_support = model.class_counts[order]
    named = [labels[c] for c in order]
    return _Contents(named, n_support, coefficients[:, vectors].T, -intercept, sigmoids), vectors


def _grouped(model: Any, order: Ints) -> Ints:
    """Return the support vectors, those of a class together, the classes in this order."""
    ranges = np.split(np.arange(model.n_vectors), np.cumsum(model.n_support)[:-1])
    return np.concatenate([ranges[c] for c in order])


def _header_lines(kernel: Kernel, contents: _Contents) -> Iterator[str]:
    yield "svm_type c_svc"
    entry = KERNELS[kernel.kind]
    yield f"kernel_type {entry.libsvm}"
    for name in entry.parameters:
        yield f"{name} {_text(getattr(kernel, name))}"
    yield f"nr_class {len(contents.labels)}"
    yield f"total_sv {contents.n_vectors}"
    yield f"rho {_joined(contents.rho)}"
    yield f"label {' '.join(map(str, contents.labels))}"
    if contents.sigmoids is not None:
        yield f"probA {_joined(contents.sigmoids.A)}"
        yield f"probB {_joined(contents.sigmoids.B)}"
    yield f"nr_sv {' '.join(map(str, contents.n_support))}"
    yield "SV"


def _text(number: float) -> str:
    """Return the shortest text that is read as the same number."""
    return repr(number.item() if isinstance(number, np.generic) else number)


def _joined(numbers: Floats) -> str:
    return " ".join(map(repr, numbers.tolist()))


def _vector_lines(model: KernelModel, coefficients: Floats, order: Ints) -> Iterator[str]:
    if model.kernel.precomputed:
        for row, numbers in zip(model.support[order].tolist(), coefficients, strict=True):
            yield f"{_joined(numbers)} 0:{row + 1}"
        return
    vectors = sp.csr_array(model.vectors)
    for i, numbers in zip(order.tolist(), coefficients, strict=True):
        entries = slice(vectors.indptr[i], vectors.indptr[i + 1])
        pairs = zip(vectors.indices[entries].tolist(), vectors.data[entries].tolist(), strict=True)
        yield " ".join([_joined(numbers), *(f"{index + 1}:{value!r}" for index, value in pairs)])


# Reading.


class _Model:
    """The contents of a file: every number is sound, and there are as many of each as there should be."""

    def __init__(self, data: bytes) -> None:
        self._lines = data.splitlines()
        while self._lines and not self._lines[-1].strip():
            self._lines.pop()
        self._entries: dict[str, list[Word]] = {}
        self._end = self._read_entries()
        self._read_header()
        self._read_vectors()

    def _words(self, at: int) -> list[Word]:
        return words_of(self._lines[at], at + 1)

    def _read_entries(self) -> int:
        """Sort the lines of the header by keyword; return the number of the first line after it."""
        for at in range(len(self._lines)):
            words = self._words(at)
            if not words:
                continue
            name = words[0].text.decode("ascii", "replace")
            if name == "SV" and len(words) == 1:
                return at + 1
            if name not in _KEYWORDS:
                words[0].refuse("expected a keyword of a LIBSVM model")
            if name in self._entries:
                words[0].refuse("this keyword was given before")
            self._entries[name] = words
        raise BadLineError(len(self._lines) + 1, 1, "the line SV and the support vectors are missing")

    def _values(self, name: str, count: int) -> list[Word]:
        """Return the words after a keyword, which must be as many as ``count``."""
        words = self._entries.get(name)
        if words is None:
            raise BadLineError(self._end, 1, f"the keyword {name} is missing above this line")
        if len(words) - 1 != count:
            words[0].refuse(f"expected {count} values, not {len(words) - 1}, after this keyword")
        return words[1:]

    def _word(self, name: str) -> Word:
        return self._values(name, 1)[0]

    def _read_header(self) -> None:
        if self._word("svm_type").text not in (b"c_svc", b"nu_svc"):
            self._word("svm_type").refuse("expected a classifier, c_svc or nu_svc")
        names = _libsvm_kernels()
        kind = next((k for k, name in names.items() if name.encode("ascii") == self._word("kernel_type").text), None)
        if kind is None:
            self._word("kernel_type").refuse(f"expected one of {', '.join(names.values())}")
        needed = KERNELS[kind].parameters
        degree = self._word("degree").whole(0) if "degree" in needed else 3
        gamma = self._word("gamma").real() if "gamma" in needed else 0.0
        if gamma < 0:
            self._word("gamma").refuse("gamma must not be negative")
        self.kernel = Kernel(kind, gamma, self._word("coef0").real() if "coef0" in needed else 0.0, degree)
        k = self._word("nr_class").whole(2)
        self.n_vectors = self._word("total_sv").whole(0)
        self.labels = np.array([word.whole(-MOST - 1) for word in self._values("label", k)], dtype=np.int64)
        if len(set(self.labels.tolist())) < k:
            first = np.unique(self.labels, return_index=True)[1]
            again = min(set(range(k)) - set(first.tolist()))
            self._values("label", k)[again].refuse("this label was given before")
        self.n_support = np.array([word.whole(0) for word in self._values("nr_sv", k)], dtype=np.int64)
        if self.n_support.sum() != self.n_vectors:
            self._entries["nr_sv"][0].refuse(f"the numbers must sum to total_sv, which is {self.n_vectors}")
        self.rho = self._of_pairs("rho", k)
        has = "probA" in self._entries or "probB" in self._entries
        self.sigmoids = Sigmoids(self._of_pairs("probA", k), self._of_pairs("probB", k)) if has else None

    def _of_pairs(self, name: str, k: int) -> Floats:
        return np.array([word.real() for word in self._values(name, k * (k - 1) // 2)])

    def _read_vectors(self) -> None:
        found = len(self._lines) - self._end
        if found != self.n_vectors:
            raise BadLineError(len(self._lines), 1, f"expected {self.n_vectors} support vectors, got {found}")
        numbers = len(self.labels) - 1
        # All is well with a line of this form whose numbers are finite; a line that is not is read word by word.
        form = re.compile(rb"\s*" + (rb"(?:%b\s+){%d}" % (REAL, numbers)) + (rb"(?:%b\s+)*" % _FEATURE.pattern))
        self.coefficients = np.empty((self.n_vectors, numbers))
        indices, values = [np.empty(0, dtype=np.int64)], [np.empty(0)]
        for i, line in enumerate(self._lines[self._end :]):
            words = line.split() if form.fullmatch(line + b" ") else self._refuse_vector(self._end + i)
            pairs = [word.split(b":") for word in words[numbers:]]
            self.coefficients[i] = [float(word) for word in words[:numbers]]
            indices.append(np.array([int(index) for index, _ in pairs], dtype=np.int64))
            values.append(np.array([float(value) for _, value in pairs]))
            if not self._is_sound(self.coefficients[i], indices[-1], values[-1]):
                self._refuse_vector(self._end + i)
        self.starts = np.cumsum([len(part) for part in indices])
        self.indices, self.values = np.concatenate(indices), np.concatenate(values)

    def _is_sound(self, coefficients: Floats, indices: Ints, values: Floats) -> bool:
        if not (np.isfinite(coefficients).all() and np.isfinite(values).all()):
            return False
        if self.kernel.precomputed:
            return len(indices) == 1 and indices[0] == 0 and 1 <= values[0] <= MOST and values[0] % 1 == 0
        return bool((np.diff(indices, prepend=0) > 0).all()) and int(indices.max(initial=0)) <= MOST

    def _refuse_vector(self, at: int) -> NoReturn:
        """Say which word of a line is the first that is wrong."""
        words, numbers = self._words(at), len(self.labels) - 1
        for word in words[:numbers]:
            word.real()
        end = BadLineError(at + 1, len(self._lines[at]) + 1, f"expected {numbers} coefficients and the features here")
        last = 0
        for word in words[numbers:]:
            index, _, value = word.text.partition(b":")
            if not _FEATURE.fullmatch(word.text) or not math.isfinite(float(value)):
                word.refuse("expected index:value, a whole and a finite number")
            if self.kernel.precomputed:
                word.refuse("expected 0:number alone, the number being that of a training example from 1")
            if not last < int(index) <= MOST:
                word.refuse(f"expected an index from {last + 1} to {MOST}, for indices ascend from 1")
            last = int(index)
        raise end


# From a file to a machine.


def _machine(model: _Model, n_features: int | None) -> OneVsOneSVC:
    kernel = model.kernel
    least = int(model.values.max(initial=1) if kernel.precomputed else model.indices.max(initial=1))
    if n_features is not None and n_features < least:
        raise ValueError(f"n_features={n_features} is too small: the model needs {least}")
    by_label = np.argsort(model.labels)
    order = _grouped(model, by_label)
    used = {name: getattr(kernel, name) for name in KERNELS[kernel.kind].parameters}
    machine = OneVsOneSVC(decision="votes" if model.sigmoids is None else "coupling", kernel=kernel.kind, **used)
    n_features = least if n_features is None else int(n_features)
    layout = all_pairs(len(by_label))
    coefficients, intercept, sigmoids = _reordered(model, by_label)
    fitted = KernelModel(
        kernel=kernel,
        support=model.values[order].astype(np.int64) - 1 if kernel.precomputed else np.arange(model.n_vectors),
        vectors=np.empty((0, 0)) if kernel.precomputed else _vectors(model, n_features)[order],
        class_counts=model.n_support[by_label].astype(np.int32),
        coefficients=layout.sign * np.ascontiguousarray(coefficients[:, order]),
        intercept=layout.sign * intercept,
        # The order of the file, in numbers of the sorted classes.
        class_order=np.argsort(by_label) if np.any(np.diff(by_label) < 0) else None,
        layout=layout,
        n_features=n_features,
        tolerance=float(machine.tol),
    )
    unknown = Outcome(
        primal=math.nan,
        dual=math.nan,
        gap=math.nan,
        converged=False,
        stop_reason="imported",
        solver="libsvm",
        iterations=np.zeros(len(intercept), dtype=np.int64),
        evaluations=0,
        seconds=math.nan,
    )
    data = PairProbabilities() if sigmoids is None else PairProbabilities(A=sigmoids.A, B=sigmoids.B)
    parts = {"model_": fitted, "outcome_": unknown, "decision_data_": data}
    vars(machine).update({"classes_": model.labels[by_label], "n_features_in_": n_features, **parts})
    return machine


def _reordered(model: Any, by_label: Ints) -> tuple[Floats, Floats, Sigmoids | None]:
    """Return coefficients, intercepts and sigmoids for another order of classes.

    A pair that changes places changes the sign of its value f, so that A f + B becomes -(A f + B) with -B alone.
    """
    k = len(by_label)
    place = np.argsort(by_label)  # where a class of the model stands in that order
    coefficients = np.empty((k - 1, model.n_vectors))
    begin = 0
    for f, count in enumerate(model.n_support):
        vectors = slice(begin, begin + count)
        begin += count
        for g in range(k):
            if g != f:
                sign = 1.0 if (f < g) == (place[f] < place[g]) else -1.0
                row = place[g] - (place[g] > place[f])
                coefficients[row, vectors] = sign * model.coefficients[vectors, g - (g > f)]
    first, second = by_label[pair_list(k)].T
    kept = np.where(first < second, 1.0, -1.0)
    pairs = pair_index(np.minimum(first, second), np.maximum(first, second), k)
    given = model.sigmoids
    return (
        coefficients,
        -kept * model.rho[pairs],
        None if given is None else Sigmoids(given.A[pairs], kept * given.B[pairs]),
    )


def _vectors(model: _Model, n_features: int) -> Any:
    """Return the support vectors: a dense matrix if it is half full, else CSR."""
    shape = (model.n_vectors, n_features)
    vectors = sp.csr_matrix((model.values, model.indices - 1, model.starts), shape=shape)
    return vectors.toarray() if 2 * len(model.values) >= math.prod(shape) else vectors
