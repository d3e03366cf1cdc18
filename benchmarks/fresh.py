"""Run part of a script in a fresh interpreter and read the JSON it prints last.

Peak memory, import time and signals can only be measured honestly in a process that has done nothing else.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

CHILD = "--child"


def interpreter(*arguments: str) -> subprocess.Popen:
    """Start Python with these arguments and its output in pipes."""
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def start(script: str, *arguments: str) -> subprocess.Popen:
    """Start `script` as a child that will go through `dispatch`."""
    return interpreter(script, CHILD, *arguments)


def finish(process: subprocess.Popen, timeout: float) -> dict[str, Any]:
    """Wait for the child and parse its last line; a child that hangs is killed."""
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"error": f"no answer within {timeout:.0f} s"}
    if process.returncode:
        return {"error": (errors.strip().splitlines() or [f"code {process.returncode}"])[-1]}
    return json.loads(output.strip().splitlines()[-1])


def call(script: str, *arguments: str, timeout: float = 3600.0) -> dict[str, Any]:
    """Start and finish in one step."""
    return finish(start(script, *arguments), timeout)


def run_code(code: str, timeout: float = 600.0) -> dict[str, Any]:
    """Run bare code: not even the imports of the calling script come first."""
    return finish(interpreter("-c", code), timeout)


def dispatch(children: dict[str, Callable[..., dict[str, Any]]], main: Callable[[], None]) -> None:
    """Entry point of a script: the named child function if called as a child, else `main`."""
    if sys.argv[1:2] == [CHILD]:
        print(json.dumps(children[sys.argv[2]](*sys.argv[3:])))
    else:
        main()
