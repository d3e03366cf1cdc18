"""What a comparison shows of itself while it runs, and who hears of its fits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from polymargin.comparison.remaining import Remaining, SearchWork


class TimeLimitError(Exception):
    """The search of a machine took too long."""


@dataclass(frozen=True)
class Watch:
    """Who hears of the fits of a search, and of those after it."""

    counted: Callable[[int], None]  # of so many more
    evaluated: Callable[[int, float], None]  # of a candidate and its seconds, when a fit of it is done
    repeated: Callable[[int, int], None]  # of a candidate, so many fits of which will be those of another one
    chosen: Callable[[int], None]  # of the candidate that is fitted again when the search is over
    fitted_again: Callable[[float], None]  # of the seconds of a fit of it, and of all that belongs to it


def limited(watch: Watch, time_limit: float | None) -> Watch:
    """Return what raises TimeLimitError too when the time is over."""
    if time_limit is None:
        return watch
    started = time.perf_counter()

    def counted(count: int) -> None:
        watch.counted(count)
        if time.perf_counter() - started > time_limit:
            raise TimeLimitError(f"its search took longer than time_limit={time_limit:g} seconds")

    return replace(watch, counted=counted)


@dataclass(frozen=True)
class Progress:
    """The searches of a comparison under way."""

    remaining: Remaining
    begin: Callable[[int, str], Callable[[int], None]] | None  # draws, and returns what counts

    @property
    def visible(self) -> bool:
        """Whether anybody looks."""
        return self.begin is not None

    @contextmanager
    def search(self, number: int, title: str) -> Iterator[Watch]:
        """Begin and end a search, with all that comes after it."""
        counted = (lambda count: None) if self.begin is None else self.begin(number, title)
        self.remaining.begin(number)
        remaining = self.remaining
        told = (remaining.fitted, remaining.foresee, remaining.choose, remaining.fitted_again)
        yield Watch(counted, *(partial(each, number) for each in told))
        self.remaining.end(number)


@contextmanager
def progress_of_searches(verbose: int, work: list[SearchWork], threads: int) -> Iterator[Progress]:
    """Yield what is told of the searches; it draws one bar for all of them, with the time that is left."""
    remaining = Remaining(work, threads)
    if not verbose:
        yield Progress(remaining, None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Left(ProgressColumn):
        """The time that is left, where there is a saying."""

        def render(self, task: Any) -> Text:
            return Text(clock_time(remaining.seconds()), style="progress.remaining")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        Left(),
    )
    total = [each.fits for each in work]
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=sum(total))

        def begin(number: int, title: str) -> Callable[[int], None]:
            bar.update(task, description=title, completed=sum(total[:number]))
            return lambda count: bar.advance(task, count)

        yield Progress(remaining, begin)
        bar.update(task, completed=sum(total))


def clock_time(seconds: float | None) -> str:
    """Return hours, minutes and seconds, rounded to what an estimate can say; dashes where there is none."""
    if seconds is None:
        return "-:--:--"
    step = next((step for most, step in ((60, 1), (600, 10), (3600, 60)) if seconds < most), 300)
    whole = step * round(seconds / step)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
