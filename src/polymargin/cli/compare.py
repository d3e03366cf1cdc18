"""``polymargin compare``: machines side by side on a file, or on built-in data."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polymargin.cli import _options as option
from polymargin.kernels import names_of_functions
from polymargin.support.errors import with_hint

if TYPE_CHECKING:
    from polymargin.storage.data_files import Examples

REPORT = "polymargin-report.html"
PRINTED_WIDTH = 110  # where there is no terminal that has a width
MACHINES = (
    "A group: all, hsu-lin (the five of the paper), classic, family (joint machines), codes, smooth; or names "
    "separated by commas, such as one-against-one,dag,crammer-singer."
)


class Label(StrEnum):
    """Columns that can have the class."""

    first = "first"
    last = "last"


class Grid(StrEnum):
    """The grids that have a name."""

    coarse = "coarse"
    hsu_lin = "hsu-lin"


class Scaling(StrEnum):
    """What can be done to the features."""

    none = "none"
    range = "range"
    standard = "standard"


KernelName = StrEnum("KernelName", {name: name for name in names_of_functions()})  # type: ignore[misc]
_DEFAULT_KERNEL = KernelName("rbf")


def compare(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="Training data: svmlight, .csv or .npz. Without it: iris.")
    ] = None,
    test: Annotated[Path | None, typer.Option(help="Test data, in the same format.")] = None,
    label: Annotated[Label, typer.Option(help="Where CSV files have the class.")] = Label.first,
    header: option.Header = None,
    zero_based: option.ZeroBased = False,
    machines: Annotated[str, typer.Option(help=MACHINES)] = "all",
    cv: Annotated[
        int | None,
        typer.Option(min=2, help="Number of folds; 10, or with --test a part held out once.", show_default=False),
    ] = None,
    holdout: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="With --test: the share held out to choose parameters.")
    ] = 0.3,
    grid: Annotated[Grid, typer.Option(help="8 x 8 or 15 x 15 values of C and gamma.")] = Grid.coarse,
    kernel: Annotated[KernelName, typer.Option(help="The kernel.")] = _DEFAULT_KERNEL,
    scaling: Annotated[Scaling, typer.Option(help="Scale features to [-1, 1], or standardise them.")] = Scaling.none,
    time_limit: Annotated[
        float | None, typer.Option(min=0.0, help="Most seconds for the search of a machine.", show_default=False)
    ] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 uses all cores.")] = -1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"Report: .html, .md or .json. [default: {REPORT}; none with --json]"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of the table.")] = False,
) -> None:
    """Compare machines, each with its own best parameters, on the same folds.

    Prints a table and writes a report. Without a file it runs on the built-in iris data.
    """
    _check_output(output)
    X, y, X_test, y_test, name, load = _data(
        file, test, {"label": label.value, "header": header, "zero_based": zero_based}
    )
    from polymargin import compare as run

    comparison = run(
        X,
        y,
        X_test,
        y_test,
        machines=machines if "," not in machines else [part.strip() for part in machines.split(",")],
        grid=grid.value,
        cv=cv or 10,
        holdout=None if cv else holdout,
        kernel=kernel.value,
        scaling=None if scaling is Scaling.none else scaling.value,
        time_limit=time_limit,
        n_jobs=jobs,
        random_state=seed,
        name=name,
        verbose=1,
    )
    comparison.settings |= {"load": load, "command": _command(context)}
    _show(comparison, output, json)
    if comparison.interrupted:
        raise typer.Exit(130)
    if not comparison.rates:
        raise typer.Exit(1)


def _command(context: typer.Context) -> str:
    """Return the command with the options that are not the default."""
    words = ["polymargin", "compare"]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if value is None or value == parameter.default:
            continue
        if parameter.param_type_name == "option":
            words.append(parameter.opts[0])
        if not isinstance(value, bool):
            words.append(str(value))
    return shlex.join(words)


def _data(file: Path | None, test: Path | None, reading: dict[str, Any]) -> tuple[Any, Any, Any, Any, str, str]:
    """Return training data, test data, their name, and the code that reads them."""
    if file is None:
        if test is not None:
            raise with_hint(ValueError("`--test` needs a file to train on"), "polymargin compare TRAIN --test TEST")
        from sklearn.datasets import load_iris

        data = load_iris()
        load = "from sklearn.datasets import load_iris\n\ndata = load_iris()\n"
        load += "X, y = data.data, data.target_names[data.target]"
        return data.data, data.target_names[data.target], None, None, "iris", load
    train = _read(file, reading)
    options = "".join(f", {name}={value!r}" for name, value in reading.items() if name == "label" or value)
    load = f"from polymargin.storage import read_data\n\nX, y = read_data({str(file)!r}{options})"
    if test is None:
        return train.X, train.y, None, None, file.name, load
    held = _read(test, reading)
    X, X_test = train.X, held.X
    load += f"\nX_test, y_test = read_data({str(test)!r}{options})"
    if train.kind == held.kind == "svmlight":
        X, X_test = _as_wide(X, X_test)
    return X, train.y, X_test, held.y, file.name, load


def _as_wide(*matrices: Any) -> list[Any]:
    """Return matrices with the same number of columns: svmlight's files leave out zeros at the end."""
    import numpy as np
    from scipy import sparse

    widest = max(matrix.shape[1] for matrix in matrices)
    return [
        sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], widest))
        if sparse.issparse(matrix)
        else np.pad(matrix, ((0, 0), (0, widest - matrix.shape[1])))
        for matrix in matrices
    ]


def _read(path: Path, reading: dict[str, Any]) -> Examples:
    from polymargin.storage.data_files import read_examples

    if not path.exists():
        hint = "without a file, `polymargin compare` runs on built-in data"
        if not path.is_absolute():
            hint = f"names are relative to `{Path.cwd()}`; {hint}"
        raise with_hint(FileNotFoundError(f"there is no file `{path}`"), hint)
    examples = read_examples(path, **reading)
    _check_classes(path, examples, reading["label"])
    return examples


def _check_classes(path: Path, examples: Examples, label: str) -> None:
    """Refuse numbers with a fraction: in a table, that is another column."""
    from sklearn.utils.multiclass import type_of_target

    if type_of_target(examples.y) != "continuous":
        return
    example = next(value for value in examples.y if value != round(value))
    message = f"`{path}` has numbers such as {example:g} where the classes should be"
    hint = None
    if examples.kind == "csv":
        other = Label.last if label == Label.first else Label.first
        message += f", in its {label} column"
        hint = f"if the {other.value} column has the class: --label {other.value}"
    raise with_hint(ValueError(message), hint)


def _check_output(output: Path | None) -> None:
    """Refuse before the work what would fail after it."""
    if output is None:
        return
    if output.suffix.lower() not in (".html", ".md", ".json"):
        raise with_hint(ValueError(f"`{output}` is no name of a report"), "name it .html, .md or .json")
    if not output.resolve().parent.is_dir():
        raise with_hint(FileNotFoundError(f"there is no folder `{output.parent}`"), "make it first")


def _show(comparison: Any, output: Path | None, json: bool) -> None:
    from rich.console import Console

    from polymargin.comparison.report import terminal

    if output is None and not json:
        output = Path(REPORT)
    if json:
        sys.stdout.write(comparison.to_json())
    else:
        terminal(comparison, Console(width=None if sys.stdout.isatty() else PRINTED_WIDTH))
    if output is not None:
        {".html": comparison.to_html, ".md": comparison.to_markdown, ".json": comparison.to_json}[
            output.suffix.lower()
        ](output)
        typer.echo(f"report: {output}", err=json)
