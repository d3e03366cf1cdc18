"""Options that several commands have, with LIBSVM's letters where LIBSVM has them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polymargin.kernels import KERNELS, readers
from polymargin.storage.data_files import LabelColumn
from polymargin.support.typing import HingeLoss
from polymargin.support.typing import Stop as StopRule

DATA_HELP = "Examples: LIBSVM/svmlight text or CSV, plain or compressed, or npz."

Data = Annotated[Path, typer.Argument(metavar="DATA", help=DATA_HELP)]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model of polymargin or of LIBSVM.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print no results and no progress.")]
Label = Annotated[
    LabelColumn, typer.Option("--label", help="Where a CSV file has the labels; none for CSV and npz without any.")
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", show_default="found out", help="Whether a CSV file begins with names."),
]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="Indices of a svmlight text start at 0, not 1.")]
RangeFile = Annotated[
    Path | None,
    typer.Option("--range", metavar="FILE", help="Scale the data by this file of `scale -s` or svm-scale first."),
]
Machine = Annotated[
    str, typer.Option("-a", "--machine", metavar="NAME", help="The machine; `info --machines` lists them.")
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter that only this machine has, such as bias=free."),
]
Kernel = Annotated[
    str,
    typer.Option(
        "-t",
        "--kernel",
        metavar="KERNEL",
        help=", ".join(f"{entry.number} {name}" for name, entry in KERNELS.items()) + "; number or name.",
    ),
]
Degree = Annotated[int, typer.Option("-d", "--degree", help=f"Degree of the kernel: {', '.join(readers('degree'))}.")]
Gamma = Annotated[
    str,
    typer.Option(
        "-g", "--gamma", metavar="NUMBER", help="gamma of the kernel: a number, auto (1 / features) or scale."
    ),
]
Coef0 = Annotated[float, typer.Option("-r", "--coef0", help=f"coef0 of the kernel: {', '.join(readers('coef0'))}.")]
Cost = Annotated[float, typer.Option("-c", "--cost", help="C, the price of an error; inf is the hard margin.")]
Loss = Annotated[
    HingeLoss | None,
    typer.Option("--loss", show_default="hinge", help="Hinges, or their squares as LinearSVC has them."),
]
CacheSize = Annotated[
    float | None,
    typer.Option("-m", "--cache-size", show_default="half of what is free", help="MB of kernel values kept."),
]
Tolerance = Annotated[
    float, typer.Option("-e", "--tol", help="Stop at this violation of the optimality conditions, or this gap: --stop.")
]
Stop = Annotated[
    StopRule, typer.Option("--stop", help="What --tol is compared with; auto is the gap for most linear machines.")
]
Weight = Annotated[
    list[str] | None,
    typer.Option(
        "--weight", metavar="CLASS:NUMBER", help="Multiply C of a class; LIBSVM's form, -wCLASS NUMBER, is understood."
    ),
]
Jobs = Annotated[int, typer.Option("-j", "--jobs", help="Threads; -1 is all cores. Results do not depend on it.")]
Probability = Annotated[int, typer.Option("-b", "--probability", min=0, max=1, help="1 for probabilities.")]
