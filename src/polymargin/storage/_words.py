"""Words of LIBSVM's text files, each with its place."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NoReturn

MOST = 2**31 - 1  # LIBSVM's int
REAL = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

_TOKEN = re.compile(rb"\S+")
_WHOLE = re.compile(rb"[+-]?[0-9]{1,10}")
_NUMBER = re.compile(REAL)


class BadLineError(ValueError):
    """What is wrong with a file, and in which line and column, counted from 1."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(f"line {line}, column {column}: {message}")


@dataclass(frozen=True)
class Word:
    """A word of the file and its place."""

    text: bytes
    line: int
    column: int

    def refuse(self, message: str) -> NoReturn:
        """Raise an error that names the place."""
        raise BadLineError(
            self.line, self.column, f"{message}, got {self.text[:40].decode('ascii', 'backslashreplace')!r}"
        )

    def real(self) -> float:
        """Return the word as a finite number, or refuse it."""
        value = float(self.text) if _NUMBER.fullmatch(self.text) else math.nan
        if not math.isfinite(value):
            self.refuse("expected a finite number")
        return value

    def whole(self, least: int, most: int = MOST) -> int:
        """Return the word as a whole number in a range, or refuse it."""
        value = int(self.text) if _WHOLE.fullmatch(self.text) else None
        if value is None or not least <= value <= most:
            self.refuse(f"expected a whole number from {least} to {most}")
        return value


def words_of(line: bytes, number: int) -> list[Word]:
    """Return the words of a line that has this number."""
    return [Word(match[0], number, match.start() + 1) for match in _TOKEN.finditer(line)]
