"""Fitted machines as ONNX graphs: kernel values, scores and the decision as plain operations in double precision."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polymargin._errors import with_hint
from polymargin.decision import pair_index, pair_list
from polymargin.machines import OneVsOneSVC, UncertaintySVC
from polymargin.machines._largest_score import LargestScoreMixin
from polymargin.machines._pairs import PairMachine
from polymargin.storage._files import PathLike, replace_whole

_OPSET = 17
_IR_VERSION = 8
_MOST_BYTES = 2**31 - 1  # a protobuf message is not larger
_DIGITS = 1e12  # to which distances count, as in polymargin.decision


def export_onnx(machine: Any, path: PathLike) -> None:
    """Write a fitted machine as an ONNX graph, for onnxruntime and everything else that runs them.

    The graph has an input ``X`` of shape (n, n_features), double, and two outputs: ``label``, what ``predict`` gives,
    and ``scores``, what ``decision_function`` gives. With a precomputed kernel the input has the kernel values. The
    file is replaced whole, as by :func:`polymargin.save_model`.

    Parameters
    ----------
    machine : fitted machine of this package
        With any kernel but a Python function.
    path : str or path-like
        The file, replaced if it is there.
    """
    _refuse_what_has_no_graph(machine)
    replace_whole(path, [_model(machine).SerializeToString()])


def _refuse_what_has_no_graph(machine: Any) -> None:
    kinds: Any = PairMachine | LargestScoreMixin
    if not isinstance(machine, kinds):
        raise TypeError(
            f"export_onnx writes the machines of polymargin that decide by scores, not {type(machine).__name__}"
        )
    check_is_fitted(machine)
    machine._checked_state()
    if callable(machine._kernel.kind):
        raise ValueError("ONNX has no kernels in Python: fit with kernel='precomputed' on the values of the function")
    if isinstance(machine, OneVsOneSVC) and machine.decision not in ("votes", "dag", "adag"):
        raise ValueError(
            f"decision={machine.decision!r} cannot be written as ONNX: call set_params(decision='votes') first"
        )
    needed = 8 * len(machine.support_) * (1 if machine._kernel.precomputed else machine.n_features_in_)
    if machine._kernel.kind != "linear" and needed > _MOST_BYTES:
        raise ValueError(f"the support vectors take {needed / 1e9:.1f} GB, and an ONNX file at most 2 GB")


def _model(machine: Any) -> Any:
    onnx = _imported_onnx()
    helper, types = onnx.helper, onnx.TensorProto
    graph = _Graph(onnx)
    values = _scores(graph, machine)
    decided, scores = _decision(graph, machine, values)
    classes = graph.constant(_classes(machine.classes_))
    graph("Gather", classes, decided, axis=0, name="label")
    graph("Identity", scores, name="scores")
    kind = onnx.helper.np_dtype_to_tensor_dtype(_classes(machine.classes_).dtype)
    two = len(machine.classes_) == 2
    inputs = [helper.make_tensor_value_info("X", types.DOUBLE, ["n", machine.n_features_in_])]
    outputs = [
        helper.make_tensor_value_info("label", kind, ["n"]),
        helper.make_tensor_value_info("scores", types.DOUBLE, ["n"] if two else ["n", len(machine.classes_)]),
    ]
    made = helper.make_graph(graph.nodes, type(machine).__name__, inputs, outputs, graph.constants)
    model = helper.make_model(
        made, opset_imports=[helper.make_opsetid("", _OPSET)], producer_name="polymargin", ir_version=_IR_VERSION
    )
    onnx.checker.check_model(model)
    return model


def _imported_onnx() -> Any:
    try:
        import onnx
    except ImportError:
        error = ImportError("export_onnx needs the package onnx, which is not installed")
        raise with_hint(error, 'install it with pip install "polymargin[onnx]"') from None
    return onnx


def _classes(classes: NDArray[Any]) -> NDArray[Any]:
    if classes.dtype.kind in "UO":
        return np.array([str(label) for label in classes], dtype=object)
    return classes.astype(np.float64 if classes.dtype.kind == "f" else np.int64)


class _Graph:
    """Nodes and constants under way; calling it adds a node and returns the name of what it computes."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._number = count()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, operation: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        name = name or f"{operation}_{next(self._number)}"
        self.nodes.append(self._onnx.helper.make_node(operation, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        """Add a constant; numbers are doubles unless they are an array of another type."""
        array = np.asarray(value, dtype=None if isinstance(value, np.ndarray) else np.float64)
        name = f"constant_{next(self._number)}"
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def whole(self, *numbers: int) -> str:
        """Add a vector of whole numbers."""
        return self.constant(np.array(numbers, dtype=np.int64))

    def as_double(self, flags: str) -> str:
        """Turn flags into 0 and 1."""
        return self("Cast", flags, to=self._onnx.TensorProto.DOUBLE)

    def chosen(self, values: str, columns: str) -> str:
        """Return from each row the value of one column: (n, m) and (n,) give (n,)."""
        columns = self("Unsqueeze", columns, self.whole(1))
        return self("Squeeze", self("GatherElements", values, columns, axis=1), self.whole(1))


# Scores.


def _scores(graph: _Graph, machine: Any) -> str:
    """Add every score of every row, in the signs of the public attributes."""
    if machine._kernel.kind == "linear":
        product = graph("MatMul", "X", graph.constant(np.ascontiguousarray(machine._weights().T, dtype=np.float64)))
    else:
        product = graph("MatMul", _kernel_values(graph, machine), graph.constant(_coefficients(machine)))
    return graph("Add", product, graph.constant(np.asarray(machine._intercepts, dtype=np.float64)))


def _coefficients(machine: Any) -> NDArray[np.float64]:
    """Return the coefficient of each support vector in each score."""
    given = machine.dual_coef_.toarray() if sp.issparse(machine.dual_coef_) else machine.dual_coef_
    coefficients = np.zeros((len(machine.support_), len(machine._intercepts)))
    for (begin, end), columns in machine._blocks():
        coefficients[begin:end, columns] = given[: len(columns), begin:end].T
    return coefficients


def _kernel_values(graph: _Graph, machine: Any) -> str:
    kernel = machine._kernel
    if kernel.precomputed:
        return graph("Gather", "X", graph.constant(machine.support_.astype(np.int64)), axis=1)
    given = machine.support_vectors_
    vectors = np.asarray(given.toarray() if sp.issparse(given) else given, dtype=np.float64)
    products = graph("MatMul", "X", graph.constant(np.ascontiguousarray(vectors.T)))
    if kernel.kind == "rbf":
        squares = graph("ReduceSum", graph("Mul", "X", "X"), graph.whole(1), keepdims=1)
        twice = graph("Mul", products, graph.constant(-2.0))
        distances = graph("Add", graph("Add", squares, twice), graph.constant((vectors**2).sum(axis=1)))
        near = graph("Max", distances, graph.constant(0.0))
        return graph("Exp", graph("Mul", near, graph.constant(-kernel.gamma)))
    inner = graph("Add", graph("Mul", products, graph.constant(kernel.gamma)), graph.constant(kernel.coef0))
    if kernel.kind == "sigmoid":
        return graph("Tanh", inner)
    return graph("Pow", inner, graph.constant(float(kernel.degree)))


# Decisions: each returns the class of each row, as a number, and the scores of the classes.


def _decision(graph: _Graph, machine: Any, values: str) -> tuple[str, str]:
    k = len(machine.classes_)
    if k == 2:
        each = np.eye(len(machine._intercepts))
        weights = each[:, 0] if isinstance(machine, PairMachine) else machine._binary_score(each)  # it is linear
        score = graph("MatMul", values, graph.constant(np.ascontiguousarray(weights)))
        return graph("Cast", graph("Greater", score, graph.constant(0.0)), to=_INT64), score
    if isinstance(machine, UncertaintySVC):
        return _nearest_column(graph, values, machine)
    if not isinstance(machine, OneVsOneSVC):
        return graph("ArgMax", values, axis=1, keepdims=0), values
    wins, favour = _counted(graph, values, k)
    if machine.decision == "votes":
        order = graph.whole(*vars(machine).get("_tie_order", range(k)))
        best = graph("ArgMax", graph("Gather", wins, order, axis=1), axis=1, keepdims=0)
        decided = graph("Gather", order, best, axis=0)
    else:
        decided = (_dag if machine.decision == "dag" else _adag)(graph, values, k)
    return decided, _vote_scores(graph, wins, favour, decided)


_INT64 = 7  # of ONNX's types


def _nearest_column(graph: _Graph, values: str, machine: UncertaintySVC) -> tuple[str, str]:
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


def _counted(graph: _Graph, values: str, k: int) -> tuple[str, str]:
    """Add the votes for each class and the sum of the values in its favour."""
    pairs = pair_list(k)
    first, second = np.eye(k)[pairs[:, 0]], np.eye(k)[pairs[:, 1]]
    for_first = graph.as_double(graph("Greater", values, graph.constant(0.0)))
    wins = graph("Add", graph("MatMul", for_first, graph.constant(first - second)), graph.constant(second.sum(axis=0)))
    return wins, graph("MatMul", values, graph.constant(first - second))


def _vote_scores(graph: _Graph, wins: str, favour: str, decided: str) -> str:
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


def _kept(graph: _Graph, values: str, low: str, high: str, k: int) -> str:
    """Add whether each row keeps the lower of two classes."""
    i, j = np.minimum.outer(np.arange(k), np.arange(k)), np.maximum.outer(np.arange(k), np.arange(k))
    table = graph.constant(np.where(i < j, pair_index(i, j, k), 0).reshape(-1))
    place = graph("Add", graph("Mul", low, graph.whole(k)), high)
    pair = graph("Gather", table, place, axis=0)
    return graph("Greater", graph.chosen(values, pair), graph.constant(0.0))


def _everywhere(graph: _Graph, number: int, values: str) -> str:
    """Add a number for each row."""
    rows = graph("Slice", graph("Shape", values), graph.whole(0), graph.whole(1))
    return graph("Expand", graph.whole(number), rows)


def _dag(graph: _Graph, values: str, k: int) -> str:
    first, last = _everywhere(graph, 0, values), _everywhere(graph, k - 1, values)
    for _ in range(k - 1):
        kept = graph("Cast", _kept(graph, values, first, last, k), to=_INT64)
        last = graph("Sub", last, kept)
        first = graph("Add", first, graph("Sub", graph.whole(1), kept))
    return first


def _adag(graph: _Graph, values: str, k: int) -> str:
    left = [_everywhere(graph, c, values) for c in range(k)]
    while len(left) > 1:
        matches = len(left) // 2
        winners = []
        for one, other in zip(left[:matches], left[::-1], strict=False):
            low, high = graph("Min", one, other), graph("Max", one, other)
            winners.append(graph("Where", _kept(graph, values, low, high, k), low, high))
        left = winners + left[matches : len(left) - matches]
    return left[0]
