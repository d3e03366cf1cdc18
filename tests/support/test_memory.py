"""The memory budget: read from the system, control groups and limits, on made-up files."""

import resource

import pytest

from polymargin.support import memory as _memory

GIGA = 1024**3


@pytest.fixture(autouse=True)
def no_process_limit(monkeypatch):
    monkeypatch.setattr(_memory.resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def system(root, *, available, cgroup="", files=None):
    """Write /proc and /sys as a machine would show them."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {available // 1024} kB\n")
    (root / "proc/self/cgroup").write_text(cgroup)
    for name, value in (files or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return root


def test_the_system_alone(tmp_path):
    assert _memory.available_bytes(system(tmp_path, available=8 * GIGA)) == 8 * GIGA


def test_a_control_group_of_version_2(tmp_path):
    files = {"sys/fs/cgroup/job/memory.max": 2 * GIGA, "sys/fs/cgroup/job/memory.current": GIGA}
    assert _memory.available_bytes(system(tmp_path, available=8 * GIGA, cgroup="0::/job\n", files=files)) == GIGA


def test_a_parent_group_counts_too(tmp_path):
    files = {
        "sys/fs/cgroup/all/memory.max": 3 * GIGA,
        "sys/fs/cgroup/all/memory.current": GIGA,
        "sys/fs/cgroup/all/job/memory.max": "max",
        "sys/fs/cgroup/all/job/memory.current": GIGA,
    }
    root = system(tmp_path, available=8 * GIGA, cgroup="0::/all/job\n", files=files)
    assert _memory.available_bytes(root) == 2 * GIGA


def test_a_control_group_of_version_1(tmp_path):
    files = {
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": 5 * GIGA,
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": 4 * GIGA,
    }
    root = system(tmp_path, available=8 * GIGA, cgroup="3:cpu:/x\n2:memory:/job\n", files=files)
    assert _memory.available_bytes(root) == GIGA


def test_a_group_that_is_over_its_limit_leaves_nothing(tmp_path):
    files = {"sys/fs/cgroup/memory.max": GIGA, "sys/fs/cgroup/memory.current": 2 * GIGA}
    assert _memory.available_bytes(system(tmp_path, available=8 * GIGA, cgroup="0::/\n", files=files)) == 0


def test_the_limit_of_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(_memory.resource, "getrlimit", lambda _: (3 * GIGA, 3 * GIGA))
    root = system(tmp_path, available=8 * GIGA)
    (root / "proc/self/statm").write_text(f"{GIGA // resource.getpagesize()} 1 1 1 0 1 0\n")
    assert _memory.available_bytes(root) == 2 * GIGA


def test_a_system_that_says_nothing(tmp_path):
    assert _memory.available_bytes(tmp_path) == _memory.FALLBACK


def test_a_number_is_megabytes():
    assert _memory.budget_bytes(200, useful=1) == 200_000_000


def test_auto_takes_a_share_or_the_little_that_is_useful(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 10 * GIGA)
    assert _memory.budget_bytes("auto", useful=100 * GIGA) == 5 * GIGA
    assert _memory.budget_bytes("auto", useful=1000) == 1000
