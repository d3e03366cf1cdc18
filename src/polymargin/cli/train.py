"""``polymargin train``: what ``svm-train`` does."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from polymargin.cli import _options as option
from polymargin.cli._data import load_training
from polymargin.cli._machines import DEFAULT_MACHINE, gamma_value, kernel_name, machine_of
from polymargin.cli._messages import Printer
from polymargin.cli._weights import class_weights
from polymargin.kernels import is_precomputed
from polymargin.storage import save_model
from polymargin.storage.data_files import base_name
from polymargin.storage.files import check_target


def train(
    data: option.Data,
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="The model to write; by default DATA.safetensors, here.")
    ] = None,
    kernel: option.Kernel = "2",
    degree: option.Degree = 3,
    gamma: option.Gamma = "auto",
    coef0: option.Coef0 = 0.0,
    cost: option.Cost = 1.0,
    loss: option.Loss = None,
    weight: option.Weight = None,
    tol: option.Tolerance = 1e-3,
    stop: option.Stop = "auto",
    cache_size: option.CacheSize = None,
    probability: option.Probability = 0,
    calibration: Annotated[
        str | None,
        typer.Option(
            "--calibration", help="Probabilities fitted to held-out scores: sigmoid, isotonic or temperature."
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option("-v", "--folds", min=2, help="Cross-validate with so many folds; write no model.")
    ] = None,
    machine: option.Machine = DEFAULT_MACHINE,
    settings: option.Setting = None,
    svm_type: Annotated[int, typer.Option("-s", help="LIBSVM's type of machine: 0, C-SVC, alone.")] = 0,
    shrinking: Annotated[int, typer.Option("-h", hidden=True, help="LIBSVM's shrinking; has no effect.")] = 1,
    ranges: option.RangeFile = None,
    label: option.Label = "first",
    header: option.Header = None,
    zero_based: option.ZeroBased = False,
    jobs: option.Jobs = -1,
    quiet: option.Quiet = False,
    as_json: option.AsJson = False,
) -> None:
    """Train a machine and write the model (svm-train).

    Options have the letters, meanings and defaults of svm-train.
    """
    printer = Printer(as_json, quiet)
    if svm_type != 0:
        raise typer.BadParameter(f"-s {svm_type}: polymargin trains classifiers by their cost, which is -s 0")
    path = Path(f"{base_name(data)}.safetensors") if model is None else model
    check_target(path, data, ranges)
    kind = kernel_name(kernel)
    parameters = {
        "C": cost,
        "kernel": kind,
        "degree": degree,
        "gamma": gamma_value(gamma),
        "coef0": coef0,
        "tol": tol,
        "stop": stop,
        "cache_size": "auto" if cache_size is None else cache_size,
        "n_jobs": jobs,
        "verbose": printer.verbose,
    }
    chosen_loss = [] if loss is None else [f"loss={loss}"]  # which not every machine has
    settings = [*chosen_loss, *(settings or ())]
    unfitted = machine_of(machine, settings, bool(probability), parameters, calibration)
    examples = load_training(
        data, label=label, header=header, zero_based=zero_based, precomputed=is_precomputed(kind), ranges=ranges
    )
    unfitted.set_params(class_weight=class_weights(weight or (), examples.y))
    if folds is not None:
        cross_validate(unfitted, examples.X, examples.y, folds, printer)
        return
    fit_and_save(unfitted, examples.X, examples.y, path, printer)
    printer.close()


def cross_validate(machine: Any, X: Any, y: Any, folds: int, printer: Printer) -> None:
    """Say the rate of correct labels when every fold is predicted from the others."""
    machine.set_params(verbose=0)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=0)
    rate = float(np.mean(cross_val_predict(machine, X, y, cv=splitter) == y))
    printer.say(f"Cross Validation Accuracy = {100 * rate:g}%")
    printer.note(folds=folds, rate=rate)
    printer.close()


def fit_and_save(machine: Any, X: Any, y: Any, path: Path, printer: Printer) -> None:
    """Fit a machine, write the model and say how it went."""
    began = time.perf_counter()
    machine.fit(X, y)
    seconds = time.perf_counter() - began
    machine.set_params(verbose=0, n_jobs=None)  # of this run, not of the model
    save_model(machine, path)
    printer.say(
        f"{type(machine).__name__}: {X.shape[0]:,} examples, {X.shape[1]:,} features, {len(machine.classes_)} classes, "
        f"{len(machine.support_):,} support vectors, {seconds:.2f} s"
    )
    printer.say(
        f"primal {machine.primal_objective_:.6g}, dual {machine.dual_objective_:.6g}, relative gap "
        f"{machine.duality_gap_:.1e}, {machine.stop_reason_}"
    )
    printer.say(f"model: {path}")
    printer.note(model=str(path), seconds=seconds, examples=X.shape[0], **description(machine))


def description(machine: Any) -> dict[str, Any]:
    """Return what there is to say of a fitted machine."""
    kernel = machine.model_.kernel
    return {
        "machine": type(machine).__name__,
        "parameters": {name: value for name, value in machine.get_params().items() if value is not None},
        "kernel": {"kind": kernel.kind, "gamma": kernel.gamma, "coef0": kernel.coef0, "degree": kernel.degree},
        "classes": machine.classes_,
        "features": machine.n_features_in_,
        "support_vectors": len(machine.support_),
        "support_vectors_of_classes": machine.n_support_,
        "primal_objective": machine.primal_objective_,
        "dual_objective": machine.dual_objective_,
        "relative_gap": machine.duality_gap_,
        "converged": machine.converged_,
        "stop_reason": machine.stop_reason_,
        "solver": machine.solver_used_,
    }
