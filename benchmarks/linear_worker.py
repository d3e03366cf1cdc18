"""A contender of the linear race in a process of its own; it speaks as `worker.py` does.

The difference is what is asked: a fit at a given precision, answered with the primal objective of its weights.
"""

import sys
from pathlib import Path
from typing import Any

from worker import Worker, serve, timed


class LinearWorker(Worker):
    """The parent's handle; `contender` is ``machine/name``."""

    script = Path(__file__)


class Service:
    """The worker's side: answers `load`, `fit` and `release`."""

    def __init__(self, contender: str, threads: int) -> None:
        import linear_peers

        machine, name = contender.split("/")
        self.contender = linear_peers.ALL[machine][name](machine, threads)
        self.warm = False

    def load(self, data: str) -> dict[str, Any]:
        """Make the data ready; the first time also run iris, so that no start-up cost is ever timed."""
        import linear_data

        if not self.warm:
            self.contender.prepare(linear_data.load("iris"))
            self.fit(self.contender.ladder[0])
            self.warm = True
        self.contender.prepare(linear_data.load(data))
        return {}

    def fit(self, precision: float | str) -> dict[str, Any]:
        """Time one fit and judge it."""
        self.contender.forget_model()
        _, times = timed(lambda: self.contender.fit(precision))
        rows = self.contender.data.X_train.shape[0]
        return {**times, **self.judged(), **self.contender.facts(), "rows": rows}

    def judged(self) -> dict[str, Any]:
        """Primal objective and test rate of the weights, by our own arithmetic."""
        import linear_objective
        import linear_peers

        weights, data = self.contender.weights(), self.contender.data
        if weights is None:
            return {"primal": None, "rate": None}
        primal = linear_objective.primal(self.contender.machine, data, weights, linear_peers.C)
        return {"primal": primal, "rate": linear_objective.rate(data, weights)}

    def release(self) -> dict[str, Any]:
        """Give the memory back while others run."""
        self.contender.release()
        return {}


if __name__ == "__main__":
    serve(Service, sys.argv[1], int(sys.argv[2]))
