"""``polymargin export``: a model in other formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from polymargin.cli import _options as option
from polymargin.cli._data import load_any_model
from polymargin.cli._messages import Printer
from polymargin.storage import export_libsvm, export_onnx, save_model

_WRITERS: dict[str, Callable[..., None]] = {"libsvm": export_libsvm, "onnx": export_onnx, "safetensors": save_model}


def export(
    model: option.ModelFile,
    libsvm: Annotated[
        Path | None, typer.Option("--libsvm", metavar="FILE", help="For svm-predict; one-against-one alone.")
    ] = None,
    onnx: Annotated[
        Path | None, typer.Option("--onnx", metavar="FILE", help="For onnxruntime and others; needs the extra onnx.")
    ] = None,
    single: Annotated[
        bool, typer.Option("--float32", help="With --onnx: the graph takes and gives floats, not doubles.")
    ] = False,
    safetensors: Annotated[
        Path | None, typer.Option("--safetensors", metavar="FILE", help="For polymargin, from a model of LIBSVM.")
    ] = None,
    as_json: option.AsJson = False,
) -> None:
    """Write a model in another format."""
    wanted = {"libsvm": libsvm, "onnx": onnx, "safetensors": safetensors}
    written = {kind: path for kind, path in wanted.items() if path is not None}
    if not written:
        raise typer.BadParameter("give at least one of --libsvm, --onnx, --safetensors")
    if single and onnx is None:
        raise typer.BadParameter("--float32 is about --onnx, which is not there")
    machine = load_any_model(model)
    printer = Printer(as_json)
    for kind, path in written.items():
        _WRITERS[kind](machine, path, **({"dtype": "float32"} if single and kind == "onnx" else {}))
        printer.say(f"{kind}: {path}")
    printer.note(model=str(model), written={kind: str(path) for kind, path in written.items()})
    printer.close()
