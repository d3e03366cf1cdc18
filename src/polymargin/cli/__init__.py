"""The command ``polymargin``: LIBSVM's workflow, ``svm-scale``, ``grid.py``, ``svm-train``, ``svm-predict``, in one.

One file for each command. Exit codes: 0 it worked, 1 it failed, 2 it was called wrongly, 130 Ctrl-C.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What follows the name of the command; None takes it from ``sys.argv``.

    Returns
    -------
    int
        0, 1, 2 or 130.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from polymargin.cli._app import run  # takes a second, in which Ctrl-C may come too

        return run(given)
    except KeyboardInterrupt:
        return INTERRUPTED
