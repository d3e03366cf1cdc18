"""Errors that say what might help."""

from __future__ import annotations

from typing import TypeVar

Error = TypeVar("Error", bound=BaseException)


def with_hint(error: Error, hint: str | None) -> Error:
    """Return the error with a hint as its note, which tracebacks and the command show below the message."""
    if hint is not None:
        error.add_note(hint)
    return error
