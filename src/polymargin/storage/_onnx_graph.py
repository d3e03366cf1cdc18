"""The operations of a fitted machine: kernel values, scores, the decision and probabilities, in double precision.

They are those of ONNX, and a list of them is all that there is here: :mod:`polymargin.storage.onnx_file` makes a file
of it, :mod:`polymargin.storage.onnx_converters` a part of a larger graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polymargin import _core
from polymargin.decision import Calibrated, pair_index, pair_list
from polymargin.decision.coupling import LEAST
from polymargin.decision.voting import for_first_at_zero
from polymargin.estimators import OneVsOneSVC, OneVsRestSVC, OutputCodeSVC, SoftmaxSVC, UncertaintySVC
from polymargin.estimators.base import MulticlassSVC
from polymargin.kernels import KERNELS, KernelEntry
from polymargin.models import KernelModel

OPSET = 13  # of which all operations are
DOUBLE, INT64 = 11, 7  # of ONNX's types
_MOST_BYTES = 2**31 - 1  # a protobuf message is not larger
_DECISIONS = ("votes", "dag", "adag", "coupling")  # of pairs, that have a graph
_DIGITS = 1e12  # to which distances count, as in polymargin.decision
_PARTS = 64  # of the features, at most, whose terms are summed one after the other
_TINY = 1e-200  # a sum of probabilities of which only the exponents are left


@dataclass(frozen=True)
class Operation:
    """A node of the graph: what it computes, from what, and under which name."""

    name: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Outputs:
    """The names of what a machine says of each row."""

    label: str
    scores: str
    probabilities: str | None


class Graph:
    """Operations and constants under way; calling it adds an operation and returns the name of what it computes."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._number = count()
        self.operations: list[Operation] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def __call__(self, operation: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        name = name or f"{self._prefix}{operation}_{next(self._number)}"
        self.operations.append(Operation(operation, inputs, name, attributes))
        return name

    def constant(self, value: Any) -> str:
        """Add a constant; numbers are doubles unless they are an array of another type."""
        name = f"{self._prefix}constant_{next(self._number)}"
        self.constants[name] = np.asarray(value, dtype=None if isinstance(value, np.ndarray) else np.float64)
        return name

    def whole(self, *numbers: int) -> str:
        """Add a vector of whole numbers."""
        return self.constant(np.array(numbers, dtype=np.int64))

    def as_double(self, values: str) -> str:
        """Turn numbers of any kind into doubles; flags become 0 and 1."""
        return self("Cast", values, to=DOUBLE)

    def chosen(self, values: str, columns: str) -> str:
        """Return from each row the value of one column: (n, m) and (n,) give (n,)."""
        columns = self("Unsqueeze", columns, self.whole(1))
        return self("Squeeze", self("GatherElements", values, columns, axis=1), self.whole(1))


def refuse_what_has_no_graph(machine: Any) -> None:
    """Raise an error that says what would be right if a machine cannot be written."""
    if not isinstance(machine, MulticlassSVC):
        raise TypeError(
            f"export_onnx writes the machines of polymargin that decide by scores, not {type(machine).__name__}"
        )
    machine.check_state()
    kernel = machine.model_.kernel
    if callable(kernel.kind):
        raise ValueError("ONNX has no kernels in Python: fit with kernel='precomputed' on the values of the function")
    if KERNELS[kernel.kind].onnx is None:
        raise ValueError(
            f"there is no ONNX graph of the kernel {kernel.kind!r}: fit with another, or with "
            "kernel='precomputed' on the kernel values"
        )
    if isinstance(machine, OneVsRestSVC) and machine.multilabel_:
        raise ValueError("there is no ONNX graph of several labels: export a machine for each label")
    if isinstance(machine, OneVsOneSVC) and machine.decision not in _DECISIONS:
        raise ValueError(f"there is no ONNX graph of decision={machine.decision!r}: call set_params(decision='votes')")
    if isinstance(machine, OutputCodeSVC) and machine.decoding == "probability":
        raise ValueError("there is no ONNX graph of decoding='probability': call set_params(decoding='loss')")
    if isinstance(machine.deciding_rule, Calibrated) and machine.calibration_method == "isotonic":
        raise ValueError(
            "there is no ONNX graph of calibration='isotonic': fit with 'sigmoid' or 'temperature', or call "
            "set_params(calibration=None)"
        )
    needed = 8 * len(machine.support_) * (1 if kernel.precomputed else machine.n_features_in_)
    if kernel.kind != "linear" and needed > _MOST_BYTES:
        raise ValueError(f"the support vectors take {needed / 1e9:.1f} GB, and an ONNX file at most 2 GB")


def has_probabilities(machine: Any) -> bool:
    """Whether a machine has probabilities to write."""
    if isinstance(machine, OneVsOneSVC):
        return machine.decision == "coupling"
    return isinstance(machine, SoftmaxSVC) or isinstance(machine.deciding_rule, Calibrated)


def stored_classes(machine: Any) -> NDArray[Any]:
    """Return the classes as ONNX has them: texts, doubles or whole numbers."""
    classes = machine.classes_
    if classes.dtype.kind in "UO":
        return np.array([str(label) for label in classes], dtype=object)
    return classes.astype(np.float64 if classes.dtype.kind == "f" else np.int64)


def add_machine(graph: Graph, machine: Any, X: str) -> Outputs:
    """Add what a machine says of the rows X, which are doubles."""
    values = _scores(graph, machine.model_, X)
    if isinstance(machine, OneVsOneSVC) and machine.decision == "coupling":
        probabilities = _coupled(graph, machine, values)
        decided = _first_in_order(graph, machine, probabilities)
        scores = probabilities if len(machine.classes_) > 2 else _log_odds(graph, machine, values)
    else:
        decided, scores = _decision(graph, machine, values)
        probabilities = _softmax(graph, machine, values) if isinstance(machine, SoftmaxSVC) else ""
        if isinstance(machine.deciding_rule, Calibrated):
            decided, scores, probabilities = _calibrated(graph, machine, scores)
    label = graph("Gather", graph.constant(stored_classes(machine)), decided, axis=0)
    return Outputs(label, scores, probabilities or None)


# Scores.


def _scores(graph: Graph, model: KernelModel, X: str) -> str:
    """Add every score of every row, in the signs of the public attributes."""
    if model.kernel.kind == "linear":
        weights = np.ascontiguousarray(model.score_weights().T, dtype=np.float64)
        product = graph("MatMul", X, graph.constant(weights))
    else:
        product = graph("MatMul", _kernel_values(graph, model, X), graph.constant(_coefficients(model)))
    return graph("Add", product, graph.constant(model.intercepts))


def _coefficients(model: KernelModel) -> NDArray[np.float64]:
    """Return the coefficient of each support vector in each score."""
    given = model.coefficients.toarray() if sp.issparse(model.coefficients) else model.coefficients
    coefficients = np.zeros((len(model.support), model.layout.n_scores))
    for (begin, end), columns in model.blocks:
        coefficients[begin:end, columns] = given[: len(columns), begin:end].T
    return coefficients


def _kernel_values(graph: Graph, model: KernelModel, X: str) -> str:
    kernel = model.kernel
    if kernel.precomputed:
        return graph("Gather", X, graph.constant(model.support.astype(np.int64)), axis=1)
    given = model.vectors
    vectors = np.asarray(given.toarray() if sp.issparse(given) else given, dtype=np.float64)
    entry = KERNELS[kernel.kind]
    assert entry.onnx is not None
    if entry.reads is _core.KernelInput.products:
        inputs = graph("MatMul", X, graph.constant(np.ascontiguousarray(vectors.T)))
    elif entry.reads is _core.KernelInput.squared_distances:
        inputs = _squared_distances(graph, X, vectors)
    else:
        inputs = _feature_sums(graph, entry, X, vectors)
    return entry.onnx(graph, kernel, inputs)


def _squared_distances(graph: Graph, X: str, vectors: NDArray[np.float64]) -> str:
    # Distances are differences of squares: the smaller these, the more digits are left.
    centre = vectors.mean(axis=0) if len(vectors) > 0 else np.zeros(vectors.shape[1])
    X, vectors = graph("Sub", X, graph.constant(centre)), vectors - centre
    products = graph("MatMul", X, graph.constant(np.ascontiguousarray(vectors.T)))
    squares = graph("ReduceSum", graph("Mul", X, X), graph.whole(1), keepdims=1)
    twice = graph("Mul", products, graph.constant(-2.0))
    distances = graph("Add", graph("Add", squares, twice), graph.constant((vectors**2).sum(axis=1)))
    return graph("Max", distances, graph.constant(0.0))


def _feature_sums(graph: Graph, entry: KernelEntry, X: str, vectors: NDArray[np.float64]) -> str:
    """Add the sums of a kernel's terms, some features at a time: terms are an array of rows x vectors x features."""
    assert entry.onnx_term is not None
    features = vectors.shape[1]
    total = ""
    for part in np.array_split(np.arange(features), min(features, _PARTS)):
        rows = graph("Unsqueeze", graph("Gather", X, graph.constant(part), axis=1), graph.whole(1))
        terms = entry.onnx_term(graph, rows, graph.constant(np.ascontiguousarray(vectors[None][:, :, part])))
        sums = graph("ReduceSum", terms, graph.whole(2), keepdims=0)
        total = graph("Add", total, sums) if total else sums
    return total


# Decisions: each returns the class of each row, as a number, and the scores of the classes.


def _decision(graph: Graph, machine: Any, values: str) -> tuple[str, str]:
    k = len(machine.classes_)
    if isinstance(machine, OutputCodeSVC):
        return _nearest_code(graph, values, machine)
    if k == 2:
        return _of_two(graph, machine, values)
    if isinstance(machine, UncertaintySVC):
        return _nearest_column(graph, values, machine)
    if not isinstance(machine, OneVsOneSVC):
        return graph("ArgMax", values, axis=1, keepdims=0), values
    wins, favour = _counted(graph, machine, values)
    if machine.decision == "votes":
        decided = _first_in_order(graph, machine, wins)
    else:
        decided = (_dag if machine.decision == "dag" else _adag)(graph, values, k)
    return decided, _vote_scores(graph, wins, favour, decided)


def _of_two(graph: Graph, machine: Any, values: str) -> tuple[str, str]:
    each = np.eye(machine.model_.layout.n_scores)
    weights = machine.decision_rule.public_scores(each)[:, 0]  # it is linear
    score = graph("MatMul", values, graph.constant(np.ascontiguousarray(weights)))
    at_zero = isinstance(machine, OneVsOneSVC) and machine.model_.comes_before(0, 1)
    second = graph("GreaterOrEqual" if at_zero else "Greater", score, graph.constant(0.0))
    return graph("Cast", second, to=INT64), score


def _first_in_order(graph: Graph, machine: Any, scores: str) -> str:
    """Add the class of the largest score, of several the first in the order of the machine."""
    given = machine.model_.class_order
    order = graph.whole(*(range(len(machine.classes_)) if given is None else given))
    best = graph("ArgMax", graph("Gather", scores, order, axis=1), axis=1, keepdims=0)
    return graph("Gather", order, best, axis=0)


def _nearest_column(graph: Graph, values: str, machine: UncertaintySVC) -> tuple[str, str]:
    matrix, zero = machine.decision_matrix_, graph.constant(0.0)
    if machine.answers == "signs":
        answers = graph.as_double(graph("GreaterOrEqual", values, zero))
    else:
        half = graph("Mul", graph("Add", values, graph.constant(1.0)), graph.constant(0.5))
        answers = graph("Min", graph("Max", half, zero), graph.constant(1.0))
    own = graph("ReduceSum", graph("Mul", answers, answers), graph.whole(1), keepdims=1)
    product = graph("Add", graph("MatMul", answers, graph.constant(-2 * matrix)), own)
    squared = graph("Max", graph("Add", product, graph.constant((matrix**2).sum(axis=0))), zero)
    digits = graph.constant(_DIGITS)
    rounded = graph("Div", graph("Round", graph("Mul", squared, digits)), digits)
    scores = graph("Neg", graph("Sqrt", rounded))
    return graph("ArgMax", scores, axis=1, keepdims=0), scores


def _nearest_code(graph: Graph, values: str, machine: OutputCodeSVC) -> tuple[str, str]:
    """Add the scores of :mod:`polymargin.decision.code_book`."""
    code = machine.code_book_
    if len(code) == 2:
        score = graph("MatMul", values, graph.constant(np.ascontiguousarray(code[1])))
        return graph("Cast", graph("Greater", score, graph.constant(0.0)), to=INT64), score
    if machine.decoding == "hamming":
        agreed = graph("MatMul", graph("Sign", values), graph.constant(np.ascontiguousarray(code.T / 2)))
        scores = graph("Sub", agreed, graph.constant(code.shape[1] / 2))
    else:
        one, none = graph.constant(1.0), graph.constant(0.0)
        positive = graph("Max", graph("Sub", one, values), none)
        negative = graph("Max", graph("Add", one, values), none)
        ups, downs = (np.ascontiguousarray(np.maximum(0.0, sign * code.T)) for sign in (1.0, -1.0))
        losses = graph(
            "Add", graph("MatMul", positive, graph.constant(ups)), graph("MatMul", negative, graph.constant(downs))
        )
        absent = (code == 0).sum(axis=1).astype(np.float64)
        scores = graph("Neg", graph("Add", losses, graph.constant(absent)))
    return graph("ArgMax", scores, axis=1, keepdims=0), scores


def _counted(graph: Graph, machine: Any, values: str) -> tuple[str, str]:
    """Add the votes for each class and the sum of the values in its favour."""
    k = len(machine.classes_)
    pairs = pair_list(k)
    first, second = np.eye(k)[pairs[:, 0]], np.eye(k)[pairs[:, 1]]
    votes = graph("Greater", values, graph.constant(0.0))
    order = machine.model_.class_order
    if order is not None:
        at_zero = graph("Equal", values, graph.constant(0.0))
        votes = graph("Or", votes, graph("And", at_zero, graph.constant(for_first_at_zero(k, order))))
    for_first = graph.as_double(votes)
    wins = graph("Add", graph("MatMul", for_first, graph.constant(first - second)), graph.constant(second.sum(axis=0)))
    return wins, graph("MatMul", values, graph.constant(first - second))


def _vote_scores(graph: Graph, wins: str, favour: str, decided: str) -> str:
    """Add the scores of :func:`polymargin.decision.vote_scores`."""
    size = graph("Add", graph("Abs", favour), graph.constant(1.0))
    squeezed = graph("Div", favour, graph("Mul", size, graph.constant(3.0)))
    scores = graph("Add", wins, squeezed)
    largest = graph("ArgMax", scores, axis=1, keepdims=1)
    winner = graph("Unsqueeze", decided, graph.whole(1))
    top = graph("GatherElements", scores, largest, axis=1)
    of_winner = graph("GatherElements", scores, winner, axis=1)
    exchanged = graph("ScatterElements", scores, largest, of_winner, axis=1)
    return graph("ScatterElements", exchanged, winner, top, axis=1)


def _kept(graph: Graph, values: str, low: str, high: str, k: int) -> str:
    """Add whether each row keeps the lower of two classes."""
    i, j = np.minimum.outer(np.arange(k), np.arange(k)), np.maximum.outer(np.arange(k), np.arange(k))
    table = graph.constant(np.where(i < j, pair_index(i, j, k), 0).reshape(-1))
    place = graph("Add", graph("Mul", low, graph.whole(k)), high)
    pair = graph("Gather", table, place, axis=0)
    return graph("Greater", graph.chosen(values, pair), graph.constant(0.0))


def _everywhere(graph: Graph, number: int, values: str) -> str:
    """Add a number for each row."""
    rows = graph("Slice", graph("Shape", values), graph.whole(0), graph.whole(1))
    return graph("Expand", graph.whole(number), rows)


def _dag(graph: Graph, values: str, k: int) -> str:
    first, last = _everywhere(graph, 0, values), _everywhere(graph, k - 1, values)
    for _ in range(k - 1):
        kept = graph("Cast", _kept(graph, values, first, last, k), to=INT64)
        last = graph("Sub", last, kept)
        first = graph("Add", first, graph("Sub", graph.whole(1), kept))
    return first


def _adag(graph: Graph, values: str, k: int) -> str:
    left = [_everywhere(graph, c, values) for c in range(k)]
    while len(left) > 1:
        matches = len(left) // 2
        winners = []
        for one, other in zip(left[:matches], left[::-1], strict=False):
            low, high = graph("Min", one, other), graph("Max", one, other)
            winners.append(graph("Where", _kept(graph, values, low, high, k), low, high))
        left = winners + left[matches : len(left) - matches]
    return left[0]


# Probabilities.


def _softmax(graph: Graph, machine: SoftmaxSVC, scores: str) -> str:
    """Add the probabilities of :mod:`polymargin.decision.probabilities`."""
    if machine.formulation.is_joint(len(machine.classes_)):
        return graph("Softmax", scores, axis=1)
    doubled = graph("Mul", scores, graph.constant(2.0))
    each = graph("Sigmoid", doubled)
    total = graph("ReduceSum", each, graph.whole(1), keepdims=1)
    scaled = graph("Div", each, graph("Max", total, graph.constant(_TINY)))
    enough = graph("Greater", total, graph.constant(_TINY))
    return graph("Where", enough, scaled, graph("Softmax", doubled, axis=1))


def _calibrated(graph: Graph, machine: Any, scores: str) -> tuple[str, str, str]:
    """Add the class, the scores and the probabilities of :class:`polymargin.decision.Calibrated`."""
    calibration, two = machine.calibration_data_, len(machine.classes_) == 2
    if two:
        scores = graph("Unsqueeze", scores, graph.whole(1))
    if calibration.method == "temperature":
        weights = graph("Mul", scores, graph.constant(1.0 / calibration.temperature))
    else:
        odds = graph(
            "Add", graph("Mul", scores, graph.constant(calibration.slopes)), graph.constant(calibration.offsets)
        )
        weights = odds if two else _minus_softplus(graph, odds)
    if two:
        half = 1.0 if calibration.method == "temperature" else -0.5  # A f + B are the odds against the second class
        second = graph("Mul", weights, graph.constant(half))
        weights = graph("Concat", graph("Neg", second), second, axis=1)
    probabilities = graph("Softmax", weights, axis=1)
    decided = graph("ArgMax", weights, axis=1, keepdims=0)
    if two:
        weights = graph("Squeeze", graph("Mul", second, graph.constant(2.0)), graph.whole(1))
    return decided, weights, probabilities


def _minus_softplus(graph: Graph, odds: str) -> str:
    """Add -log(1 + exp(z)), with an exponent that is never positive."""
    small = graph("Log", graph("Add", graph("Exp", graph("Neg", graph("Abs", odds))), graph.constant(1.0)))
    return graph("Neg", graph("Add", graph("Max", odds, graph.constant(0.0)), small))


def _log_odds_of_pairs(graph: Graph, machine: OneVsOneSVC, values: str) -> str:
    """Add A f + B, the logarithm of the odds of the second class of each pair."""
    slopes = machine.model_.layout.sign * machine.probA_
    return graph("Add", graph("Mul", values, graph.constant(slopes)), graph.constant(machine.probB_))


def _pair_probabilities(graph: Graph, machine: OneVsOneSVC, values: str) -> str:
    """Add the probability of the first class of each pair."""
    first = graph("Sigmoid", graph("Neg", _log_odds_of_pairs(graph, machine, values)))
    return graph("Min", graph("Max", first, graph.constant(LEAST)), graph.constant(1.0 - LEAST))


def _log_odds(graph: Graph, machine: OneVsOneSVC, values: str) -> str:
    """Add the score of two classes."""
    odds = _log_odds_of_pairs(graph, machine, values)
    unlikely = graph("Less", _pair_probabilities(graph, machine, values), graph.constant(0.5))
    score = graph("Where", unlikely, odds, graph("Min", odds, graph.constant(0.0)))
    return graph("Squeeze", score, graph.whole(1))


def _coupled(graph: Graph, machine: OneVsOneSVC, values: str) -> str:
    """Add the probabilities of :func:`polymargin.decision.couple`."""
    k = len(machine.classes_)
    first = _pair_probabilities(graph, machine, values)
    second = graph("Sub", graph.constant(1.0), first)
    if k == 2:
        return graph("Concat", first, second, axis=1)
    # r[i, j], the probability of class i among i and j, and 0 on the diagonal, which is what stands behind the pairs.
    i, j = pair_list(k).T
    table = np.full((k, k), 2 * len(i))
    table[i, j], table[j, i] = np.arange(len(i)), len(i) + np.arange(len(i))
    nothing = graph("Mul", graph("Slice", first, graph.whole(0), graph.whole(1), graph.whole(1)), graph.constant(0.0))
    entries = graph("Concat", first, second, nothing, axis=1)
    r = graph("Reshape", graph("Gather", entries, graph.whole(*table.ravel()), axis=1), graph.whole(-1, k, k))
    products = graph("Mul", r, graph("Transpose", r, perm=[0, 2, 1]))
    squares = graph("ReduceSum", graph("Mul", r, r), graph.whole(1), keepdims=1)
    diagonal = graph("Mul", squares, graph.constant(np.eye(k)))
    system = graph("Add", graph("Sub", graph.constant(1.0), products), diagonal)
    p = graph("Max", _solved(graph, system, r, k), graph.constant(0.0))
    return graph("Div", p, graph("ReduceSum", p, graph.whole(1), keepdims=1))


def _solved(graph: Graph, system: str, like: str, k: int) -> str:
    """Add the solution of a positive definite system with ones on the right, for each row, by Gauss and Jordan.

    ONNX has no solver. Such systems need no exchange of rows, and take k steps.
    """
    column = graph("Slice", like, graph.whole(0), graph.whole(1), graph.whole(2))
    ones = graph("Add", graph("Mul", column, graph.constant(0.0)), graph.constant(1.0))
    whole = graph("Concat", system, ones, axis=2)  # (n, k, k + 1)
    for j in range(k):
        row = graph("Gather", whole, graph.whole(j), axis=1)  # (n, 1, k + 1)
        row = graph("Div", row, graph("Gather", row, graph.whole(j), axis=2))
        # What is taken from its own row leaves the row divided by the pivot, from all others it takes the column.
        factor = graph("Sub", graph("Gather", whole, graph.whole(j), axis=2), graph.constant(np.eye(k)[:, [j]]))
        whole = graph("Sub", whole, graph("Mul", factor, row))
    return graph("Squeeze", graph("Gather", whole, graph.whole(k), axis=2), graph.whole(2))
