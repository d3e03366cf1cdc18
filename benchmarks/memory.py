"""Peak resident size of a fit: data + model + cache budget + 64 MB at most.

Every case runs in a fresh process. The high-water mark of the kernel is reset after data and imports are in
place, so the peak is the fit's own. MB is 2**20 bytes, as in `cache_size`.
"""

import argparse
import ctypes
import gc
import time
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import bars
import datasets
import fresh
import numpy as np
from contenders import (
    polymargin_available,
    polymargin_crammer_singer,
    polymargin_one_vs_one,
    polymargin_weston_watkins,
    scikit_learn_svc,
)
from report import Cell, Table, console, number, publish
from scipy.sparse import issparse

CASES = (
    ("shuttle", "float64"),
    ("mnist-10000", "float64"),
    ("mnist-10000", "float32"),
    ("mnist-60000", "float32"),
)
MACHINES = {
    "one-against-one": polymargin_one_vs_one,
    "weston-watkins": polymargin_weston_watkins,
    "crammer-singer": polymargin_crammer_singer,
}
COLUMNS = [
    "data set",
    "input",
    "data",
    "baseline",
    "peak",
    "model",
    "peak - baseline - model - cache",
    "seconds",
]
MB = 2**20


def status(key: str) -> float:
    """A size of this process in MB, from /proc."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))


def settle() -> None:
    """Give freed memory back and reset the high-water mark, so that loading the data hides nothing."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def size(value: Any, seen: set[int] | None = None) -> int:
    """Bytes in the arrays of a fitted attribute, however nested; an object met twice counts once."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, type | ModuleType | FunctionType):
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes
    if issparse(value):
        return sum(size(getattr(value, part, None), seen) for part in ("data", "indices", "indptr"))
    if isinstance(value, dict):
        return sum(size(item, seen) for item in value.values())
    if isinstance(value, list | tuple):
        return sum(size(item, seen) for item in value)
    return size(vars(value), seen) if hasattr(value, "__dict__") else 0


def make(name: str, machine: str, cache_size: float, threads: int) -> Any:
    """Our machine, or scikit-learn's where ours cannot be imported."""
    parameters = datasets.SOURCES[name].one_vs_one
    if polymargin_available():
        return MACHINES[machine](parameters, threads, cache_size=cache_size)
    return scikit_learn_svc(parameters, cache_size=cache_size)


def measure(name: str, dtype: str, machine: str, cache_size: str, threads: str) -> dict[str, Any]:
    """Child: one fit, its peak and its time."""
    X, y = datasets.load_part(name, "train", dtype)
    model = make(name, machine, float(cache_size), int(threads))
    settle()
    baseline, start = status("VmRSS"), time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    peak = status("VmHWM")
    return {
        "data": (X.nbytes + y.nbytes) / MB,
        "baseline": baseline,
        "peak": peak,
        "model": size(vars(model)) / MB,
        "seconds": seconds,
    }


def row(name: str, dtype: str, options: argparse.Namespace) -> list[Cell]:
    """One case, judged."""
    console.print(f"  {name} {dtype}", style="dim", highlight=False)
    found = fresh.call(__file__, "measure", name, dtype, options.machine, str(options.cache_size), str(options.threads))
    if "error" in found:
        return [Cell(name), Cell(dtype), Cell(found["error"], False), *[number(None)] * (len(COLUMNS) - 3)]
    rest = found["peak"] - found["baseline"] - found["model"] - options.cache_size
    numbers = [number(found[key], ".1f") for key in ("data", "baseline", "peak", "model")]
    judged = number(rest, ".1f", rest <= bars.MEMORY_MB)
    return [Cell(name), Cell(dtype), *numbers, judged, number(found["seconds"], ".2f")]


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", help="data sets (default: shuttle and mnist)")
    parser.add_argument("--machine", choices=MACHINES, default="one-against-one")
    parser.add_argument("--cache-size", type=float, default=200.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    cases = [(name, dtype) for name, dtype in CASES if name in (options.data or datasets.SOURCES)]
    whose = "polymargin" if polymargin_available() else "scikit-learn, polymargin is not installed"
    table = Table(f"Peak memory of a fit, {options.machine}, MB ({whose})", COLUMNS)
    table.note = f"cache_size={options.cache_size:g}; the bar for the rest is {bars.MEMORY_MB:g} MB."
    for name, _ in cases:
        datasets.cached(datasets.SOURCES[name])
    table.rows = [row(name, dtype, options) for name, dtype in cases]
    publish("Memory", options.output, [table])


if __name__ == "__main__":
    fresh.dispatch({"measure": measure}, main)
