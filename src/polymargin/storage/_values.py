"""Parameters and other small values as JSON text, so that what comes back is what went in, type and all."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np


def to_json(value: Any) -> str:
    """Return the text of a value that :func:`encoded` made."""
    return json.dumps(value, allow_nan=False, sort_keys=True)


def from_json(text: str | bytes) -> Any:
    """Return the value of a text; raise ValueError if it is not strict JSON with every key once."""
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_each_key_once)


def encoded(value: Any) -> Any:
    """Return a value in terms of JSON; raise TypeError if it is none that a file can hold.

    Infinite and undefined floats become ``{"float": "inf"}``, dictionaries ``{"dict": [[key, value], ...]}``.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, dict):
        return {"dict": [[encoded(key), encoded(item)] for key, item in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a model file holds numbers, texts and dictionaries of them, not {type(value).__name__}")


def decoded(value: Any) -> Any:
    """Return what :func:`encoded` was given; raise ValueError if it cannot have been given anything."""
    match value:
        case {"float": "inf" | "-inf" | "nan" as text, **rest} if not rest:
            return float(text)
        case {"dict": list(pairs), **rest} if not rest and all(isinstance(p, list) and len(p) == 2 for p in pairs):
            keys = [decoded(key) for key, _ in pairs]
            if any(isinstance(key, dict) for key in keys):
                raise ValueError("a key of a dictionary must not be a dictionary")
            return dict(zip(keys, (decoded(item) for _, item in pairs), strict=True))
        case dict() | list():
            raise ValueError(f"{to_json(value)[:60]} is no value of a model file")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found
