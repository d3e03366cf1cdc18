"""Fitted machines as safetensors files.

The arrays of a machine are the tensors of the file, under the names of the attributes; everything else is one JSON text
in the file's metadata, here called the header. What there is to store, and what is sound, is declared where it is kept:
in the model, the outcome and the data of the decision. The format is described in the documentation, "Models on disk".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save
from sklearn.utils.validation import check_is_fitted

from polymargin import _core, estimators
from polymargin.decision.code_book import code_defect
from polymargin.decision.nearest_column import pairs_defect
from polymargin.estimators.base import OWN_ATTRIBUTES
from polymargin.estimators.declaration import FITTED_PARTS
from polymargin.formulations import ChosenPairs, OneVsRest, OutputCode
from polymargin.kernels import Kernel
from polymargin.models import ClassLayout, KernelModel, LinearModel, ScoreLayout
from polymargin.models.declared import Declared, attributes, declarations, declared_fields, defects
from polymargin.storage._values import decoded, encoded, from_json, to_json
from polymargin.storage.files import PathLike, read_whole, replace_whole
from polymargin.support.label_sets import FORMATS

FORMAT_VERSION = 2  # 1 had an intercept for each of two classes
MACHINES = {name: getattr(estimators, name) for name in estimators.__all__}  # what a file can name

_SPARSE = {
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "csc_array": sp.csc_array,
    "csc_matrix": sp.csc_matrix,
}
_PARTS = ("data", "indices", "indptr")
_KEY = "polymargin"  # of the header in the metadata: one text, so that a model always makes the same file
_HEADER = {
    "format_version": int,
    "polymargin_version": str,
    "machine": str,
    "parameters": dict,
    "kernel": dict,
    "labels": str,
    "values": dict,
    "layouts": dict,
    "digests": dict,
    "digest": str,
}
_CHOSEN: dict[type, tuple[str, Callable[[Any, int], str | None]]] = {
    ChosenPairs: ("pairs_", pairs_defect),
    OutputCode: ("code_book_", code_defect),
}
"""Formulations whose scores a fit chose: the attribute that says which, and what may be wrong with it."""
_MOST_THREADS = 4096  # a file shall not start more
_MOST_LABEL_BYTES = 2**30  # fixed-width texts may need far more memory than their letters


def save_model(machine: Any, path: PathLike) -> None:
    """Save a fitted machine to a safetensors file.

    The new file is written aside and renamed when it is whole and on the disk: if the disk is full or the process is
    killed, the old file is still there.

    Parameters
    ----------
    machine : fitted machine of this package
        Any of them, with any kernel but a Python function.
    path : str or path-like
        The file, replaced if it is there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import OneVsOneSVC, load_model, save_model
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = OneVsOneSVC(C=10).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(machine, Path(folder) / "iris.safetensors")
    ...     loaded = load_model(Path(folder) / "iris.safetensors")
    >>> bool((loaded.decision_function(X) == machine.decision_function(X)).all())
    True
    """
    name = type(machine).__name__
    if MACHINES.get(name) is not type(machine):
        raise TypeError(
            f"save_model saves the machines of polymargin, got {name}; save the machine inside it, or the whole with "
            "skops or joblib"
        )
    check_is_fitted(machine)
    for attribute, defect in machine.state_defects():
        raise ValueError(f"the fitted state is damaged: {attribute} {defect}; fit again before saving")
    tensors, header = _packed(machine)
    header["digests"] = {name: _digest(tensor) for name, tensor in tensors.items()}
    header["digest"] = _header_digest(header)
    replace_whole(path, [save(tensors, {_KEY: to_json(header)})])


def load_model(path: PathLike) -> Any:
    """Load a machine from a file that :func:`save_model` wrote.

    Everything in the file is checked before there is a machine: types, shapes, ranges, and a digest of every tensor. No
    code runs that the file names.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    fitted machine
        Its predictions are those of the machine that was saved, to the last bit.
    """
    try:
        return _unpacked(*_checked_file(read_whole(path)))
    except _BadFileError as error:
        raise ValueError(f"{path} is not a sound model file: {error}") from None
    except RecursionError:
        raise ValueError(f"{path} is not a sound model file: its header is nested too deeply") from None


class _BadFileError(ValueError):
    """What is wrong with a file, and where."""


# From a machine to tensors and text.


def _packed(machine: Any) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the tensors and the header of a machine, the digests aside."""
    tensors: dict[str, NDArray[Any]] = {}
    values: dict[str, Any] = {}
    layouts: dict[str, Any] = {}
    state = _state(machine)
    header = {
        "format_version": FORMAT_VERSION,
        "polymargin_version": version("polymargin"),
        "machine": type(machine).__name__,
        "parameters": {name: _parameter(name, value) for name, value in machine.get_params().items()},
        "values": values,
        "layouts": layouts,
    }
    for name, declared in _declared(type(machine), type(machine.model_)).items():
        if name not in state:
            continue
        value = state[name]
        if declared.values == "kernel":
            header["kernel"] = _packed_kernel(value)
        elif declared.values == "labels":
            header["labels"] = value.dtype.str
            tensors[name] = _packed_labels(value)
        elif declared.values == "names":
            tensors[name] = _packed_texts(value)
        elif sp.issparse(value):
            layouts[name] = [f"{value.format}_{'array' if isinstance(value, sp.sparray) else 'matrix'}", *value.shape]
            tensors |= {f"{name}.{part}": _little(getattr(value, part)) for part in _PARTS}
        elif isinstance(value, np.ndarray):
            if value.ndim == 2 and value.flags.f_contiguous and not value.flags.c_contiguous:
                layouts[name] = ["fortran"]  # matrix products may round differently in the other order
                value = value.T
            tensors[name] = _little(value)
        else:
            values[name] = encoded(value)
    return tensors, header


