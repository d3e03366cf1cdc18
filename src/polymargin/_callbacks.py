"""scikit-learn's fit callbacks, where scikit-learn has them (1.9 and later)."""

from __future__ import annotations

from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    HAVE_CALLBACKS = True
except ImportError:  # an older scikit-learn: no callbacks, everything else works
    HAVE_CALLBACKS = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


__all__ = ["HAVE_CALLBACKS", "CallbackSupportMixin", "FitTasks", "with_callbacks"]


class FitTasks:
    """Tells the callbacks of an estimator about its binary problems: each is one task of the fit."""

    def __init__(self, estimator: Any, X: Any, y: Any, total: int) -> None:
        self._told = 0
        self._hooks = {"estimator": estimator, "X": X, "y": y}
        self._context = None
        if getattr(estimator, "_skl_callbacks", None):
            self._context = estimator._init_callback_context(max_subtasks=total)
            self._context.call_on_fit_task_begin(**self._hooks)

    @property
    def listening(self) -> bool:
        """Whether anybody wants to know."""
        return self._context is not None

    def report(self, done: int) -> bool:
        """Tell of the problems that ended since the last call; False if a callback asks to stop."""
        go_on = True
        while self._context is not None and self._told < done:
            task = self._context.subcontext(task_name="binary problem")
            task.call_on_fit_task_begin(**self._hooks)
            go_on = not task.call_on_fit_task_end(**self._hooks) and go_on
            self._told += 1
        return go_on

    def end(self, done: int) -> None:
        """Tell of what is left and close the fit."""
        self.report(done)
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._hooks)
