"""The machines in skl2onnx's registry, so that pipelines with them become ONNX graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from polymargin import estimators
from polymargin.storage._onnx_graph import (
    OPSET,
    Graph,
    add_machine,
    has_probabilities,
    refuse_what_has_no_graph,
    stored_classes,
)
from polymargin.support.errors import with_hint


def register_onnx_converters() -> None:
    """Teach skl2onnx the machines of this package, alone and in pipelines and whatever else it converts.

    Afterwards ``skl2onnx.to_onnx`` and ``skl2onnx.convert_sklearn`` know them. The graph has the outputs ``label``,
    what ``predict`` gives, and ``probabilities``, what ``predict_proba`` gives. For a machine without probabilities,
    and with the option ``raw_scores``, the second is ``scores``, what ``decision_function`` gives. Both are tensors,
    whatever the option ``zipmap`` says.

    The type of the second is that of the input, float or double. The machine computes in double precision; what stands
    before it in a pipeline computes in the type of the input: give doubles where seven digits are not enough.

    To call it again changes nothing. It needs skl2onnx, which is in the extra ``onnx``, and opset 13 or later.

    Examples
    --------
    >>> import onnxruntime, skl2onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polymargin import OneVsOneSVC
    >>> from polymargin.storage import register_onnx_converters
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), OneVsOneSVC(decision="coupling")).fit(X, y)
    >>> register_onnx_converters()
    >>> model = skl2onnx.to_onnx(pipeline, X)
    >>> session = onnxruntime.InferenceSession(model.SerializeToString())
    >>> label, probabilities = session.run(None, {"X": X[[0, 70]]})
    >>> label.tolist(), bool(abs(probabilities - pipeline.predict_proba(X[[0, 70]])).max() < 1e-6)
    ([0, 1], True)
    >>> model = skl2onnx.to_onnx(pipeline, X, options={OneVsOneSVC: {"raw_scores": True}})
    >>> [output.name for output in model.graph.output]
    ['label', 'scores']
    """
    skl2onnx = _imported_skl2onnx()
    # Pipelines tell every classifier to make dictionaries, and ONNX has those for floats alone: tensors stay tensors.
    options = {"raw_scores": [True, False], "zipmap": [True, False]}
    for name in estimators.__all__:
        skl2onnx.update_registered_converter(
            getattr(estimators, name), f"Polymargin{name}", _shapes, _convert, parser=_parse, options=options
        )


def _imported_skl2onnx() -> Any:
    try:
        import skl2onnx
    except ImportError:
        error = ImportError("register_onnx_converters needs the package skl2onnx, which is not installed")
        raise with_hint(error, 'install it with pip install "polymargin[onnx]"') from None
    return skl2onnx


def _gives_probabilities(scope: Any, machine: Any) -> bool:
    options = scope.get_options(machine, {"raw_scores": False, "zipmap": False})
    return has_probabilities(machine) and not options["raw_scores"]


def _parse(scope: Any, machine: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """Declare the machine and its outputs; their shapes come later."""
    from skl2onnx.common.data_types import guess_tensor_type

    refuse_what_has_no_graph(machine)
    operator = scope.declare_local_operator(f"Polymargin{type(machine).__name__}", machine)
    operator.inputs = inputs
    second = "probabilities" if _gives_probabilities(scope, machine) else "scores"
    operator.outputs.append(scope.declare_local_variable("label", _label_type(machine)))
    operator.outputs.append(scope.declare_local_variable(second, guess_tensor_type(inputs[0].type)))
    outputs: list[Any] = operator.outputs
    return outputs


def _label_type(machine: Any, shape: list[Any] | None = None) -> Any:
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    kinds = {"O": StringTensorType, "f": DoubleTensorType, "i": Int64TensorType}
    return kinds[stored_classes(machine).dtype.kind](shape)


def _shapes(operator: Any) -> None:
    machine, rows = operator.raw_operator, operator.inputs[0].get_first_dimension()
    columns = len(machine.classes_)
    flat = columns == 2 and not _gives_probabilities(operator.scope_inst, machine)
    operator.outputs[0].type = _label_type(machine, [rows])
    operator.outputs[1].type.shape = [rows] if flat else [rows, columns]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the operations of the machine to what there is."""
    machine = operator.raw_operator
    if container.target_opset_onnx < OPSET:
        raise ValueError(f"target_opset must be {OPSET} or later, got {container.target_opset_onnx}")
    graph = Graph(scope.get_unique_variable_name(type(machine).__name__) + "_")
    label, second = operator.outputs
    made = add_machine(graph, machine, graph.as_double(operator.inputs[0].full_name))
    numbers = made.probabilities if _gives_probabilities(scope, machine) else made.scores
    assert numbers is not None
    graph("Identity", made.label, name=label.full_name)
    graph("Cast", numbers, name=second.full_name, to=second.type.to_onnx_type().tensor_type.elem_type)
    for name, array in graph.constants.items():
        _add_constant(container, name, array)
    for operation in graph.operations:
        name = scope.get_unique_operator_name(operation.output)
        container.add_node(
            operation.name, list(operation.inputs), [operation.output], name=name, **operation.attributes
        )


def _add_constant(container: Any, name: str, array: np.ndarray[Any, Any]) -> None:
    from onnx import TensorProto, numpy_helper

    if array.dtype == object:
        container.add_initializer(name, TensorProto.STRING, array.shape, [text.encode() for text in array])
    else:
        container.add_initializer(name, None, None, numpy_helper.from_array(array, name))
