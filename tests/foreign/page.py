"""The page of the docs about the suites."""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version

from foreign.plugin import Suite

_INTRODUCTION = """\
# The tests of scikit-learn

`make foreign` runs tests that come with scikit-learn, with classes of this package in the place of its own:
`OneVsOneSVC` for `SVC`, `OneVsRestSVC` and `CrammerSingerSVC` with the linear kernel for `LinearSVC`, `SoftmaxSVC`
with the linear kernel for `LogisticRegression`, and `KernelSearchCV` for `GridSearchCV`. Adapters translate the
parameters, as [coming from SVC](coming_from_svc.md) does, and hand coefficients of sparse data over as sparse matrices;
they change no answer. scikit-learn's common checks of estimators run as well, for every machine with its kernels,
biases, solvers and decisions.

A test is applicable if it uses one of our classes. Then it passes, or is listed below with the reason. Anything else
fails, and so does a listed test that passes.
"""


@dataclass(frozen=True)
class Result:
    """How a suite came out."""

    suite: Suite
    counts: dict[str, int]  # tests by verdict
    entries: dict[str, int]  # tests by the entry that names them
    failed: bool
    seconds: float

    @property
    def row(self) -> tuple[int, int, int]:
        """Tests that are applicable, that passed, and that differ on purpose."""
        passed, difference, failed = (self.counts.get(v, 0) for v in ("passed", "difference", "failed"))
        return passed + difference + failed, passed, difference


def table(results: list[Result]) -> str:
    """Return the summary, a row for each suite."""
    rows = [(result.suite.name, *result.row) for result in results]
    total = ("together", *(sum(row[at] for row in rows) for at in (1, 2, 3)))
    return _rows(("suite", "applicable", "passed", "expected differences"), [*rows, total])


def page(results: list[Result]) -> str:
    """Return the page."""
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("polymargin", "scikit-learn", "numpy", "scipy", "pytest")
    )
    minutes = sum(result.seconds for result in results) / 60
    parts = [
        _INTRODUCTION,
        table(results),
        f"\nRun on {date.today()} in {minutes:.0f} minutes with Python {platform.python_version()}, {packages}.",
        "\n## Expected differences\n",
        _reasons(results, lambda suite: {pattern: entry.reason for pattern, entry in suite.expected.items()}),
        "\n## Left out\n\nThese tests ask for something that is not here. Tests without our classes need no reason.\n",
        _reasons(results, lambda suite: suite.left_out),
    ]
    return "\n".join(parts) + "\n"


def _reasons(results: list[Result], entries_of: Callable[[Suite], dict[str, str]]) -> str:
    rows = [
        (f"`{pattern}`", result.entries.get(pattern, 0), reason)
        for result in results
        for pattern, reason in entries_of(result.suite).items()
    ]
    return _rows(("test", "count", "reason"), rows)


def _rows(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
