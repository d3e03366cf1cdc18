"""``polymargin easy``: what ``easy.py`` does."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer
from sklearn.model_selection import train_test_split

from polymargin.cli import _options as option
from polymargin.cli._data import load_training, scaled_by
from polymargin.cli._machines import DEFAULT_MACHINE, machine_of
from polymargin.cli._messages import Printer
from polymargin.cli.predict import prediction_text, say_rate
from polymargin.cli.train import fit_and_save
from polymargin.cli.tune import LOG2_C, LOG2_GAMMA, powers, searched
from polymargin.storage.data_files import base_name, read_examples
from polymargin.storage.files import check_target, replace_whole
from polymargin.storage.range_file import Ranges, widened


def easy(
    data: Annotated[Path, typer.Argument(metavar="TRAIN", help=option.DATA_HELP)],
    test: Annotated[Path | None, typer.Argument(metavar="TEST", help="Examples to predict.")] = None,
    machine: option.Machine = DEFAULT_MACHINE,
    settings: option.Setting = None,
    rows: Annotated[
        int, typer.Option("--rows", min=10, help="Tune on so many examples of TRAIN at most, drawn by class.")
    ] = 5000,
    label: option.Label = "first",
    header: option.Header = None,
    zero_based: option.ZeroBased = False,
    jobs: option.Jobs = -1,
    quiet: option.Quiet = False,
    as_json: option.AsJson = False,
) -> None:
    """Scale, tune, train and predict in one go (easy.py).

    Features are scaled to [-1, 1], C and gamma of the RBF kernel chosen by cross-validation on the grid of grid.py.
    Sparse data with more features than examples get a linear kernel and the range [0, 1]. Writes, here, TRAIN.range,
    TRAIN.safetensors and TEST.predict.
    """
    began = time.perf_counter()
    printer = Printer(as_json, quiet)
    check_target(f"{base_name(data)}.safetensors")
    examples = load_training(data, label=label, header=header, zero_based=zero_based)
    linear = sp.issparse(examples.X) and examples.X.shape[1] > examples.X.shape[0]
    queries = None if test is None else read_examples(test, label=label, header=header, zero_based=zero_based)
    if queries is not None and examples.kind != "svmlight" and queries.X.shape[1] != examples.X.shape[1]:
        raise ValueError(f"{test} has {queries.X.shape[1]} features, but {data} has {examples.X.shape[1]}")
    unfitted = machine_of(machine, settings or (), False, {"kernel": "linear" if linear else "rbf"})
    ranges = Ranges.of(examples.X, 0.0 if linear else -1.0)
    X = scaled_by(ranges, examples.X)
    grid = {"C": powers("log2c", LOG2_C)} | ({} if linear else {"gamma": powers("log2g", LOG2_GAMMA)})
    search = searched(unfitted, grid, *_drawn(X, examples.y, rows), 5, jobs, printer)
    chosen = ", ".join(f"{name}={value:g}" for name, value in search.best_params_.items())
    printer.say(f"{chosen}: {100 * search.best_score_:.2f} % in cross-validation")
    printer.note(best=search.best_params_, cross_validation_rate=search.best_score_)
    name = base_name(data)
    ranges.save(f"{name}.range")
    unfitted.set_params(**search.best_params_, n_jobs=jobs, verbose=printer.verbose)
    fit_and_save(unfitted, X, examples.y, Path(f"{name}.safetensors"), printer)
    printer.say(f"ranges: {name}.range")
    printer.note(ranges=f"{name}.range")
    if test is not None and queries is not None:
        predicted = unfitted.predict(widened(scaled_by(ranges, queries.X), unfitted.n_features_in_))
        output = Path(f"{base_name(test)}.predict")
        replace_whole(output, prediction_text(predicted, None, unfitted.classes_))
        printer.say(f"predictions: {output}")
        printer.note(output=str(output))
        say_rate(predicted, queries.y, printer)
    printer.note(seconds=time.perf_counter() - began)
    printer.close()


def _drawn(X: Any, y: Any, rows: int) -> tuple[Any, Any]:
    """Return so many examples at most, of each class its share."""
    if X.shape[0] <= rows:
        return X, y
    counts = np.unique(y, return_counts=True)[1]
    by_class = y if counts.min() >= 2 and rows >= len(counts) else None
    drawn, _ = train_test_split(np.arange(X.shape[0]), train_size=rows, random_state=0, stratify=by_class)
    return X[drawn], y[drawn]
