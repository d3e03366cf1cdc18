"""A contender of the sweep in a process of its own, which is killed when a fit takes too long; see `worker.py`."""

import contextlib
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

from worker import Worker, serve, timed

PEERS = {"kernel": "scikit-learn SVC", "linear": "scikit-learn LinearSVC"}
MACHINES = ("one-vs-one", "one-vs-rest", "weston-watkins", "crammer-singer")
REPEATS, SHORT = 3, 0.05
"""A fit of less than so many seconds is timed so often in a row, and the least counts: the first pays for caches that
others have emptied, which is a good part of a fit of a millisecond, ours or the peer's."""
FACTS = ("primal_objective_", "dual_objective_", "duality_gap_", "converged_", "stop_reason_", "solver_used_")


class SweepWorker(Worker):
    """The parent's handle; `contender` is ``kernel/machine``, or ``kernel/`` and the name of a peer."""

    script = Path(__file__)

    def ask_within(self, seconds: float, **request: Any) -> dict[str, Any]:
        """Ask, and wait for so long."""
        self.timeout = seconds
        return self.ask(**request)

    def kill(self) -> None:
        """End the process where it is: one that does not answer would not end when asked either."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.close()


def estimator(contender: str, threads: int, C: float, gamma: float | str | None, **options: Any) -> Any:
    """A fresh machine; `options` are for ours alone."""
    import contenders
    from datasets import Parameters
    from sklearn.svm import LinearSVC

    kernel, name = contender.split("/")
    if name == PEERS["linear"]:
        return LinearSVC(C=C, loss="hinge", random_state=0)
    if name == PEERS["kernel"]:
        return contenders.scikit_learn_svc(Parameters(C, gamma))
    make = getattr(contenders, f"polymargin_{name.replace('-', '_')}")
    if kernel == "linear":
        return make(Parameters(C, "scale"), threads, kernel="linear", **options)
    return make(Parameters(C, gamma), threads, **options)


class Service:
    """The worker's side: answers `load` and `fit`."""

    def __init__(self, contender: str, threads: int) -> None:
        self.contender, self.threads = contender, threads
        self.X, self.y = self.iris()
        self.fit(1.0, "scale")  # libraries are loaded and pools started before anything is timed

    def iris(self) -> Any:
        """The problem to warm up with."""
        from sklearn.datasets import load_iris

        return load_iris(return_X_y=True)

    def load(self, data: str, scaling: str) -> dict[str, Any]:
        """Make the data ready, and fit a few rows of them: the first fit after a change of data takes longer."""
        import sweep_data

        X, y = sweep_data.load(data, scaling)
        few = sweep_data.few_of_each(y)
        self.X, self.y = X[few], y[few]
        self.fit(1.0, "scale")
        self.X, self.y = X, y
        return {"rows": self.X.shape[0]}

    def fit(self, C: float, gamma: float | str | None, **options: Any) -> dict[str, Any]:
        """Time a fit, a short one a few times, and say what came of it."""
        taken: list[dict[str, float]] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            while not taken or (len(taken) < REPEATS and taken[-1]["seconds"] < SHORT):
                machine = estimator(self.contender, self.threads, C, gamma, **options)
                taken.append(timed(lambda machine=machine: machine.fit(self.X, self.y), collect=not taken)[1])
        times = min(taken, key=lambda each: each["seconds"])
        facts = {name.strip("_"): getattr(machine, name) for name in FACTS if hasattr(machine, name)}
        return {**times, **facts, "warnings": sorted({each.category.__name__ for each in caught})}


if __name__ == "__main__":
    serve(Service, sys.argv[1], int(sys.argv[2]))
