"""Threads: how many, and keeping BLAS from starting its own beside ours."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

_TURN = 0.1  # seconds


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means in scikit-learn: None is 1, -1 all cores."""
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of threads, -1 for all cores or None for one; got 0")
    return int(joblib.effective_n_jobs(n_jobs))


def for_each(work: Callable[[Any], None], items: Iterable[Any], threads: int) -> None:
    """Call ``work`` for every item, in threads if there are to be several."""
    if threads == 1:
        for item in items:
            work(item)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, items):
            pass


def one_after_the_other(work: Callable[[Any], None], items: list[Any]) -> None:
    """Call ``work`` for every item."""
    for item in items:
        work(item)


@contextmanager
def in_threads(count: int, stop: threading.Event) -> Iterator[Callable[[Callable[[Any], None], list[Any]], None]]:
    """Yield ``each(work, items)``, which calls ``work`` for every item, in threads if there are several.

    When something goes wrong, Ctrl-C included, ``stop`` tells the work that is under way.
    """
    if count == 1:
        yield one_after_the_other
        return

    def guarded(work: Callable[[Any], None], item: Any) -> None:
        if not stop.is_set():
            work(item)

    with ThreadPoolExecutor(count) as pool:

        def each(work: Callable[[Any], None], items: list[Any]) -> None:
            try:
                waiting = {pool.submit(guarded, work, item) for item in items}
                while waiting:
                    # In turns: a signal that another thread gets is seen by this one only when it wakes.
                    done, waiting = wait(waiting, timeout=_TURN, return_when=FIRST_EXCEPTION)
                    for future in done:
                        future.result()
            except BaseException:
                stop.set()
                raise

        yield each


class _OneBlasThread:
    """Holds BLAS at one thread while anybody is inside.

    The limit belongs to the process. Two fits that overlap must not restore it to what the other had set,
    so the first one in sets it and the last one out restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._libraries: list[Any] | None = None
        self._before: list[int] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                if self._libraries is None:  # finding them takes milliseconds: once
                    self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
                self._before = [library.get_num_threads() for library in self._libraries]
                for library in self._libraries:
                    _set_threads(library, 1)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    for library, count in zip(self._libraries or [], self._before, strict=True):
                        _set_threads(library, count)


def _set_threads(library: Any, count: int) -> None:
    """Set the number of threads, from whichever thread this is.

    Newer threadpoolctl ignores all threads but the first that set a limit. The last fit out need not be the first
    one in, so control is taken and given back each time.
    """
    take_control = getattr(library, "clear_controlling_thread", None)
    if take_control is not None:
        take_control(force=True)
    library.set_num_threads(count)
    if take_control is not None:
        take_control(force=True)


one_blas_thread = _OneBlasThread()
