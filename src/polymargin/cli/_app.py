"""The commands put together; whatever ends one becomes an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any

import typer

from polymargin.cli._messages import hint_for, report_error, show_warning
from polymargin.cli._weights import with_weights_spelled_out
from polymargin.cli.check import check
from polymargin.cli.compare import compare
from polymargin.cli.easy import easy
from polymargin.cli.export import export
from polymargin.cli.info import info
from polymargin.cli.predict import predict
from polymargin.cli.scale import scale
from polymargin.cli.train import train
from polymargin.cli.tune import tune

WRONG_USAGE = 2
_UsageError: Any = typer.BadParameter.__mro__[1]  # older versions of typer take it from click, newer have their own

app = typer.Typer(
    name="polymargin",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 110},
)
for _command in (compare, easy, check, scale, tune, train, predict, info, export):
    app.command()(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        from polymargin.cli._version import version_text

        typer.echo(version_text())
        raise typer.Exit


@app.callback()
def polymargin(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show versions and build details.")
    ] = False,
) -> None:
    """Multi-class support vector machines: LIBSVM's workflow, with a certificate for every fit.

    Begin with `polymargin easy TRAIN TEST`, which scales, tunes, trains and predicts. The single steps, with the
    options of LIBSVM's tools:

    \b
      checkdata.py DATA                   polymargin check DATA
      svm-scale -s RANGE DATA > SCALED    polymargin scale -s RANGE DATA SCALED
      grid.py SCALED                      polymargin tune SCALED
      svm-train -c 8 -g 0.1 SCALED MODEL  polymargin train -c 8 -g 0.1 SCALED MODEL
      svm-predict TEST MODEL OUTPUT       polymargin predict TEST MODEL OUTPUT

    Data are LIBSVM/svmlight text or CSV, plain, .gz, .bz2 or .xz, or npz. Models are safetensors files; those of
    LIBSVM are read as well. Exit codes: 0 it worked, 1 it failed, 2 wrong usage, 130 Ctrl-C.
    """


def run(given: list[str]) -> int:
    """Run the command with these arguments; return its exit code. Ctrl-C is left to the one who calls."""
    as_json = "--json" in given
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.simplefilter("ignore", DeprecationWarning)  # of typer about click and the like: not for users
            warnings.showwarning = show_warning
            code = app(with_weights_spelled_out(given), prog_name="polymargin", standalone_mode=False)
            sys.stdout.flush()
        if not given:  # the help was shown, for want of a command; click says that this is wrong from 8.2 on
            return WRONG_USAGE
        return code if isinstance(code, int) else 0
    except typer.Abort:
        raise KeyboardInterrupt from None
    except _UsageError as error:
        return _wrong_usage(error, as_json)
    except BrokenPipeError:  # whoever read the output has gone; there is nobody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # every failure is told in the same form
        report_error(error, hint_for(error), as_json)
        return 1


def _wrong_usage(error: Any, as_json: bool) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # older versions of typer raise it to show the help
        typer.echo(error.format_message())
    else:
        command = error.ctx.command_path if error.ctx is not None else "polymargin"
        ours = getattr(error, "__notes__", None)
        report_error(
            error.message if ours else error.format_message(), hint_for(error) or f"see `{command} --help`", as_json
        )
    return WRONG_USAGE
