"""What the numbers were measured on: processor, memory, versions. Never the name of the machine."""

import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from polymargin import _core

PACKAGES = (
    "polymargin",
    "scikit-learn",
    "scikit-learn-intelex",
    "libsvm-official",
    "numpy",
    "scipy",
    "joblib",
    "threadpoolctl",
)


def field(path: str, key: str) -> str:
    """First value of a ``key : value`` line in a file of /proc."""
    if not Path(path).exists():
        return "unknown"
    lines = Path(path).read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "unknown")


def package_version(name: str) -> str:
    """Version from the installed metadata: some packages carry a placeholder in the module."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def command() -> str:
    """The command line, with the script named from the repository's root."""
    script, root = Path(sys.argv[0]).resolve(), Path(__file__).resolve().parent.parent
    return shlex.join(["python", str(script.relative_to(root)), *sys.argv[1:]])


def describe() -> dict[str, str]:
    """All of it, in the order in which it is printed."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command(),
        "processor": field("/proc/cpuinfo", "model name"),
        "instructions": _core.instruction_set(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory": field("/proc/meminfo", "MemTotal"),
        "load average at the end": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: package_version(name) for name in PACKAGES},
    }
