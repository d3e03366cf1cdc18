"""Data files: what is read is what was written, and what is wrong is named by its place."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from reference.data import digits, iris
from reference.mutations import mutated, outcome
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from polymargin.storage import read_data
from polymargin.storage.data_files import svmlight_text


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file and gives its path."""

    def write(content, name="data"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def same(found, expected):
    X, y = found
    dense = X.toarray() if sparse.issparse(X) else X
    np.testing.assert_array_equal(dense, expected[0])
    np.testing.assert_array_equal(y, expected[1])


def csv_text(X, y, label_last=False):
    rows = ([*row, label] if label_last else [label, *row] for row, label in zip(X.tolist(), y.tolist(), strict=True))
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


# svmlight


@pytest.mark.parametrize("dense", [True, False])
def test_scikit_learn_reads_the_same(dense, tmp_path):
    X, y = digits(300)
    X = X if dense else X * (np.random.default_rng(0).random(X.shape) < 0.2)
    dump_svmlight_file(X, y, str(tmp_path / "data"), zero_based=False)
    found, labels = read_data(tmp_path / "data")
    expected, _ = load_svmlight_file(str(tmp_path / "data"), zero_based=False)
    assert sparse.issparse(found) != dense
    assert labels.dtype == np.int64
    same((found, labels), (expected.toarray(), y))


def test_numbers_come_back_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 7)) * 10.0 ** rng.integers(-300, 300, size=(50, 7))
    y = rng.normal(size=50)
    (tmp_path / "data").write_bytes(b"".join(svmlight_text(X, y)))
    same(read_data(tmp_path / "data"), (X, y))


def test_sparse_rows_are_sound_and_empty_ones_stay(written):
    X, y = read_data(written("1 3:1\n2\n3 9:2\n"))
    X.check_format(full_check=True)
    assert X.shape == (3, 9)
    assert X.has_canonical_format
    assert y.tolist() == [1, 2, 3]


def test_indices_of_64_bits(written):
    X, _ = read_data(written("1 1:1 2147483649:1\n2 1099511627776:1\n"))
    assert X.shape == (2, 2**40)
    assert X.indices.dtype == X.indptr.dtype == np.int64


@pytest.mark.parametrize(("text", "labels"), [("1\n2\n", [1, 2]), ("0.5 1:1\n1 1:1\n", [0.5, 1.0])])
def test_labels_are_whole_where_all_of_them_are(text, labels, written):
    assert read_data(written(text))[1].tolist() == labels


def test_indices_from_zero(written):
    same(read_data(written("1 0:5 1:6\n2 0:7\n"), zero_based=True), ([[5, 6], [7, 0]], [1, 2]))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, bytes])
@pytest.mark.parametrize("name", ["data", "data.svm", "data.gz"])
def test_compression_is_told_by_content_not_by_name(pack, name, written):
    same(read_data(written(pack(b"1 1:2\n2 1:3\n"), name)), ([[2], [3]], [1, 2]))


def test_a_long_text_that_does_not_fit_a_block(written):
    text = "".join(f"{i % 7} 1:{i} 2:1\n" for i in range(600_000))
    X, y = read_data(written(gzip.compress(text.encode(), 1)))
    assert X.shape == (600_000, 2)
    np.testing.assert_array_equal(X[:, 0], np.arange(600_000))
    np.testing.assert_array_equal(y, np.arange(600_000) % 7)


def test_a_pipe_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("1 1:2\n2 1:3\n",))
    writer.start()
    same(read_data(tmp_path / "pipe"), ([[2], [3]], [1, 2]))
    writer.join()


# CSV


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("header", ["", "y,a,b,c,d\n", '"y","a, b","c","d","e"\r\n'])
@pytest.mark.parametrize("name", ["data.csv", "data", "data.csv.gz"])
def test_csv(last, header, name, written):
    X, y = iris()
    text = (header + csv_text(X, y, last)).encode()
    path = written(gzip.compress(text) if name.endswith("gz") else text, name)
    same(read_data(path, label="last" if last else "first"), (X, y))


def test_csv_with_texts_as_labels_and_without_any(written):
    path = written("setosa,1,2\nvirginica,3,4\n", "data.csv")
    same(read_data(path), ([[1, 2], [3, 4]], ["setosa", "virginica"]))
    X, y = read_data(written("1,2\n3,4\n", "data.csv"), label="none")
    same((X, y), ([[1, 2], [3, 4]], []))


@pytest.mark.parametrize(("text", "name"), [("1;2\n2;3\n", "a.csv"), ("1\t2\n2\t3\n", "a.tsv"), ("1;2\n2;3\n", "a")])
def test_other_separators(text, name, written):
    same(read_data(written(text, name)), ([[2], [3]], [1, 2]))


