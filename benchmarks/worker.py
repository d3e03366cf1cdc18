"""A contender in a process of its own: thread settings hold from the start, and a crash ends one lane alone.

Parent and worker speak JSON, one object a line. The worker's standard output is moved away first, because
some peers print from C.
"""

import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


class WorkerError(RuntimeError):
    """The contender raised, crashed or took too long; the message says which."""


class WorkerTimeoutError(WorkerError):
    """It took too long."""


def thread_environment(threads: int) -> dict[str, str]:
    """Environment in which every OpenMP and BLAS runtime starts with this many threads."""
    return {**os.environ, **{name: str(threads) for name in THREAD_VARIABLES}}


class Worker:
    """The parent's handle of one worker process."""

    script = Path(__file__)

    def __init__(self, contender: str, threads: int, timeout: float) -> None:
        self.timeout = timeout
        self.errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 (closed with the worker)
        self.process = subprocess.Popen(
            [sys.executable, str(self.script), contender, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=thread_environment(threads),
            start_new_session=True,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise WorkerError(self.epitaph()) from None
        ready, _, _ = select.select([self.process.stdout], [], [], self.timeout)
        if not ready:
            raise WorkerTimeoutError(f"no answer within {self.timeout:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise WorkerError(self.epitaph())
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def epitaph(self) -> str:
        """How the process ended, with the last line it wrote."""
        code = self.process.wait()
        self.errors.seek(0)
        last = self.errors.read().strip().splitlines()[-1:] or [""]
        return f"process ended with code {code} {last[0]}".strip()

    def close(self) -> None:
        """Ask the process to end, then end its group: a peer's own child processes must not outlive it."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self.process.stdin.close()
            self.process.wait(timeout=10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.errors.close()


def timed(call: Callable[[], Any], collect: bool = True) -> tuple[Any, dict[str, float]]:
    """Run a call with the garbage collector out of the way; cores is processor time over elapsed time.

    To collect walks through all objects of the process, and what is timed then finds them all in the caches instead
    of its own: a fit of a millisecond takes a third longer.
    """
    if collect:
        gc.collect()
    gc.disable()
    cpu, start = time.process_time(), time.perf_counter()
    value = call()
    seconds = time.perf_counter() - start
    cores = (time.process_time() - cpu) / seconds
    gc.enable()
    return value, {"seconds": seconds, "cores": round(cores, 2)}


class Service:
    """The worker's side: answers `load`, `fit`, `predict` and `release`."""

    def __init__(self, contender: str, threads: int) -> None:
        import contenders

        self.contender = contenders.ALL[contender](threads)
        self.warm = False

    def load(self, data: str) -> dict[str, Any]:
        """Make the data ready; the first time also run iris, so that no start-up cost is ever timed."""
        import datasets

        if not self.warm:
            self.warm_up()
        self.contender.prepare(datasets.load(data, self.contender.dtype))
        return {"predicts": self.contender.predicts, "pools": thread_pools()}

    def warm_up(self) -> None:
        """Load libraries, start pools, and see that the contender works at all."""
        import datasets

        self.contender.prepare(datasets.load_iris_like())
        self.contender.fit()
        if self.contender.predicts:
            self.contender.predict()
        self.contender.check()
        self.warm = True

    def fit(self) -> dict[str, Any]:
        """Time one fit."""
        self.contender.forget_model()
        _, times = timed(self.contender.fit)
        self.contender.check()
        return {**times, **self.contender.facts()}

    def predict(self) -> dict[str, Any]:
        """Time one prediction of all test rows; the rate shows that the work was really done."""
        labels, times = timed(self.contender.predict)
        self.contender.check()
        return {**times, "rate": 100 * float((labels == self.contender.data.y_test).mean())}

    def release(self) -> dict[str, Any]:
        """Give the memory back while other data sets run."""
        self.contender.release()
        return {}


def thread_pools() -> dict[str, int]:
    """What the thread pools of this process are really set to."""
    from threadpoolctl import threadpool_info

    return {Path(pool["filepath"]).name: pool["num_threads"] for pool in threadpool_info()}


def claim_standard_output() -> TextIO:
    """Keep the pipe to the parent for ourselves and send everybody else's output to standard error."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return channel


def plain(value: Any) -> Any:
    """JSON form of NumPy scalars."""
    return value.item() if hasattr(value, "item") else str(value)


def serve(make_service: Callable[[str, int], Any], contender: str, threads: int) -> None:
    """Answer requests until the parent closes the pipe."""
    channel = claim_standard_output()
    service: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            service = service or make_service(contender, threads)
            answer = getattr(service, request.pop("do"))(**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=plain), file=channel, flush=True)


if __name__ == "__main__":
    serve(Service, sys.argv[1], int(sys.argv[2]))
