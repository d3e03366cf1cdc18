"""A model file is the old or the new one, whole, whatever happens while it is saved."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest
from reference.data import iris

from polymargin import OneVsOneSVC, load_model, save_model
from polymargin.storage import export_libsvm, import_libsvm
from polymargin.storage.files import replace_whole

# A process that imports once, and for every way to die has a child that dies in that way while it saves.
DYING = """
import os, resource, signal, sys
from pathlib import Path
import numpy as np
from polymargin import OneVsOneSVC, load_model, save_model
from polymargin.storage import export_libsvm, import_libsvm
from polymargin.storage import files as _files

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def die_after(function):
    def dying(*arguments, **options):
        function(*arguments, **options)
        die()
    return dying

def half_written(path, parts):
    def halves():
        for part in parts:
            yield part[: len(part) // 2]
            die()
    return replace_whole(path, halves())

def full_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

rng = np.random.default_rng(0)
X, y = rng.normal(size=(300, 30)), np.arange(300) % 3
old, new = OneVsOneSVC(C=1.0).fit(X, y), OneVsOneSVC(C=0.01).fit(X, y)
replace_whole, fsync, replace = _files.replace_whole, os.fsync, os.replace
save, load = (save_model, load_model) if sys.argv[1] == "safetensors" else (export_libsvm, import_libsvm)
module = sys.modules[save.__module__]
ways = {
    "half": lambda: setattr(module, "replace_whole", half_written),
    "before fsync": lambda: setattr(os, "fsync", die),
    "after fsync": lambda: setattr(os, "fsync", die_after(fsync)),
    "before rename": lambda: setattr(os, "replace", die),
    "after rename": lambda: setattr(os, "replace", die_after(replace)),
    "full disk": full_disk,
}
for way, prepare in ways.items():
    folder = Path(sys.argv[2]) / way
    folder.mkdir()
    save(old, folder / "machine")
    child = os.fork()
    if child == 0:
        prepare()
        try:
            save(new, folder / "machine")
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    found = load(folder / "machine").pairwise_decision_function(X)
    same = [name for name, machine in {"old": old, "new": new}.items()
            if np.allclose(machine.pairwise_decision_function(X), found, rtol=1e-12)]
    print(f"{way}: {same[0]} {os.waitstatus_to_exitcode(status)} {len(list(folder.iterdir()))}")
"""


@pytest.mark.parametrize("kind", ["safetensors", "libsvm"])
def test_kill_at_every_stage_and_a_full_disk_leave_the_old_or_the_new_model_whole(kind, tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", DYING, kind, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    # which model is there, how the process that saved ended, how many files there are
    assert run.stdout.splitlines() == [
        "half: old -9 2",
        "before fsync: old -9 2",
        "after fsync: old -9 2",
        "before rename: old -9 2",
        "after rename: new -9 1",
        "full disk: old 27 1",
    ]


SAVING = """
import sys
from polymargin import load_model, save_model
models = [load_model(path) for path in sys.argv[1:3]]
print("ready", flush=True)
for i in range(10**9):
    save_model(models[i % 2], sys.argv[3])
"""


def test_kill_at_any_time_leaves_one_of_the_models(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 60)), np.arange(1500) % 3
    bits = {}
    for name, C in {"a": 1.0, "b": 0.5}.items():
        machine = OneVsOneSVC(C=C, max_iter=10)
        with pytest.warns(match="did not converge"):
            machine.fit(X, y)
        save_model(machine, tmp_path / name)
        bits[name] = machine.decision_function(X[:5]).tobytes()
    save_model(load_model(tmp_path / "a"), tmp_path / "machine")
    command = [sys.executable, "-c", SAVING, *(str(tmp_path / name) for name in ("a", "b", "machine"))]
    for _ in range(4):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(rng.uniform(0.02, 0.15))
            process.kill()
        assert load_model(tmp_path / "machine").decision_function(X[:5]).tobytes() in bits.values()


def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "file").write_bytes(b"old")

    def parts():
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_whole(tmp_path / "file", parts())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_the_mode_of_an_old_file_and_the_mask_for_a_new_one(tmp_path):
    before = os.umask(0o027)
    try:
        replace_whole(tmp_path / "new", [b"1"])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o604)
    replace_whole(tmp_path / "new", [b"2"])
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "file")
    for text in (b"1", b"2"):
        replace_whole(tmp_path / "link", [text])
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder" / "file").read_bytes() == text


@pytest.mark.parametrize(("save", "load"), [(save_model, load_model), (export_libsvm, import_libsvm)])
def test_a_name_in_the_folder_of_the_process(save, load, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    machine = OneVsOneSVC().fit(*iris())
    save(machine, "machine")
    assert load("machine").n_support_.tolist() == machine.n_support_.tolist()
