"""Fitted machines as ONNX files."""

from __future__ import annotations

from typing import Any

import numpy as np

from polymargin.storage._onnx_graph import OPSET, Graph, add_machine, refuse_what_has_no_graph, stored_classes
from polymargin.storage.files import PathLike, replace_whole
from polymargin.support.errors import with_hint

_IR_VERSION = 8
_TYPES = ("float64", "float32")


def export_onnx(machine: Any, path: PathLike, *, dtype: str = "float64") -> None:
    """Write a fitted machine as an ONNX graph, for onnxruntime and everything else that runs them.

    The graph has an input ``X`` of shape (n, n_features) and the outputs ``label``, what ``predict`` gives, and
    ``scores``, what ``decision_function`` gives. A machine that has ``predict_proba`` has the output ``probabilities``
    between them. With a precomputed kernel the input has the kernel values. The file is replaced whole, as by
    :func:`polymargin.save_model`. Parts of pipelines are written by skl2onnx, see :func:`register_onnx_converters`.

    All is computed in double precision, and probabilities are solved for: the results agree with those of the machine
    but for rounding. A machine of more than 1,024 support vectors may itself compute in single precision, to about half
    of its ``tol``. Where two classes are closer than that, the label may be the other's.

    Parameters
    ----------
    machine : fitted machine of this package
        With any kernel but a Python function.
    path : str or path-like
        The file, replaced if it is there.
    dtype : {"float64", "float32"}, default="float64"
        The type of ``X``, and of scores and probabilities. ``"float32"`` is what many other models take; it rounds
        ``X`` and the results to seven digits, and nothing between.

    Examples
    --------
    >>> import tempfile, onnxruntime
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import OneVsOneSVC
    >>> from polymargin.storage import export_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(OneVsOneSVC(decision="coupling").fit(X, y), f"{folder}/iris.onnx", dtype="float32")
    ...     session = onnxruntime.InferenceSession(f"{folder}/iris.onnx")
    >>> label, probabilities, scores = session.run(None, {"X": X[[0, 70]].astype("float32")})
    >>> label.tolist()
    [0, 1]
    >>> probabilities.round(2)
    array([[0.98, 0.01, 0.01],
           [0.01, 0.52, 0.47]], dtype=float32)
    """
    if dtype not in _TYPES:
        raise ValueError(f"dtype must be one of {', '.join(map(repr, _TYPES))}, got {dtype!r}")
    refuse_what_has_no_graph(machine)
    replace_whole(path, [_model(machine, dtype).SerializeToString()])


def _model(machine: Any, dtype: str) -> Any:
    onnx = imported_onnx("export_onnx")
    helper = onnx.helper
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = Graph()
    made = add_machine(graph, machine, graph.as_double("X"))
    k = len(machine.classes_)
    classes = helper.np_dtype_to_tensor_dtype(stored_classes(machine).dtype)
    graph("Identity", made.label, name="label")
    outputs = [helper.make_tensor_value_info("label", classes, ["n"])]
    if made.probabilities is not None:
        graph("Cast", made.probabilities, name="probabilities", to=number)
        outputs.append(helper.make_tensor_value_info("probabilities", number, ["n", k]))
    graph("Cast", made.scores, name="scores", to=number)
    outputs.append(helper.make_tensor_value_info("scores", number, ["n"] if k == 2 else ["n", k]))
    nodes = [helper.make_node(o.name, list(o.inputs), [o.output], **o.attributes) for o in graph.operations]
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in graph.constants.items()]
    inputs = [helper.make_tensor_value_info("X", number, ["n", machine.n_features_in_])]
    model = helper.make_model(
        helper.make_graph(nodes, type(machine).__name__, inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="polymargin",
        ir_version=_IR_VERSION,
    )
    onnx.checker.check_model(model)
    return model


def imported_onnx(who: str) -> Any:
    """Return the package onnx, or say how to install it."""
    try:
        import onnx
    except ImportError:
        error = ImportError(f"{who} needs the package onnx, which is not installed")
        raise with_hint(error, 'install it with pip install "polymargin[onnx]"') from None
    return onnx