def test_a_header_of_numbers_has_to_be_said(written):
    path = written("0,1,2\n1,5,6\n2,7,8\n", "data.csv")
    assert len(read_data(path)[1]) == 3
    same(read_data(path, header=True), ([[5, 6], [7, 8]], [1, 2]))


# npz


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def csr_parts(X):
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}


@pytest.mark.parametrize("labels", [[0, 1, 2], ["a", "b", "c"], [0.5, 1.5, 2.5]])
def test_npz(labels, written):
    X = np.arange(6.0).reshape(3, 2)
    same(read_data(written(npz(X=X, y=np.array(labels)))), (X, labels))
    same(read_data(written(npz(X=X)), label="none"), (X, []))
    same(read_data(written(npz(**csr_parts(sparse.csr_matrix(X)), y=np.array(labels)))), (X, labels))


def test_float32_stays(written):
    assert read_data(written(npz(X=np.ones((2, 2), np.float32), y=np.arange(2))))[0].dtype == np.float32


# What is wrong

BAD = {
    "an empty file": (b"", "line 1, column 1: expected an example"),
    "comments alone": (b"# a\n\n#b\n", "line 1, column 1: expected an example"),
    "no label": (b"1:2 2:3\n", "line 1, column 1: expected a label before the features"),
    "NaN": (b"1 1:2\n2 1:nan\n", "line 2, column 3: expected index:value"),
    "infinity": (b"1 1:2 2:1e999\n", "line 1, column 7: expected index:value"),
    "index 0": (b"1 0:2\n", "line 1, column 3: expected an index from 1"),
    "index twice": (b"1 2:2 2:2\n", "line 1, column 7: expected an index from 3"),
    "descending": (b"1 2:2 1:2\n", "line 1, column 7: expected an index from 3"),
    "a huge index": (b"1 4611686018427387905:1\n", "line 1, column 3: expected an index from 1 to"),
    "text": (b"a b c\n", "line 1, column 1: expected a label"),
    "several labels": (b"1,2 1:1\n", "line 1, column 1: expected one label"),
    "UTF-16": ("1 1:1\n".encode("utf-16"), "line 1, column 1: expected a label"),
    "damaged gzip": (gzip.compress(b"1 1:1\n" * 1000)[:-20], "compressed, and damaged"),
    "damaged bzip2": (bz2.compress(b"1 1:1\n" * 1000)[:-20], "compressed, and damaged"),
    "damaged xz": (lzma.compress(b"1 1:1\n" * 1000)[:-20], "compressed, and damaged"),
    "a broken zip": (b"PK\x03\x04 and so on", "not a sound npz file"),
}
BAD_TABLES = {
    "a short row": ("1,2,3\n1,2\n", "line 2, column 3: expected 3 values, got 2"),
    "a long row": ("1,2,3\n1,2,3,4\n", "line 2, column 4: expected 3 values, got 4"),
    "text in a cell": ("1,2,3\n1,x,3\n", "line 2, column 2: expected a finite number, got 'x'"),
    "an empty cell": ("1,2,3\n1,,3\n", "line 2, column 2: expected a finite number, got ''"),
    "NaN": ("1,2,3\n1,2,nan\n", "line 2, column 3: expected a finite number, got 'nan'"),
    "an underscore": ("1,2,3\n1,2,1_0\n", "line 2, column 3: expected a finite number, got '1_0'"),
    "half a header": ("y,a,3\n1,2,3\n", "line 1, column 2: expected a finite number, got 'a'"),
    "a header alone": ("y,a,b\n", "line 2, column 1: expected an example"),
    "text among numbers": ("1,2\nb,3\n", "line 2, column 1: expected a finite number as label"),
    "numbers among text": ("a,2\n1,3\n", "line 2, column 1: expected a text as label"),
    "no label": ("1,2\n,3\n", "line 2, column 1: expected a label, got ''"),
    "an open quote": ('1,2\n1,"2\n1,2\n', "line 2, column 1: this is not CSV"),
    "one column": ("1\n2\n", "line 1, column 1: expected a label and at least one feature"),
    "nothing": ("", "line 1, column 1: expected an example"),
    "bytes that are not UTF-8": (b"1,2\n\xff\xfe,3\n", "line 2, column 1: expected a label, got"),
}
X2 = np.ones((2, 2))
BAD_ARCHIVES = {
    "no X": ({"y": [1, 2]}, "array 'data' is missing"),
    "no y": ({"X": X2}, "array 'y' is missing"),
    "a vector": ({"X": np.ones(2), "y": [1, 2]}, "array 'X': expected a matrix"),
    "texts": ({"X": np.array([["a"]]), "y": [1]}, "array 'X': expected a matrix of numbers"),
    "NaN": ({"X": np.array([[1.0], [np.nan]]), "y": [1, 2]}, "array 'X' contains NaN at row 1, column 0"),
    "too few labels": ({"X": X2, "y": [1]}, "array 'y': expected 2"),
    "a label that is none": ({"X": X2, "y": [1.0, np.nan]}, "array 'y': expected finite numbers, got nan in row 1"),
    "objects": ({"X": np.array([[print]], dtype=object), "y": [1]}, "not a sound npz file"),
    "an index too large": (
        {"data": [1.0], "indices": [5], "indptr": [0, 1], "shape": [1, 2], "y": [1]},
        "arrays 'indices' and 'indptr'",
    ),
    "a shape of three": (
        {"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": [1, 2, 3], "y": [1]},
        "array 'shape'",
    ),
}


