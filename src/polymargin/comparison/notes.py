"""Remarks for the report: what was warned of, and what the reader had better know."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from polymargin.support.examples import Matrix

_UNEQUAL = 100.0  # ratio of spreads of features from which on scaling is advised


@contextmanager
def recorded_warnings() -> Iterator[list[str]]:
    """Yield a list that gets, in the end, what was warned of: each kind once, with its number."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "One or more of the test scores are non-finite")  # they are in the report
        yield notes
    kinds: dict[str, list[str]] = {}
    for warning in caught:
        kinds.setdefault(warning.category.__name__, []).append(last_line(str(warning.message)))
    for kind, messages in kinds.items():
        times = "" if len(messages) == 1 else f", {len(messages)} times, at first"
        notes.append(f"{kind}{times}: {messages[0]}")


def last_line(text: str) -> str:
    """Return the last line that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def scaling_advice(X: Matrix) -> list[str]:
    """Return a note if features have very different spreads, which kernels take for importance."""
    if sp.issparse(X) or X.shape[1] < 2:
        return []
    spreads = X.std(axis=0, dtype=np.float64)
    spreads = spreads[spreads > 0]
    if len(spreads) == 0 or spreads.max() < _UNEQUAL * spreads.min():
        return []
    return [
        f"The spreads of the features differ by a factor of {spreads.max() / spreads.min():.0f}: the widest decide "
        'alone. scaling="range" or "standard" makes them count alike.'
    ]


def notes_on_the_edge(parameters: Mapping[str, Any], candidates: list[dict[str, Any]]) -> list[str]:
    """Return a note for each parameter of three values or more whose best one is the largest or smallest.

    If another value does as well, the grid holds the best there is, as far as one can see.
    """
    rates = [c["rate"] for c in candidates if c["rate"] is not None]
    notes = []
    for name, value in parameters.items():
        numbers = {c["parameters"][name] for c in candidates if isinstance(c["parameters"][name], int | float)}
        as_good = {c["parameters"][name] for c in candidates if c["rate"] == max(rates)}
        if len(numbers) > 2 and value in (min(numbers), max(numbers)) and as_good == {value}:
            side = "smallest" if value == min(numbers) else "largest"
            notes.append(f"The best {name} is the {side} of the grid: beyond it may be a better one.")
    return notes


def shortened(notes: list[str], length: int = 300) -> list[str]:
    """Return the notes, cut where they are longer than so many characters."""
    return [note if len(note) <= length else note[: length - 1] + "…" for note in notes]
