"""``polymargin scale``: what ``svm-scale`` does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polymargin.cli import _options as option
from polymargin.cli._messages import Printer, write_out
from polymargin.storage.data_files import read_examples, svmlight_text
from polymargin.storage.files import check_target, replace_whole
from polymargin.storage.range_file import Ranges, read_ranges


def scale(
    data: option.Data,
    output: Annotated[
        Path | None, typer.Argument(metavar="OUTPUT", help="The scaled data; standard output if left out.")
    ] = None,
    lower: Annotated[float, typer.Option("-l", "--lower", help="Lower end of the range.")] = -1.0,
    upper: Annotated[float, typer.Option("-u", "--upper", help="Upper end of the range.")] = 1.0,
    save: Annotated[Path | None, typer.Option("-s", "--save", metavar="FILE", help="Save the ranges found.")] = None,
    restore: Annotated[
        Path | None, typer.Option("-r", "--restore", metavar="FILE", help="Take the ranges from this file instead.")
    ] = None,
    label: option.Label = "first",
    header: option.Header = None,
    zero_based: option.ZeroBased = False,
    as_json: option.AsJson = False,
) -> None:
    """Scale every feature to a range (svm-scale).

    The ranges are kept in svm-scale's own format. Scale training and test data by the same: -s RANGE for the first, -r
    RANGE for the second. The scaled data are LIBSVM text.
    """
    if save is not None and restore is not None:
        raise typer.BadParameter("give -s to save ranges or -r to restore them, not both")
    if as_json and output is None:
        raise typer.BadParameter("with --json the scaled data need a file: give OUTPUT")
    for target in (output, save):
        if target is not None:
            check_target(target, data, restore)
    examples = read_examples(data, label=label, header=header, zero_based=zero_based)
    ranges = Ranges.of(examples.X, lower, upper) if restore is None else read_ranges(restore)
    parts = svmlight_text(ranges.apply(examples.X), examples.y)
    if output is None:
        write_out(parts)
    else:
        replace_whole(output, parts)
    if save is not None:
        ranges.save(save)
    printer = Printer(as_json)
    used = int((ranges.largest > ranges.least).sum())
    printer.note(
        output=None if output is None else str(output),
        ranges=None if save is None else str(save),
        examples=examples.X.shape[0],
        features=len(ranges.least),
        scaled_features=used,
        range=[ranges.lower, ranges.upper],
    )
    printer.close()