def _state(machine: Any) -> dict[str, Any]:
    """Return all that a fit left, by the names of the attributes."""
    state = dict(vars(machine))
    undeclared = [n for n in state if n.endswith("_") and n not in OWN_ATTRIBUTES and n not in FITTED_PARTS]
    if undeclared:
        raise TypeError(f"{type(machine).__name__} has attributes that a model file does not hold: {undeclared}")
    own = {name: state[name] for name in OWN_ATTRIBUTES if name in state}
    for part in FITTED_PARTS:
        own |= attributes(state[part]) if part in state else {}
    return own


def _declared(Machine: Any, model_type: type[KernelModel]) -> dict[str, Declared]:
    """Return what a machine keeps, by the names of the attributes."""
    return {**OWN_ATTRIBUTES, **declarations(model_type, *Machine.part_types().values())}


def _parameter(name: str, value: Any) -> Any:
    """Return a parameter in terms of JSON, or say what to do about it."""
    if name == "kernel" and callable(value):
        raise ValueError(
            "the kernel is a Python function, which a model file cannot hold: fit with kernel='precomputed' on its "
            "values, or save with joblib and keep the function where it can be imported"
        )
    try:
        return encoded(value)
    except TypeError as error:
        raise ValueError(f"{name}={value!r} cannot be saved: {error}; set it with set_params before saving") from None


def _packed_kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "kind": _parameter("kernel", kernel.kind),
        "gamma": kernel.gamma,
        "coef0": kernel.coef0,
        "degree": kernel.degree,
    }


def _packed_labels(classes: NDArray[Any]) -> NDArray[Any]:
    if classes.dtype.kind in "UO" and all(isinstance(label, str) for label in classes):
        return _packed_texts(classes)
    if classes.dtype.kind in "iufb" and classes.dtype.itemsize <= 8:
        return _little(classes)
    raise ValueError(
        f"labels of type {classes.dtype} cannot be saved: use whole numbers, floats, booleans or texts, for example "
        "through sklearn.preprocessing.LabelEncoder"
    )


