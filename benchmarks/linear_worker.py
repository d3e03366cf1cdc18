"""A contender of the linear race in a process of its own; it speaks as `worker.py` does.

The difference is what is asked: a fit at a given precision, answered with the primal objective of its weights.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from worker import Worker, claim_standard_output, plain, thread_environment, timed


class LinearWorker(Worker):
    """The parent's handle; `contender` is ``machine/name``."""

    def __init__(self, contender: str, threads: int, timeout: float) -> None:
        self.timeout = timeout
        self.errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 (closed with the worker)
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), contender, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=thread_environment(threads),
            start_new_session=True,
        )


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


def serve(contender: str, threads: int) -> None:
    """Answer requests until the parent closes the pipe."""
    channel = claim_standard_output()
    service: Service | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            service = service or Service(contender, threads)
            answer = getattr(service, request.pop("do"))(**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=plain), file=channel, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
