"""Write the reference of docs/command_line.md from the command itself."""

import sys
from pathlib import Path

import typer

from polymargin.cli._app import app

PAGE = Path(__file__).resolve().parent / "command_line.md"
MARK = "<!-- From here on written by docs/refresh_command_line.py. -->\n"


def option_names(parameter):
    """Return the names of an option, short ones first, and what follows them."""
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    return names if getattr(parameter, "is_flag", False) else f"{names} {value_name(parameter)}"


def value_name(parameter):
    """Return what the reference calls the value of a parameter."""
    return f"`{parameter.metavar or parameter.name.split('_')[-1].upper()}`"


def default_of(parameter):
    """Return what is taken if an option is left out, or nothing where that is plain."""
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return f" Default: {shown}."
    plain = parameter.default is None or parameter.default is False or callable(parameter.default)
    return "" if plain or getattr(parameter, "is_flag", False) else f" Default: `{parameter.default}`."


def section(name, command):
    """Return the reference of one command."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden and p.name != "help"]
    usage = " ".join(p.metavar if p.required else f"[{p.metavar}]" for p in arguments)
    yield f"### polymargin {name}\n"
    yield f"```sh\npolymargin {name} [OPTIONS] {usage}\n```\n"
    yield from (f"{' '.join(part.split())}\n" for part in command.help.split("\n\n"))
    yield "| argument or option | |\n|---|---|"
    for parameter in arguments:
        yield f"| {value_name(parameter)} | {parameter.help} |"
    for parameter in options:
        yield f"| {option_names(parameter)} | {parameter.help}{default_of(parameter)} |"
    yield ""


def reference():
    """Return the reference of all commands."""
    commands = typer.main.get_command(app).commands
    parts = [line for name, command in commands.items() for line in section(name, command)]
    return "\n".join(parts).rstrip() + "\n"


def page():
    """Return the page as it should be."""
    written = PAGE.read_text().split(MARK)[0]
    return f"{written}{MARK}\n{reference()}"


def main():
    """Bring the page up to date, or with --check say whether it is."""
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PAGE.read_text() == page() else "docs/command_line.md is out of date: run this without --check")
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
