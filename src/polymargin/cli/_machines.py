"""From options to a machine that can be fitted."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

import typer

from polymargin.kernels import KERNELS
from polymargin.storage.safetensors_file import MACHINES
from polymargin.support.errors import with_hint

DEFAULT_MACHINE = "one-vs-one"


def option_name(name: str) -> str:
    """Return the name of a class as an option has it: ``OneVsOneSVC`` is ``one-vs-one``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.removesuffix("SVC")).lower()


BY_NAME = {option_name(name): machine for name, machine in MACHINES.items()}


def kernel_name(given: str) -> str:
    """Return the kernel that a number of LIBSVM's, or a name, means."""
    numbered = {str(entry.number): name for name, entry in KERNELS.items()}
    kernel = numbered.get(given, given)
    if kernel not in KERNELS:
        raise _wrong(f"-t {given}: expected a kernel from 0 to {len(KERNELS) - 1}", f"they are {', '.join(KERNELS)}")
    return kernel


def gamma_value(given: str) -> str | float:
    """Return gamma as a number, or one of the words for it."""
    try:
        return given if given in ("auto", "scale") else float(given)
    except ValueError:
        raise _wrong(f"-g {given}: expected a number, auto or scale") from None


def machine_of(
    name: str,
    settings: Sequence[str],
    probability: bool,
    parameters: dict[str, Any],
    calibration: str | None = None,
) -> Any:
    """Return a machine that is not fitted yet."""
    Machine = BY_NAME.get(name) or MACHINES.get(name)
    if Machine is None:
        raise _wrong(f"-a {name}: there is no such machine", f"there are {', '.join(BY_NAME)}")
    known = Machine._get_param_names()
    chosen = {key: value for key, value in parameters.items() if key in known}
    if calibration is not None:
        if "calibration" not in known:
            with_one = [each for each, kind in BY_NAME.items() if "calibration" in kind._get_param_names()]
            raise _wrong(f"--calibration: {Machine.__name__} has none", f"there is one of {', '.join(with_one)}")
        chosen["calibration"] = calibration
    for setting in settings:
        key, _, value = setting.partition("=")
        if key not in known:
            raise _wrong(f"--set {setting}: {Machine.__name__} has no such parameter", f"it has {', '.join(known)}")
        chosen[key] = _literal(value)
    made = Machine(**chosen)
    if probability and not hasattr(made, "predict_proba"):
        made.set_params(**_with_probabilities(Machine, known))
    return made


def _literal(text: str) -> Any:
    """Return what Python would read, or the text: ``2`` is a number, ``free`` a word."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return float(text) if text in ("inf", "nan") else text


def _with_probabilities(Machine: Any, known: list[str]) -> dict[str, Any]:
    """Return the parameters that give a machine probabilities."""
    decisions = Machine._parameter_constraints["decision"][0].options if "decision" in known else ()
    if "coupling" in decisions:
        return {"decision": "coupling"}
    if "calibration" in known:
        return {"calibration": "sigmoid"}
    raise _wrong(f"-b 1: {Machine.__name__} has no probabilities", "leave -b out; `predict --values` gives its scores")


def _wrong(message: str, hint: str | None = None) -> Exception:
    return with_hint(typer.BadParameter(message), hint)
