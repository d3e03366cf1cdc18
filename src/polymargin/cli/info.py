"""``polymargin info``: what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from polymargin.cli import _options as option
from polymargin.cli._data import load_any_model
from polymargin.cli._machines import BY_NAME
from polymargin.cli._messages import Printer
from polymargin.cli.train import description


def info(
    model: Annotated[Path | None, typer.Argument(metavar="MODEL", help="A model of polymargin or of LIBSVM.")] = None,
    machines: Annotated[bool, typer.Option("--machines", help="List the machines that there are instead.")] = False,
    as_json: option.AsJson = False,
) -> None:
    """Say what a model is: machine, parameters, classes, support vectors, certificate."""
    printer = Printer(as_json)
    if machines:
        summaries = {name: (machine.__doc__ or "").split("\n")[0] for name, machine in BY_NAME.items()}
        for name, summary in summaries.items():
            printer.say(f"{name:<16} {summary}")
        printer.note(machines=summaries)
    elif model is None:
        raise typer.BadParameter("give a MODEL, or --machines")
    else:
        described = description(load_any_model(model))
        printer.note(file=str(model), **described)
        for name, value in described.items():
            printer.say(f"{name.replace('_', ' '):<27} {_text(value)}")
    printer.close()


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return " ".join(map(str, value)) if hasattr(value, "tolist") and value.ndim else str(value)
