"""Threads: how many, and keeping BLAS from starting its own beside ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means in scikit-learn: None is 1, -1 all cores."""
    return int(joblib.effective_n_jobs(n_jobs))


class _OneBlasThread:
    """Holds BLAS at one thread while anybody is inside.

    The limit belongs to the process. Two fits that overlap must not restore it to what the other had set,
    so the first one in sets it and the last one out restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._controller: Any = None
        self._limit: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                if self._controller is None:  # finding the libraries takes milliseconds: once
                    self._controller = ThreadpoolController().select(user_api="blas")
                self._limit = self._controller.limit(limits=1)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()
