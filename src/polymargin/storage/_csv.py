"""Examples from CSV files: numbers, and a column of labels that may be texts."""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from polymargin.storage.labels import numbered
from polymargin.support.errors import with_hint

Row = tuple[int, list[str]]  # the line where it begins, and its cells


def read_csv(
    file: io.BufferedReader, separator: str, label: str, header: bool | None
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the features and the labels of a CSV file; ValueError names line and column."""
    with io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        rows = _rows(text, separator)
        first = next(rows, None)
        if first is None:
            raise ValueError("line 1, column 1: expected an example, got an empty file")
        table = _Table(len(first[1]), label)
        if not (table.is_header(first) if header is None else header):
            table.add(first)
        for row in rows:
            table.add(row)
    return table.features(), table.checked_labels()


def _rows(text: io.TextIOWrapper, separator: str) -> Iterator[Row]:
    """Yield the rows that are not empty."""
    reader = csv.reader(text, delimiter=separator, strict=True)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"line {line}, column 1: this is not CSV: {error}") from None


def _number(cell: str) -> float:
    """Return a finite number, or NaN for anything else."""
    try:
        value = float(cell)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) and "_" not in cell else math.nan


def _refuse(line: int, column: int, message: str, hint: str | None = None) -> NoReturn:
    raise with_hint(ValueError(f"line {line}, column {column}: {message}"), hint)


def _shown(cell: str) -> str:
    short = cell if len(cell) <= 40 else cell[:40] + "..."
    return ascii(short)


class _Table:
    """What was read so far: numbers in one long array, so that there is no list of every cell."""

    def __init__(self, width: int, label: str) -> None:
        self._width = width
        self._label = {"first": 0, "last": width - 1, "none": None}[label]
        if width < (1 if self._label is None else 2):
            _refuse(1, 1, "expected a label and at least one feature, got one value", "is the separator a comma?")
        self._numbers = array("d")
        self._labels: list[str] = []
        self._lines = array("q")

    def _split(self, row: Row) -> tuple[str | None, list[str]]:
        line, cells = row
        if len(cells) != self._width:
            _refuse(line, min(len(cells), self._width) + 1, f"expected {self._width} values, got {len(cells)}")
        if self._label is None:
            return None, cells
        return cells[self._label], cells[: self._label] + cells[self._label + 1 :]

    def is_header(self, row: Row) -> bool:
        """Tell whether the first row has names: no feature in it is a number, and none is empty."""
        _, cells = self._split(row)
        return all(cell.strip() and not _is_numeral(cell) for cell in cells)

    def add(self, row: Row) -> None:
        """Keep a row."""
        label, cells = self._split(row)
        length = len(self._numbers)
        try:
            self._numbers.extend(map(float, cells))
        except ValueError:
            self._refuse_cell(row)
        if not all(map(math.isfinite, self._numbers[length:])) or any("_" in cell for cell in cells):
            self._refuse_cell(row)
        if label is not None:
            self._labels.append(label)
        self._lines.append(row[0])

    def _refuse_cell(self, row: Row) -> None:
        line, cells = row
        for column, cell in enumerate(cells):
            if column != self._label and math.isnan(_number(cell)):
                hint = "give --header if this is a line of names" if line == 1 else None
                if self._label == 0 and column == len(cells) - 1 and line > 1:
                    hint = "give --label last if the last column has the classes"
                _refuse(line, column + 1, f"expected a finite number, got {_shown(cell)}", hint)

    def features(self) -> NDArray[np.float64]:
        """Return the numbers as a matrix."""
        if len(self._lines) == 0:
            raise ValueError("line 2, column 1: expected an example, got the end of the file")
        return np.frombuffer(self._numbers, dtype=np.float64).reshape(len(self._lines), -1)

    def checked_labels(self) -> NDArray[Any]:
        """Return the labels: all numbers or all texts, as the first one is."""
        if self._label is None:
            return np.empty(0, dtype=np.int64)
        numeric = _is_numeral(self._labels[0])
        for line, text in zip(self._lines, self._labels, strict=True):
            if not text.strip() or not text.isprintable():
                _refuse(line, self._label + 1, f"expected a label, got {_shown(text)}")
            if numeric and math.isnan(_number(text)):
                _refuse(line, self._label + 1, f"expected a finite number as label, as above, got {_shown(text)}")
            if not numeric and _is_numeral(text):
                _refuse(line, self._label + 1, f"expected a text as label, as above, got {_shown(text)}")
        return numbered(np.array(self._labels, dtype=np.float64)) if numeric else np.array(self._labels)


def _is_numeral(cell: str) -> bool:
    """Tell whether a cell is a number, be it finite or not."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
