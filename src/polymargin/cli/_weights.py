"""LIBSVM's ``-wi``: an option whose name has the class in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.storage.labels import label_text

_WEIGHT = re.compile(r"-w(.+)")


def with_weights_spelled_out(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with ``-w1 2.5`` as ``--weight 1:2.5``, which a parser of options understands."""
    spelled: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        found = _WEIGHT.fullmatch(argument)
        if argument == "--":
            return [*spelled, argument, *rest]
        spelled += ["--weight", f"{found[1]}:{next(rest, '')}"] if found else [argument]
    return spelled


def class_weights(given: Sequence[str], labels: NDArray[Any]) -> dict[Any, float] | None:
    """Return the weights of classes from texts ``label:weight``."""
    known = {label_text(label): label for label in np.unique(labels)}
    weights = {}
    for text in given:
        name, _, number = text.rpartition(":")
        if name not in known:
            some = ", ".join(list(known)[:8])
            raise ValueError(f"-w{name}: there is no class {name} in the data, whose classes are {some}")
        try:
            weights[known[name].item()] = float(number)
        except ValueError:
            raise ValueError(f"-w{name}: expected a number, got {number!r}") from None
    return weights or None
