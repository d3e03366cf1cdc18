"""How much memory a fit may take: what was asked for, or a share of what is really free."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

MEGABYTE = 1_000_000
AUTO_SHARE = 0.5  # of the free memory; the rest is for the data, the model and everybody else
NEGLIGIBLE = 64 * MEGABYTE
FALLBACK = 1_000 * MEGABYTE  # where the system does not say


def budget_bytes(cache_size: str | float, useful: int) -> int:
    """Bytes for kernel values: ``cache_size`` megabytes, or for ``"auto"`` half of what is free now.

    ``useful`` is what a fit could use at most: when that is little, nobody needs to ask the system.
    """
    if cache_size == "auto":
        return useful if useful < NEGLIGIBLE else int(AUTO_SHARE * available_bytes())
    return int(float(cache_size) * MEGABYTE)


def available_bytes(root: Path = Path("/")) -> int:
    """Memory this process may still take: the least of the system's, its control groups' and its own limits."""
    limits = [*_system(root), *_control_groups(root), *_address_space(root)]
    return max(0, min(limits, default=FALLBACK))


def _read_int(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # absent, unreadable, or "max"
        return None


def _system(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _control_groups(root: Path) -> Iterator[int]:
    """Room left in every control group above this process, versions 1 and 2."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, limit, usage = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            base, limit, usage = (
                root / "sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
        else:
            continue
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):
            if not folder.is_relative_to(base):
                break
            most, used = _read_int(folder / limit), _read_int(folder / usage)
            if most is not None and used is not None:
                yield most - used


def _address_space(root: Path) -> Iterator[int]:
    """Room under ``ulimit -v``."""
    if sys.platform != "linux":
        return
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return
    try:
        pages = int((root / "proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):
        return
    yield most - pages * resource.getpagesize()
