"""What a long fit shows of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int, int, float], None]


@contextmanager
def progress_bar(title: str, verbose: int, measure: str = "violation") -> Iterator[Report | None]:
    """Yield a callback for ``(done, total, iterations, measure)`` that draws a bar, or None when silent."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("problems  {task.fields[iterations]:,} steps  " + measure + " {task.fields[violation]:.2g}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:  # standard output is for results
        task = bar.add_task(title, total=None, iterations=0, violation=float("inf"))

        def report(done: int, total: int, iterations: int, violation: float) -> None:
            bar.update(task, completed=done, total=total, iterations=iterations, violation=violation)

        yield report


@contextmanager
def count_bar(title: str, verbose: int, total: int, unit: str) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that counts some more of ``total``, drawing a bar with the time left, or None when silent."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:  # standard output is for results
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
