"""The command ``polymargin``."""

from __future__ import annotations

import typer

from polymargin.cli.compare import compare

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(compare)


@app.callback()
def polymargin() -> None:
    """Multi-class support vector machines: fast, certified, comparable."""


def main() -> None:
    """Run the command."""
    app()
