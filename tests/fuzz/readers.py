"""All readers of files under atheris: whatever the bytes are, there is an answer or a ValueError."""

import gzip
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["polymargin"]):
    from polymargin.storage import import_libsvm, load_model, read_data
    from polymargin.storage.range_file import read_ranges

FOLDER = Path(tempfile.mkdtemp())
READERS = [
    ("data", read_data, bytes),
    ("data.csv", read_data, bytes),
    ("data.gz", read_data, gzip.compress),
    ("data.npz", read_data, lambda data: b"PK\x03\x04" + data),
    ("range", read_ranges, bytes),
    ("model", import_libsvm, bytes),
    ("model.safetensors", load_model, bytes),
]


def try_one(data):
    """Give the bytes to the reader that the first of them names."""
    if not data:
        return
    name, read, pack = READERS[data[0] % len(READERS)]
    path = FOLDER / name
    path.write_bytes(pack(data[1:]))
    try:
        read(path)
    except ValueError as error:
        if str(path) not in str(error):
            raise RuntimeError(f"the refusal does not name the file: {error}") from error


if __name__ == "__main__":
    atheris.Setup(sys.argv, try_one)
    atheris.Fuzz()
