"""``polymargin tune``: what ``grid.py`` does."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from polymargin.cli import _options as option
from polymargin.cli._data import load_training
from polymargin.cli._machines import DEFAULT_MACHINE, kernel_name, machine_of
from polymargin.cli._messages import Printer
from polymargin.cli._weights import class_weights
from polymargin.kernels import is_precomputed, uses_gamma
from polymargin.selection import KernelSearchCV
from polymargin.storage.files import check_target, replace_whole

LOG2_C = "-5,15,2"  # of grid.py
LOG2_GAMMA = "3,-15,-2"


def tune(
    data: option.Data,
    log2c: Annotated[str, typer.Option("--log2c", "-log2c", metavar="BEGIN,END,STEP", help="Exponents of C.")] = LOG2_C,
    log2g: Annotated[
        str, typer.Option("--log2g", "-log2g", metavar="BEGIN,END,STEP", help="Exponents of gamma.")
    ] = LOG2_GAMMA,
    folds: Annotated[int, typer.Option("-v", "--folds", min=2, help="Folds of the cross-validation.")] = 5,
    out: Annotated[
        Path | None, typer.Option("--out", "-out", metavar="FILE", help="Write every candidate with its rate.")
    ] = None,
    kernel: option.Kernel = "2",
    degree: option.Degree = 3,
    coef0: option.Coef0 = 0.0,
    weight: option.Weight = None,
    tol: option.Tolerance = 1e-3,
    stop: option.Stop = "auto",
    cache_size: option.CacheSize = None,
    machine: option.Machine = DEFAULT_MACHINE,
    settings: option.Setting = None,
    ranges: option.RangeFile = None,
    label: option.Label = "first",
    header: option.Header = None,
    zero_based: option.ZeroBased = False,
    jobs: option.Jobs = -1,
    quiet: option.Quiet = False,
    as_json: option.AsJson = False,
) -> None:
    """Choose C and gamma by cross-validation (grid.py).

    Kernel values and solutions are shared between the candidates. The last line has C, gamma and the rate in percent,
    as that of grid.py.
    """
    printer = Printer(as_json, quiet)
    if out is not None:
        check_target(out, data)
    kind = kernel_name(kernel)
    parameters = {
        "kernel": kind,
        "degree": degree,
        "coef0": coef0,
        "tol": tol,
        "stop": stop,
        "cache_size": "auto" if cache_size is None else cache_size,
    }
    unfitted = machine_of(machine, settings or (), False, parameters)
    grid = {"C": powers("log2c", log2c)} | ({"gamma": powers("log2g", log2g)} if uses_gamma(kind) else {})
    examples = load_training(
        data, label=label, header=header, zero_based=zero_based, precomputed=is_precomputed(kind), ranges=ranges
    )
    unfitted.set_params(class_weight=class_weights(weight or (), examples.y))
    search = searched(unfitted, grid, examples.X, examples.y, folds, jobs, printer)
    candidates = listed(search)
    if out is not None:
        replace_whole(out, [candidate_text(candidates)])
    for candidate in sorted(candidates, key=lambda entry: -entry["rate"])[:5]:
        printer.say("  ".join(f"{name}={value:g}" for name, value in candidate.items()))
    best = search.best_params_
    printer.say(" ".join([*(f"{value!r}" for value in best.values()), f"{100 * search.best_score_:g}"]))
    printer.note(best=best, rate=search.best_score_, folds=folds, candidates=candidates)
    printer.close()


def powers(name: str, text: str) -> list[float]:
    """Return powers of two from the exponents BEGIN,END,STEP, the end included."""
    try:
        begin, end, step = (float(number) for number in text.split(","))
        exponents = np.arange(begin, end + step / 1000, step)
        if not 1 <= len(exponents) <= 1000 or np.abs(exponents).max() > 1000:
            raise ValueError
    except (ValueError, ZeroDivisionError, MemoryError, OverflowError):
        raise typer.BadParameter(f"--{name} {text}: expected BEGIN,END,STEP, for example -5,15,2") from None
    return [float(2.0**exponent) for exponent in exponents]


def searched(machine: Any, grid: Any, X: Any, y: Any, folds: int, jobs: int, printer: Printer) -> Any:
    """Return a search over a grid, every candidate measured."""
    splitter = StratifiedKFold(folds, shuffle=True, random_state=0)
    search = KernelSearchCV(machine, grid, cv=splitter, refit=False, n_jobs=jobs, verbose=printer.verbose)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # of candidates; that of the machine trained in the end is told
        search.fit(X, y)
    if not np.isfinite(search.best_score_):
        raise ValueError("no candidate could be fitted")
    return search


def listed(search: Any) -> list[dict[str, float]]:
    """Return the candidates with their rates."""
    rates = search.cv_results_["mean_test_score"].tolist()
    return [{**params, "rate": rate} for params, rate in zip(search.cv_results_["params"], rates, strict=True)]


def candidate_text(candidates: list[dict[str, float]]) -> bytes:
    """Return a line for each candidate, as grid.py writes them."""
    names = {"C": "log2c", "gamma": "log2g"}
    lines = [
        " ".join(
            [
                *(f"{names[key]}={np.log2(entry[key]):g}" for key in names if key in entry),
                f"rate={100 * entry['rate']:g}",
            ]
        )
        for entry in candidates
    ]
    return "".join(f"{line}\n" for line in lines).encode("ascii")
