"""``polymargin check``: what ``checkdata.py`` does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

from polymargin.cli import _options as option
from polymargin.cli._messages import Printer
from polymargin.storage.data_files import Examples, read_examples
from polymargin.storage.labels import label_text
from polymargin.storage.range_file import Ranges

_UNEVEN = 100.0  # ranges of features that differ by more ask for scaling


def check(
    data: Annotated[list[Path], typer.Argument(metavar="DATA...", help=option.DATA_HELP)],
    label: option.Label = "first",
    header: option.Header = None,
    zero_based: option.ZeroBased = False,
    as_json: option.AsJson = False,
) -> None:
    """Check data files and say what is in them (checkdata.py).

    A file that is not sound is refused with line and column.
    """
    printer = Printer(as_json)
    found = []
    for path in data:
        examples = read_examples(path, label=label, header=header, zero_based=zero_based)
        summary = summary_of(examples)
        found.append({"file": str(path), **summary})
        printer.say(
            f"{path}: {summary['examples']:,} examples, {summary['features']:,} features, "
            f"{summary['nonzero']:,} values ({100 * summary['density']:.3g} %), {len(summary['classes'])} classes"
        )
        printer.say("  " + ", ".join(f"{name}: {count:,}" for name, count in summary["classes"].items()))
        for remark in summary["remarks"]:
            printer.say(f"  note: {remark}")
    printer.say("No error.")
    printer.note(files=found)
    printer.close()


def summary_of(examples: Examples) -> dict[str, Any]:
    """Return the sizes of a data set, and what one should know before training on it."""
    X, y = examples.X, examples.y
    classes, counts = np.unique(y, return_counts=True)
    nonzero = X.nnz if sp.issparse(X) else np.count_nonzero(X)
    return {
        "format": examples.kind,
        "examples": X.shape[0],
        "features": X.shape[1],
        "nonzero": int(nonzero),
        "density": float(nonzero) / max(1, X.shape[0] * X.shape[1]),
        "classes": {label_text(c): int(n) for c, n in zip(classes, counts, strict=True)},
        "remarks": list(_remarks(X, counts)),
    }


def _remarks(X: Any, counts: Any) -> Any:
    if len(counts) == 1:
        yield "there is one class: nothing to tell apart"
    if np.any(counts == 1):
        yield f"{int(np.sum(counts == 1))} classes have a single example"
    if X.shape[1] == 0:
        yield "there are no features"
        return
    used = _used_features(X)
    ranges = Ranges.of(used)
    width = ranges.largest - ranges.least
    constant = int(np.sum(width == 0)) + X.shape[1] - used.shape[1]
    if constant:
        yield f"{constant} features are constant"
    if np.any(width > 0) and width.max() > _UNEVEN * width[width > 0].min():
        yield "ranges of features differ widely: scale the data (`polymargin scale`)"


def _used_features(X: Any) -> Any:
    """Return the features that have a value anywhere: one index may be astronomical."""
    if not sp.issparse(X) or X.shape[1] <= X.nnz:
        return X
    names, columns = np.unique(X.indices, return_inverse=True)
    return sp.csr_matrix((X.data, columns, X.indptr), shape=(X.shape[0], len(names)))
