"""``polymargin predict``: what ``svm-predict`` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from polymargin.cli import _options as option
from polymargin.cli._data import load_queries, rate
from polymargin.cli._messages import Printer, write_out
from polymargin.storage.files import check_target, replace_whole
from polymargin.storage.labels import label_text
from polymargin.support.errors import with_hint


def predict(
    data: option.Data,
    model: option.ModelFile,
    output: Annotated[
        Path | None,
        typer.Argument(metavar="OUTPUT", help="The predictions, a line for each; standard output if left out."),
    ] = None,
    probability: option.Probability = 0,
    values: Annotated[bool, typer.Option("--values", help="Write the score of each class as well.")] = False,
    ranges: option.RangeFile = None,
    label: option.Label = "first",
    header: option.Header = None,
    zero_based: option.ZeroBased = False,
    jobs: option.Jobs = -1,
    quiet: option.Quiet = False,
    as_json: option.AsJson = False,
) -> None:
    """Predict labels, scores or probabilities (svm-predict).

    Reads models of polymargin and of LIBSVM. A model of `svm-train -b 1` predicts the largest probability with -b 1 and
    most votes without, as with svm-predict; a model of polymargin decides as it was trained to.

    With -b 1 or --values the first line of OUTPUT names the classes, and each other line has the label and a number for
    each class (with --values and two classes one, positive for the second).
    """
    if output is not None:
        check_target(output, data, model, ranges)
    machine, examples = load_queries(data, model, label=label, header=header, zero_based=zero_based, ranges=ranges)
    machine.set_params(n_jobs=jobs, **_decision(machine, bool(probability)))
    scores = scores_of(machine, examples.X, bool(probability), values, model)
    predicted = machine.predict(examples.X)
    printer = Printer(as_json, quiet)
    if output is not None:
        replace_whole(output, prediction_text(predicted, scores, machine.classes_))
        printer.note(output=str(output))
    elif as_json:
        printer.note(labels=predicted, **({} if scores is None else {"classes": machine.classes_, "scores": scores}))
    else:
        write_out(prediction_text(predicted, scores, machine.classes_))
    say_rate(predicted, examples.y, printer, to_standard_error=output is None)
    printer.close()


def _decision(machine: Any, probability: bool) -> dict[str, Any]:
    """Return how svm-predict has a model of LIBSVM decide, if otherwise than by what the model could do."""
    voting = not probability and machine.stop_reason_ == "imported" and machine.decision == "coupling"
    return {"decision": "votes"} if voting else {}


def scores_of(machine: Any, X: Any, probability: bool, values: bool, model: Path) -> NDArray[np.float64] | None:
    """Return a row of scores or probabilities for each example, or None if neither was asked for."""
    if probability and values:
        raise typer.BadParameter("give -b 1 or --values, not both")
    if probability:
        if not hasattr(machine, "predict_proba"):
            raise with_hint(ValueError(f"{model} has no probabilities"), "train it with -b 1, or ask for --values")
        return np.asarray(machine.predict_proba(X))
    return machine.decision_function(X).reshape(X.shape[0], -1) if values else None


def prediction_text(predicted: NDArray[Any], scores: NDArray[Any] | None, classes: NDArray[Any]) -> Iterator[bytes]:
    """Yield predictions as LIBSVM writes them."""
    labels = [label_text(label) for label in predicted]
    if scores is None:
        yield "".join(f"{label}\n" for label in labels).encode()
        return
    yield f"labels {' '.join(map(label_text, classes))}\n".encode()
    yield "".join(
        f"{label} {' '.join(map(repr, row))}\n" for label, row in zip(labels, scores.tolist(), strict=True)
    ).encode()


def say_rate(predicted: NDArray[Any], labels: NDArray[Any], printer: Printer, to_standard_error: bool = False) -> None:
    """Say how many labels are right, in LIBSVM's words."""
    share = rate(predicted, labels)
    printer.note(examples=len(predicted), rate=share)
    if share is None:
        return
    correct = round(share * len(labels))
    printer.say(
        f"Accuracy = {100 * share:g}% ({correct}/{len(labels)}) (classification)", to_standard_error=to_standard_error
    )