def _packed_texts(texts: NDArray[Any]) -> NDArray[np.uint8]:
    return np.frombuffer(to_json([str(text) for text in texts]).encode("ascii"), dtype=np.uint8)


def _little(array: Any) -> NDArray[Any]:
    """Return an array as the file has it: rows one after the other, the lowest byte first."""
    array = np.asarray(array)
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)


def _digest(tensor: NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{tensor.dtype.str} {tensor.shape} ".encode("ascii"))
    digest.update(tensor.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _header_digest(header: dict[str, Any]) -> str:
    rest = {name: entry for name, entry in header.items() if name != "digest"}
    return hashlib.sha256(to_json(rest).encode("ascii")).hexdigest()


# From a file to tensors and text.


def _checked_file(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the tensors and the header of a file whose digests are right."""
    try:
        tensors = load(data)
        metadata = from_json(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__") or {}
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise _BadFileError(f"it cannot be read as safetensors ({type(error).__name__}: {error})") from None
    if metadata.keys() != {_KEY}:
        raise _BadFileError(f"its metadata must be {_KEY!r} alone, got {sorted(metadata)}: save_model did not write it")
    header = _checked(f"metadata {_KEY!r}", from_json, metadata[_KEY])
    if not isinstance(header, dict):
        raise _BadFileError(f"metadata {_KEY!r} must be a JSON object")
    _check_header(header)
    digests = header["digests"]
    if digests.keys() != tensors.keys():
        raise _BadFileError(f"there must be the tensors {sorted(digests)}, got {sorted(tensors)}")
    for name, tensor in tensors.items():
        if digests[name] != _digest(tensor):
            raise _BadFileError(f"tensor {name!r} does not match its digest: it was changed")
    return tensors, header


def _check_header(header: dict[str, Any]) -> None:
    """Refuse a header of another format, with entries missing, too many or of another type, or changed."""
    format_version = header.get("format_version")
    if type(format_version) is not int or format_version < 1:
        raise _BadFileError(f"header 'format_version' must be a number from 1, got {str(format_version)[:20]!r}")
    if format_version > FORMAT_VERSION:
        raise _BadFileError(
            f"it has format {format_version}, written by polymargin {header.get('polymargin_version')!r}; this "
            f"polymargin reads up to format {FORMAT_VERSION}: upgrade it"
        )
    if header.keys() != _HEADER.keys():
        raise _BadFileError(f"the header must have the entries {sorted(_HEADER)}, got {sorted(header)}")
    for name, kind in _HEADER.items():
        if not isinstance(header[name], kind):
            raise _BadFileError(f"header {name!r} must be of type {kind.__name__}")
    if header["digest"] != _header_digest(header):
        raise _BadFileError("header 'digest' does not match the header: it was changed")


# From tensors and text to a machine.


def _unpacked(tensors: dict[str, NDArray[Any]], header: dict[str, Any]) -> Any:
    """Return the machine; every value is checked before it is given away."""
    Machine = MACHINES.get(header["machine"])
    if Machine is None:
        raise _BadFileError(f"header 'machine' must be one of {sorted(MACHINES)}, got {header['machine'][:60]!r}")
    machine = _with_parameters(Machine, header["parameters"])
    model_type = LinearModel if "_linear_weights" in tensors else KernelModel
    declared = _declared(Machine, model_type)
    state = _values(declared, tensors, header, Machine.__name__)
    own = {name: state[name] for name in OWN_ATTRIBUTES if name in state}
    _refuse_defects(OWN_ATTRIBUTES, own)
    reports = {name: each for name, each in declared.items() if each.report}
    _refuse_defects(reports, {name: value for name, value in state.items() if name in reports})
    layout = _layout(machine, state)
    if header["format_version"] == 1 and isinstance(layout, ClassLayout) and layout.opposite:
        state["intercept_"] = state["intercept_"][1:]
    rest: dict[str, Any] = {"layout": layout, "n_features": int(own["n_features_in_"]), "tolerance": float(machine.tol)}
    parts: dict[str, Any] = {"model_": model_type(**_fields(model_type, state), **rest)}
    parts |= {name: kind(**_fields(kind, state)) for name, kind in Machine.part_types().items()}
    vars(machine).update(own | parts)
    for name, defect in machine.state_defects():
        _refuse("tensor or value", name, defect)
    return machine


def _values(
    declared: Mapping[str, Declared], tensors: dict[str, NDArray[Any]], header: dict[str, Any], machine: str
) -> dict[str, Any]:
    """Return what the file holds of each attribute; refuse what is missing, or none of them."""
    values, layouts = dict(header["values"]), dict(header["layouts"])
    state: dict[str, Any] = {}
    left = set(tensors)
    for name, each in declared.items():
        if each.values == "kernel":
            state[name] = _kernel(header["kernel"])
        elif name in values:
            state[name] = _checked(f"value {name!r}", decoded, values.pop(name))
        elif name in layouts and layouts[name] != ["fortran"]:
            state[name] = _sparse(name, tensors, layouts.pop(name))
            left -= {f"{name}.{part}" for part in _PARTS}
        elif name in tensors:
            state[name] = _array(name, each, tensors[name], header["labels"])
            left.remove(name)
            if name in layouts:
                state[name] = _transposed(name, state[name])
                del layouts[name]
    for name in (*left, *values, *layouts):
        raise _BadFileError(f"{name!r} is none of what a {machine} keeps")
    for name, each in declared.items():
        if name not in state and not each.optional:
            raise _BadFileError(f"tensor or value {name!r} is missing")
    return state


def _fields(kind: type, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a part, of the attributes that the file holds."""
    return {of.field: state[name] for name, of in declared_fields(kind).items() if name in state}


def _layout(machine: Any, state: Mapping[str, Any]) -> ScoreLayout:
    """Return which scores there are."""
    n_classes, formulation = len(state["classes_"]), machine.formulation
    for kind, (name, defect_of) in _CHOSEN.items():
        if isinstance(formulation, kind):
            defect = defect_of(state[name], n_classes)
            if defect is not None:
                _refuse("tensor or value", name, defect)
            chosen: ScoreLayout = machine.formulation.layout(n_classes, state[name])
            return chosen
    if "label_form_" not in state:
        layout: ScoreLayout = formulation.layout(n_classes)
        return layout
    if not isinstance(formulation, OneVsRest) or state["label_form_"] not in FORMATS:
        _refuse("value", "label_form_", f"must be one of {FORMATS}, of a machine that takes several labels")
    return formulation.label_layout(n_classes)


def _refuse_defects(declared: Mapping[str, Declared], state: Mapping[str, Any]) -> None:
    for name, defect in defects(declared, state):
        _refuse("tensor or value", name, defect)


def _refuse(what: str, name: str, defect: str) -> NoReturn:
    raise _BadFileError(f"{what} {name!r} {defect}")


def _checked(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that raises ValueError, and say what it was about."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise _BadFileError(f"{what}: {error}") from None


def _with_parameters(Machine: Any, parameters: dict[str, Any]) -> Any:
    known = Machine._get_param_names()
    for name in parameters:
        if name not in known:
            _refuse("parameter", name, f"is none of {Machine.__name__}")
    # A parameter that this version has and the file has not takes its default: the file is older.
    machine = Machine(**{name: _checked(f"parameter {name!r}", decoded, value) for name, value in parameters.items()})
    _checked("header 'parameters'", machine._validate_params)
    threads = parameters.get("n_jobs")
    if threads is not None and not 1 <= abs(threads) <= _MOST_THREADS:
        _refuse("parameter", "n_jobs", f"must be None, from 1 to {_MOST_THREADS} or from -{_MOST_THREADS} to -1")
    return machine


def _kernel(numbers: dict[str, Any]) -> Kernel:
    match numbers:
        case {"kind": str(kind), "gamma": float(gamma), "coef0": float(coef0), "degree": int(degree), **rest}:
            if not rest and not isinstance(degree, bool):
                return Kernel(kind, gamma, coef0, degree)
    raise _BadFileError("header 'kernel' must have a text kind, floats gamma and coef0, and a whole number degree")


def _array(name: str, declared: Declared, tensor: NDArray[Any], label_type: str) -> NDArray[Any]:
    """Return a tensor as the attribute it was."""
    if declared.values == "labels":
        return _labels(name, tensor, label_type)
    if declared.values == "names":
        return np.array(_texts(name, tensor), dtype=object)
    return np.array(tensor)  # of its own memory, so that it can be written to


def _transposed(name: str, tensor: NDArray[Any]) -> NDArray[Any]:
    if tensor.ndim != 2:
        _refuse("tensor", name, f"must be a matrix, got shape {tensor.shape}")
    return tensor.T


def _labels(name: str, tensor: NDArray[Any], dtype: str) -> NDArray[Any]:
    if re.fullmatch(r"[<>]U[0-9]{1,9}", dtype):
        texts = _texts(name, tensor)
        if 4 * int(dtype[2:]) * len(texts) > _MOST_LABEL_BYTES:
            _refuse("tensor", name, f"would need more than {_MOST_LABEL_BYTES:,} bytes with labels of type {dtype}")
        labels = np.array(texts, dtype="<" + dtype[1:])
        if labels.tolist() != texts:
            _refuse("tensor", name, f"has labels that are not of type {dtype}")
        return labels
    if dtype == "|O":
        return np.array(_texts(name, tensor), dtype=object)
    if not re.fullmatch(r"[<>|]([iu][1248]|f[248]|b1)", dtype) or _little(np.empty(0, dtype)).dtype != tensor.dtype:
        _refuse("tensor", name, f"has type {tensor.dtype.str}, but header 'labels' says {dtype[:20]!r}")
    return np.array(tensor)


def _texts(name: str, tensor: NDArray[Any]) -> list[str]:
    if tensor.dtype != np.uint8 or tensor.ndim != 1:
        _refuse("tensor", name, "must hold the bytes of a JSON text")
    texts = _checked(f"tensor {name!r}", from_json, tensor.tobytes())
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        _refuse("tensor", name, "must hold a JSON list of texts")
    return list(texts)


def _sparse(name: str, tensors: dict[str, NDArray[Any]], layout: Any) -> Any:
    """Return a sparse matrix whose structure is sound."""
    match layout:
        case [str(kind), int(rows), int(columns)] if kind in _SPARSE and min(rows, columns) >= 0:
            outer, inner = (rows, columns) if kind.startswith("csr") else (columns, rows)
        case _:
            _refuse("header 'layouts',", name, f"must be a list of one of {sorted(_SPARSE)}, rows and columns")
    if max(rows, columns) >= 2**62:
        _refuse("header 'layouts',", name, f"has an impossible shape {(rows, columns)}")
    arrays = []
    for part, kinds in zip(_PARTS, (("f4", "f8"), ("i4", "i8"), ("i4", "i8")), strict=True):
        tensor = tensors.get(f"{name}.{part}")
        if tensor is None:
            _refuse("tensor", f"{name}.{part}", "is missing")
        if tensor.ndim != 1 or tensor.dtype.str[1:] not in kinds:
            _refuse("tensor", f"{name}.{part}", f"must be a vector of type {' or '.join(kinds)}")
        arrays.append(np.array(tensor))
    data, indices, indptr = arrays
    _checked(f"tensor '{name}.indptr'", _core.check_csr, indices, indptr, len(data), outer, inner)
    if indptr[-1] != len(data):
        _refuse("tensor", f"{name}.indptr", f"ends at {indptr[-1]}, but there are {len(data)} entries")
    matrix = _checked(f"tensor {name!r}", _SPARSE[kind], (data, indices, indptr), (rows, columns))
    matrix.indices, matrix.indptr = indices, indptr  # SciPy may have made them narrower
    if not matrix.has_canonical_format:
        _refuse("tensor", f"{name}.indices", "must ascend in every row, or column, and name each place once")
    return matrix
