"""Labels as files have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_EXACT = 2.0**53  # whole numbers up to here are doubles


def numbered(labels: NDArray[np.float64]) -> NDArray[Any]:
    """Return labels as whole numbers if all of them are."""
    whole = np.all((labels == np.floor(labels)) & (np.abs(labels) <= _EXACT))
    return labels.astype(np.int64) if whole else labels


def label_text(label: Any) -> str:
    """Return a label as a file has it: the shortest text that is read as the same."""
    return str(label.item() if isinstance(label, np.generic) else label)
