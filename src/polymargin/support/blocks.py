"""Work on blocks of rows: the blocks do not depend on the number of threads, so neither do the results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from polymargin.support.threads import one_blas_thread, thread_count

Result = TypeVar("Result")
_ROWS = 2048  # large enough for BLAS, small enough for the cache and for a Ctrl-C


def slices(n_rows: int, step: int) -> list[slice]:
    """Return what cuts rows into blocks, the last one perhaps smaller."""
    return [slice(begin, min(begin + step, n_rows)) for begin in range(0, n_rows, step)]


class RowBlocks:
    """Runs a function on one block of rows after the other, several at once if there are threads."""

    def __init__(self, pool: ThreadPoolExecutor | None, threads: int = 1) -> None:
        self._pool = pool
        self.threads: int = threads

    def map(self, function: Callable[[slice], Result], n_rows: int, step: int = _ROWS) -> Iterator[Result]:
        """Return what the function returns for each block, in the order of the rows."""
        blocks = slices(n_rows, step)
        if self._pool is None or len(blocks) == 1:
            return map(function, blocks)
        return self._pool.map(function, blocks)

    def each(self, function: Callable[[slice], None], n_rows: int, step: int = _ROWS) -> None:
        """Call the function on every block."""
        for _ in self.map(function, n_rows, step):
            pass


@contextmanager
def row_blocks(n_jobs: int | None) -> Iterator[RowBlocks]:
    """Yield blocks with as many threads as ``n_jobs`` means, BLAS having one for each."""
    threads = thread_count(n_jobs)
    with one_blas_thread():
        if threads == 1:
            yield RowBlocks(None)
            return
        pool = ThreadPoolExecutor(threads)
        try:
            yield RowBlocks(pool, threads)
        finally:
            pool.shutdown(cancel_futures=True)


def interruptible(function: Callable[..., Result], *args: Any, **options: Any) -> Result:
    """Call a long function of a library in another thread, so that Ctrl-C is heard while it runs.

    If it comes, the call goes on in the background and its result is dropped.
    """
    answer: dict[str, Any] = {}

    def call() -> None:
        try:
            answer["result"] = function(*args, **options)
        except BaseException as error:
            answer["error"] = error

    worker = threading.Thread(target=call, daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(0.05)
    if "error" in answer:
        raise answer["error"]
    return answer["result"]
