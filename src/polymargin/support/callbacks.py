"""scikit-learn's fit callbacks, where scikit-learn has them (1.9 and later)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

if TYPE_CHECKING:
    from polymargin.support.typing import CallbackSupportMixin

    HAVE_CALLBACKS: bool

    def with_callbacks(method: Method) -> Method:
        """Run a method within the life of the callbacks."""
        ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks

        HAVE_CALLBACKS = True
    except ImportError:  # an older scikit-learn: no callbacks, everything else works
        HAVE_CALLBACKS = False

        class CallbackSupportMixin:
            """Stands in for scikit-learn's mixin."""

        def with_callbacks(method):
            """Return the method as it is."""
            return method


__all__ = ["HAVE_CALLBACKS", "CallbackSupportMixin", "FitTasks", "SearchTasks", "has_callbacks", "with_callbacks"]


def has_callbacks(estimator: Any) -> bool:
    """Whether anybody listens to the fits of an estimator."""
    return bool(getattr(estimator, "_skl_callbacks", None))


class FitTasks:
    """Tells the callbacks of an estimator about the tasks of its fit: binary problems, or rounds (no ``total``).

    After a round there is a machine that could predict; callbacks such as ``ScoringMonitor`` get it if they ask for it.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, total: int | None) -> None:
        self._total = total
        self._n_reported = 0
        self._hooks = {"estimator": estimator, "X": X, "y": y}
        self._context = None
        if has_callbacks(estimator):
            self._context = estimator._init_callback_context(max_subtasks=total)
            self._context.call_on_fit_task_begin(**self._hooks)

    @property
    def listening(self) -> bool:
        """Whether anybody wants to know."""
        return self._context is not None

    def report(self, done: int, fitted: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Tell of the problems that ended since the last call, or of a round; False if a callback asks to stop.

        ``fitted`` returns the attributes of the machine so far.
        """
        if self._total is None:
            return self._context is None or fitted is None or self._report_task("round", fitted)
        go_on = True
        while self._context is not None and self._n_reported < done:
            self._n_reported += 1
            go_on = self._report_task("binary problem", fitted if self._n_reported == done else None) and go_on
        return go_on

    def _report_task(self, name: str, fitted: Callable[[], dict[str, Any]] | None) -> bool:
        assert self._context is not None
        task = self._context.subcontext(task_name=name)
        task.call_on_fit_task_begin(**self._hooks)
        return not task.call_on_fit_task_end(**self._hooks, reconstruction_attributes=fitted)

    def end(self, done: int | None, fitted: Callable[[], dict[str, Any]]) -> None:
        """Tell of what is left and close the fit."""
        if self._total is not None and done is not None:
            self.report(done)
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._hooks, reconstruction_attributes=fitted)


class SearchTasks:
    """Tells the callbacks of a search about its tasks, which are those of scikit-learn's.

    Below the fit there are the search, with a task for each candidate and fold, and the last fit to all data.
    Candidates that are solved together are told one after the other when they are done.
    """

    def __init__(self, search: Any, X: Any, y: Any, params: dict[str, Any], total: int) -> None:
        weight = params.get("sample_weight")
        self._hooks = {
            "estimator": search,
            "X": X,
            "y": y,
            "metadata": None if weight is None else {"sample_weight": weight},
        }
        self._search, self._lock = search, threading.Lock()
        self._fit = self._evaluations = None
        if has_callbacks(search):
            self._fit = search._init_callback_context(max_subtasks=1 + (search.refit is not False))
            self._fit.call_on_fit_task_begin(**self._hooks)
            self._evaluations = self._fit.subcontext("search", max_subtasks=total, sequential_subtasks=False)
            self._evaluations.call_on_fit_task_begin(estimator=search)

    def evaluated(self, number: int, part: Callable[[], tuple[Any, Any]]) -> None:
        """Tell of a candidate on a fold, by its number; ``part`` returns the examples that it was fitted to."""
        if self._evaluations is None:
            return
        hooks = {"estimator": self._search, "X": lambda: part()[0], "y": lambda: part()[1]}
        with self._lock:  # evaluations end in threads
            task = self._evaluations.subcontext("candidate-split-evaluation", task_id=number)
            task.call_on_fit_task_begin(**hooks)
            task.call_on_fit_task_end(**hooks)

    def searched(self) -> None:
        """Tell that all candidates are done."""
        if self._evaluations is not None:
            self._evaluations.call_on_fit_task_end(estimator=self._search)

    @contextmanager
    def refitting(self, best: Any) -> Iterator[None]:
        """Tell of the last fit, whose tasks belong to those of the search."""
        if self._fit is None:
            yield
            return
        task = self._fit.subcontext("refit-with-best-params")
        with task.propagate_callback_context(best):
            task.call_on_fit_task_begin(**self._hooks)
            yield
        task.call_on_fit_task_end(**self._hooks)

    def end(self) -> None:
        """Tell that the search is over."""
        if self._fit is not None:
            self._fit.call_on_fit_task_end(**self._hooks)
