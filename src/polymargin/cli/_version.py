"""What ``polymargin --version`` shows."""

from __future__ import annotations

import platform
from importlib.metadata import version

from threadpoolctl import threadpool_info

from polymargin import __version__, _core

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "safetensors", "highspy")


def version_text() -> str:
    """Return the versions and how the core was built."""
    blas = sorted({f"{lib['internal_api']} {lib['version']}" for lib in threadpool_info() if lib["user_api"] == "blas"})
    lines = {
        "core": f"{_core.instruction_set()} instructions, {_core.compiler()}",
        "BLAS": ", ".join(blas) or "unknown",
        "Python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        **{name: version(name) for name in _LIBRARIES},
    }
    return "\n".join([f"polymargin {__version__}", *(f"  {name:<13} {value}" for name, value in lines.items())])