def refusal(path, **options):
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        read_data(path, **options)
    return str(caught.value)


@pytest.mark.parametrize("case", BAD)
def test_bad_texts_are_named(case, written):
    content, message = BAD[case]
    assert message in refusal(written(content))


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_named(case, written):
    content, message = BAD_TABLES[case]
    assert message in refusal(written(content, "data.csv"))


@pytest.mark.parametrize("case", BAD_ARCHIVES)
def test_bad_archives_are_named(case, written):
    arrays, message = BAD_ARCHIVES[case]
    assert message in refusal(written(npz(**{name: np.asarray(array) for name, array in arrays.items()})))


def test_hints(written):
    for text, hint in {"1 0:1\n": "--zero-based", "1:2 2:3\n": "put any number", "2 1:1\n": "put any number"}.items():
        with pytest.raises(ValueError, match=r"\w") as caught:
            read_data(written(text), label="none" if text.startswith("2") else "first")
        assert hint in caught.value.__notes__[0]


def test_folders_and_devices_are_refused(tmp_path):
    for path in (tmp_path, "/dev/zero"):
        with pytest.raises(ValueError, match="is not a file"):
            read_data(path)
    with pytest.raises(FileNotFoundError):
        read_data(tmp_path / "none")


def good_files():
    X, y = iris()
    thin = sparse.csr_matrix(X * (np.random.default_rng(1).random(X.shape) < 0.4))
    text = b"".join(svmlight_text(X, y))
    return {
        "svmlight": text,
        "csv": csv_text(X, y).encode(),
        "npz": npz(X=X[:20], y=y[:20]),
        "csr.npz": npz(**csr_parts(thin), y=y),
        "svmlight.gz": gzip.compress(text),
    }


@pytest.mark.parametrize("kind", good_files())
def test_a_thousand_mutations_are_read_or_refused_by_place(kind, written):
    """No crash, no hang; a refusal names line and column, the array, or the damage of the archive."""
    rng = np.random.default_rng(0)
    good = good_files()[kind]
    places = re.compile(r"line \d+, column \d+: |array|not a sound npz file|compressed, and damaged")
    refused = 0
    began = time.perf_counter()
    for _ in range(1000):
        path = written(mutated(good, rng, b"0123456789.:,+-e# \n\r\tnaif"), f"data.{kind.split('.')[-1]}")
        found = outcome(read_data, path)
        if isinstance(found, str):
            refused += 1
            assert found.startswith(str(path))
            assert places.search(found), found
        else:
            X, y = found
            values = X.data if sparse.issparse(X) else X
            assert X.shape[0] == len(y) > 0
            assert np.isfinite(values).all()
    assert 200 < refused < 1000
    assert time.perf_counter() - began < 60


MEASURED = """
import json, sys, time
from pathlib import Path
import numpy as np
from sklearn.datasets import load_svmlight_file
from polymargin.storage import read_data

def kilobytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

read_data(sys.argv[2])  # whatever is loaded once
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
before = kilobytes("VmRSS")
began = time.perf_counter()
X, y = read_data(sys.argv[1])
ours = time.perf_counter() - began
arrays = sum(array.nbytes for array in (X.data, X.indices, X.indptr, y))
memory = 1024 * (kilobytes("VmHWM") - before) / arrays
began = time.perf_counter()
load_svmlight_file(sys.argv[1])
print(json.dumps([ours, time.perf_counter() - began, memory]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of the memory is read from /proc")
def test_a_large_text_is_read_faster_than_by_scikit_learn_in_three_times_the_memory_of_the_arrays(written):
    rng = np.random.default_rng(0)
    columns = np.sort(rng.permuted(np.tile(np.arange(1, 55), (2000, 1)), axis=1)[:, :12], axis=1)
    values = rng.integers(-500, 5000, size=columns.shape) / rng.choice([1, 8, 7], size=columns.shape)
    rows = [
        " ".join([str(i % 7), *map("{}:{!r}".format, c, v)])
        for i, (c, v) in enumerate(zip(columns.tolist(), values.tolist(), strict=True))
    ]
    few = "\n".join(rows) + "\n"
    large, small = written(100 * few, "large"), written(few, "small")
    command = [sys.executable, "-c", MEASURED, str(large), str(small)]
    ours, theirs, memory = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert large.stat().st_size > 20_000_000
    assert ours < theirs
    assert memory < 3
