"""Peak resident size of a fit: data + model + cache budget + 64 MB at most; of a linear one three times the data.

Every case runs in a fresh process. The high-water mark of the kernel is reset after data and imports are in
place, so the peak is the fit's own. MB is 2**20 bytes, as in `cache_size`.
"""

import argparse
import ctypes
import gc
import time
import warnings
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import bars
import datasets
import fresh
import linear_data
import linear_peers
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
LINEAR_CASES = ("covtype", "mnist")
LINEAR_COLUMNS = [
    "data set",
    "machine",
    "rows",
    "data",
    "baseline",
    "peak",
    "model",
    "(data + peak - baseline) / data",
    "relative gap",
    "stop",
    "seconds",
]
MB = 2**20


def status(key: str) -> float:
    """A size of this process in MB, from /proc."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))


def release_freed_memory() -> None:
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


def measured_fit(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Fit and tell the sizes before and at the peak, in MB, and the time; a limit that is reached is no matter here."""
    release_freed_memory()
    baseline, start, began = status("VmRSS"), time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seconds, spent = time.perf_counter() - start, time.process_time() - began
    peak = status("VmHWM")
    return {"baseline": baseline, "peak": peak, "seconds": seconds, "processor seconds": spent}


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
    found = measured_fit(model, X, y)
    return {**found, "data": size([X, y]) / MB, "model": size(vars(model)) / MB}


def measure_linear(name: str, machine: str, tol: str, threads: str, limit: str) -> dict[str, Any]:
    """Child: one linear fit of all rows there are to train, without the others in memory."""
    X, y = linear_rows(name)
    model = linear_peers.polymargin(machine, float(tol), int(threads), time_limit=float(limit))
    found = measured_fit(model, X, y)
    return {
        **found,
        "rows": len(y),
        "data": size([X, y]) / MB,
        "model": size(vars(model)) / MB,
        "gap": model.duality_gap_,
        "stop": model.stop_reason_,
    }


def linear_rows(name: str) -> tuple[Any, np.ndarray]:
    """The whole of covtype, which has no test part, or the training part."""
    if name == "covtype":
        X, y = linear_data.whole(name)
        return linear_data.SOURCES[name].scale(X, X[:1])[0], y
    data = linear_data.load(name)
    return data.X_train, data.y_train


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


def kernel_table(options: argparse.Namespace) -> Table:
    """Machines with a kernel."""
    cases = [(name, dtype) for name, dtype in CASES if name in (options.data or datasets.SOURCES)]
    whose = "polymargin" if polymargin_available() else "scikit-learn, polymargin is not installed"
    table = Table(f"Peak memory of a fit, {options.machine}, MB ({whose})", COLUMNS)
    table.note = f"cache_size={options.cache_size:g}; the bar for the rest is {bars.MEMORY_MB:g} MB."
    for name, _ in cases:
        datasets.cached(datasets.SOURCES[name])
    table.rows = [row(name, dtype, options) for name, dtype in cases]
    return table


def linear_row(name: str, machine: str, options: argparse.Namespace) -> list[Cell]:
    """One linear case, judged."""
    console.print(f"  {name}, {machine}", style="dim", highlight=False)
    settings = (str(options.tol), str(options.threads), str(options.limit))
    found = fresh.call(__file__, "measure_linear", name, machine, *settings)
    if "error" in found:
        return [Cell(name), Cell(machine), Cell(found["error"], False), *[number(None)] * (len(LINEAR_COLUMNS) - 3)]
    ratio = (found["data"] + found["peak"] - found["baseline"]) / found["data"]
    numbers = [number(found[key], ".1f") for key in ("data", "baseline", "peak", "model")]
    judged = number(ratio, ".2f", ratio <= bars.LINEAR_MEMORY)
    ends = [number(found["gap"], ".1e"), Cell(found["stop"]), number(found["seconds"], ".1f")]
    return [Cell(name), Cell(machine), number(found["rows"], "d"), *numbers, judged, *ends]


def linear_table(options: argparse.Namespace) -> Table:
    """Linear machines, which keep no kernel values."""
    table = Table("Peak memory of a linear fit, MB", LINEAR_COLUMNS)
    table.note = (
        f"C = 1, no bias, tol = {options.tol:g}, at most {options.limit:g} seconds, threads: {options.threads}. Data: "
        f"the rows in float64, covtype dense, mnist sparse. The bar for the ratio is {bars.LINEAR_MEMORY:g}; the "
        "model, with its support vectors, counts."
    )
    names = [name for name in LINEAR_CASES if name in (options.data or LINEAR_CASES)]
    table.rows = [linear_row(name, machine, options) for name in names for machine in linear_peers.MACHINES]
    return table


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", help="data sets (default: shuttle and mnist; linear: covtype and mnist)")
    parser.add_argument("--linear", action="store_true", help="the linear machines instead")
    parser.add_argument("--tol", type=float, default=1e-3, help="relative duality gap of a linear fit")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a linear fit is given up")
    parser.add_argument("--note", action="append", default=[], help="a remark for the page, such as a busy machine")
    parser.add_argument("--machine", choices=MACHINES, default="one-against-one")
    parser.add_argument("--cache-size", type=float, default=200.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", help="also write results/OUTPUT.md and .json")
    options = parser.parse_args()
    tables = [linear_table(options) if options.linear else kernel_table(options)]
    publish("Memory", options.output, tables, notes=options.note)


if __name__ == "__main__":
    fresh.dispatch({"measure": measure, "measure_linear": measure_linear}, main)
