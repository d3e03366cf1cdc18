"""Tables that look the same on the terminal, in markdown and in JSON."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import machine
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

RESULTS = Path(__file__).resolve().parent / "results"
MISSING = "-"
console = Console(width=None if sys.stdout.isatty() else 140)


class Cell(NamedTuple):
    """Text, and whether it reaches its bar; None where nothing is asked."""

    text: str
    ok: bool | None = None

    def rich(self) -> str:
        """Green or red where there is a bar, with a mark for those who see neither."""
        style = {True: "green", False: "bold red", None: ""}[self.ok]
        marked = escape(self.markdown())
        return f"[{style}]{marked}[/]" if style else marked

    def markdown(self) -> str:
        """The text with a mark."""
        return self.text + {True: " ✓", False: " ✗", None: ""}[self.ok]


def number(value: float | None, form: str = ".3g", ok: bool | None = None) -> Cell:
    """A cell for a number that may be missing."""
    return Cell(MISSING) if value is None else Cell(format(value, form), ok)


@dataclass
class Table:
    """A titled table; notes say what a column means where its name cannot."""

    title: str
    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    note: str = ""

    def rich(self) -> RichTable:
        """For the terminal."""
        table = RichTable(title=self.title, caption=self.note or None, title_justify="left")
        for index, column in enumerate(self.columns):
            table.add_column(column, justify="right" if index else "left")
        for row in self.rows:
            table.add_row(*(cell.rich() for cell in row))
        return table

    def markdown(self) -> str:
        """For the results folder."""
        rule = ["---"] + ["---:"] * (len(self.columns) - 1)
        body = [[cell.markdown() for cell in row] for row in self.rows]
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.columns, rule, *body)]
        return "\n".join([f"## {self.title}", "", *([self.note, ""] if self.note else []), *lines, ""])

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        rows = [[cell.markdown() for cell in row] for row in self.rows]
        return {"title": self.title, "columns": self.columns, "rows": rows}


def show(tables: list[Table]) -> None:
    """Print the tables."""
    for table in tables:
        console.print(table.rich(), "")


def markdown(heading: str, facts: dict[str, str], tables: list[Table], notes: list[str]) -> str:
    """The whole page: where it was measured first, then what."""
    lines = [f"# {heading}", "", *(f"- {name}: {value}" for name, value in facts.items()), ""]
    lines += [*(f"- {note}" for note in notes), ""] if notes else []
    return "\n".join([*lines, *(table.markdown() for table in tables)])


def publish(
    heading: str,
    name: str | None,
    tables: list[Table],
    *,
    details: list[Table] | None = None,
    notes: list[str] | None = None,
    data: Any = None,
) -> None:
    """Print the tables and, if a name is given, write them with the details to ``results/name.{md,json}``."""
    show(tables)
    notes = [note.replace(f"{RESULTS.parent.parent}/", "") for note in notes or []]  # no paths of this machine
    for note in notes:
        console.print(escape(f"note: {note}"))
    if name is None:
        return
    facts, written = machine.describe(), [*tables, *(details or [])]
    stem = RESULTS / name
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_name(stem.name + ".md").write_text(markdown(heading, facts, written, notes))
    payload = {"machine": facts, "notes": notes, "tables": [table.plain() for table in written], "data": data}
    stem.with_name(stem.name + ".json").write_text(json.dumps(payload, indent=1) + "\n")
    console.print(f"written to results/{stem.name}.md and .json")
