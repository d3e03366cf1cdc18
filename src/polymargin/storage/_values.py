"""Parameters and other small values as JSON text, so that what comes back is what went in, type and all."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

_NUMBERS = ("float32", "float64", "int32", "int64")


def to_json(value: Any) -> str:
    """Return the text of a value that :func:`encoded` made."""
    return json.dumps(value, allow_nan=False, sort_keys=True)


def from_json(text: str | bytes) -> Any:
    """Return the value of a text; raise ValueError if it is not strict JSON with every key once."""
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_each_key_once)


def encoded(value: Any) -> Any:
    """Return a value in terms of JSON; raise TypeError if it is none that a file can hold.

    What JSON has not becomes an object of one entry: ``{"float": "inf"}``, ``{"dict": [[key, value], ...]}``,
    ``{"list": [...]}``, ``{"tuple": [...]}``, ``{"array": ["float64", [...]]}``.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, dict):
        return {"dict": [[encoded(key), encoded(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [encoded(item) for item in value]}
    if isinstance(value, np.ndarray) and value.dtype.name in _NUMBERS and np.all(np.isfinite(value)):
        return {"array": [value.dtype.name, value.tolist()]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a model file holds numbers, texts, lists and dictionaries of them, not {type(value).__name__}")


def decoded(value: Any) -> Any:
    """Return what :func:`encoded` was given; raise ValueError if it cannot have been given anything."""
    if not isinstance(value, dict | list):
        return value
    kind, content = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (None, None)
    match kind, content:
        case "float", "inf" | "-inf" | "nan":
            return float(content)
        case "dict", list() if all(isinstance(pair, list) and len(pair) == 2 for pair in content):
            keys = [decoded(key) for key, _ in content]
            if all(key is None or isinstance(key, bool | int | float | str) for key in keys):
                return dict(zip(keys, (decoded(item) for _, item in content), strict=True))
        case (("list" | "tuple"), list()):
            items = [decoded(item) for item in content]
            return items if kind == "list" else tuple(items)
        case "array", [str(dtype), list(numbers)] if dtype in _NUMBERS:
            array = np.array(numbers)  # raises ValueError if rows differ in length
            if array.size == 0 or array.dtype.kind in "if":
                return array.astype(dtype)
    raise ValueError(f"{to_json(value)[:60]} is no value of a model file")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found
