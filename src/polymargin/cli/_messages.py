"""What the command says: results for people or as JSON, warnings, and errors with a hint."""

from __future__ import annotations

import difflib
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import typer


class Printer:
    """Says results: lines for people as they come, or one JSON document at the end."""

    def __init__(self, as_json: bool, quiet: bool = False) -> None:
        self.as_json = as_json
        self._silent = as_json or quiet
        self._document: dict[str, Any] = {}

    @property
    def verbose(self) -> int:
        """Whether somebody watches, as ``verbose`` of the machines: progress goes to standard error."""
        return int(not self._silent and sys.stderr.isatty())

    def say(self, line: str, *, to_standard_error: bool = False) -> None:
        """Print a line for people."""
        if not self._silent:
            typer.echo(line, err=to_standard_error)

    def note(self, **entries: Any) -> None:
        """Add to the document for machines."""
        self._document |= entries

    def close(self) -> None:
        """Print the document, if that was asked for."""
        if self.as_json:
            typer.echo(json_text(self._document))


def write_out(parts: Iterable[bytes]) -> None:
    """Write to standard output, all of it: where that is not buffered, one call may write less than it was given."""
    sys.stdout.flush()
    stream = sys.stdout.buffer
    for part in parts:
        left = memoryview(part)
        while left:
            left = left[stream.write(left) :]
    stream.flush()


def json_text(document: Any) -> str:
    """Return strict JSON; a number that is none becomes null."""
    return json.dumps(_plain(document), allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning as the command has them; a replacement of ``warnings.showwarning``."""
    typer.echo(f"warning: {message}", err=True)


def report_error(error: Exception | str, hint: str | None, as_json: bool) -> None:
    """Print an error and what might help; with ``--json`` also as the document."""
    text = error_text(error)
    typer.echo(f"error: {text}", err=True)
    if hint:
        typer.echo(f"hint: {hint}", err=True)
    if as_json:
        typer.echo(json_text({"error": text, "hint": hint}))


def error_text(error: Exception | str) -> str:
    """Return what went wrong, in one line where it was one."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    if isinstance(error, str | ValueError | TypeError | OSError | ImportError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def hint_for(error: Exception) -> str | None:
    """Return what might help: what whoever raised the error said, or a name that is there."""
    notes = getattr(error, "__notes__", ())
    if notes:
        return "; ".join(notes)
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        wanted = Path(str(error.filename))
        there = [path.name for path in wanted.parent.iterdir()] if wanted.parent.is_dir() else []
        near = difflib.get_close_matches(wanted.name, there, n=1)
        return f"there is `{wanted.parent / near[0]}`" if near else None
    if isinstance(error, MemoryError):
        return "give less memory to kernel values with -m, or train on fewer rows"
    return None
