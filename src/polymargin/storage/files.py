"""Files read and replaced as a whole."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PathLike = str | os.PathLike[str]


def read_whole(path: PathLike) -> bytes:
    """Return the bytes of a file."""
    _refuse_other_than_file(Path(path))
    return Path(path).read_bytes()


def replace_whole(path: PathLike, parts: Iterable[bytes]) -> None:
    """Write a file so that at any moment, whatever happens, the old or the new one is there, whole.

    The bytes go to a file beside it, to the disk, and only then under the name, which file systems do in one step. If
    the process is killed before that, the file beside it, ``.polymargin-*.part``, stays and may be deleted.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    check_target(target)
    aside = target.parent / f".polymargin-{secrets.token_hex(8)}.part"
    try:
        with open(aside, "xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, aside)
        os.replace(aside, target)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
    _sync_folder(target.parent)


def check_target(path: PathLike, *sources: PathLike | None) -> None:
    """Raise an error now if :func:`replace_whole` could not write this file, or if it is one of those to be read.

    Before long work, not after it.
    """
    target = Path(os.path.realpath(path))
    for source in sources:
        if source is not None and Path(os.path.realpath(source)) == target:
            raise ValueError(f"{path} is a file that is read: give the output another name")
    _refuse_other_than_file(target)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(target.parent))
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "Nothing can be written to this folder", str(target.parent))


def _sync_folder(folder: Path) -> None:
    """Put the new name on the disk as well, where the file system can, lest a power cut brings back the old."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _refuse_other_than_file(path: Path) -> None:
    """Raise ValueError for a folder, a pipe or a device: they cannot be replaced, and may never end."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file; give the name of a file")
