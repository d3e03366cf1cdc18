"""A pytest plugin that runs tests of other packages against our classes, and judges what comes out.

Before tests are collected, our classes take the place of others (``Suite.replaced``). A test is applicable if it uses
one of them. Then it passes, or is listed as an expected difference with a reason (``Suite.expected``); anything else
fails. So does a listed test that passes, or an entry that no test answers to: the list says what is so.
"""

import importlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from foreign.usage import Usage


@dataclass(frozen=True)
class Difference:
    """Why a test fails on purpose, and what its failure has to say: if it fails otherwise, something else is wrong."""

    reason: str
    says: str


@dataclass(frozen=True)
class Suite:
    """Tests of another package, and how they are to come out.

    Tests are named by file and function, ``test_svm::test_weight``, all parameters of it, or one,
    ``test_svm::test_n_iter[3-SVC]``; ``*`` stands for anything.
    """

    name: str
    tests: tuple[str, ...]  # what pytest is given: modules, or files of this folder
    replaced: dict[str, type] = field(default_factory=dict)  # by dotted name
    left_out: dict[str, str] = field(default_factory=dict)  # tests that are not run, and why they are not applicable
    expected: dict[str, Difference] = field(default_factory=dict)  # tests that fail on purpose


def matches(test: str, pattern: str) -> bool:
    """Whether a pattern names a test."""
    if "[" not in pattern:
        test = test.partition("[")[0]
    return fnmatchcase(test, pattern.replace("[", "[[]"))


def entry_for(test: str, entries: Iterable[str]) -> str | None:
    """Return the pattern that names a test, None if there is none."""
    return next((pattern for pattern in entries if matches(test, pattern)), None)


def verdict(outcome: str, used: bool, difference: Difference | None, message: str = "") -> tuple[str, str]:
    """Judge a test by how it ended, whether it used our classes, and whether it differs as the list says.

    Returns
    -------
    tuple of str
        One of "passed", "difference", "not applicable", "failed", and what is wrong if the test itself cannot say it.
    """
    if outcome == "skipped":
        return "not applicable", ""
    if difference is None:
        return ("failed" if outcome == "failed" else "passed" if used else "not applicable"), ""
    if not used:
        return "failed", "listed as an expected difference, but it uses none of our classes: leave it out instead"
    if outcome == "passed":
        return "failed", "listed as an expected difference, but it passes: strike it off the list"
    if difference.says not in message:
        return "failed", f"listed as an expected difference that says {difference.says!r}, but it says:\n{message}"
    return "difference", ""


class Judge:
    """The plugin proper, for one suite: in workers it judges, in the process that reports it counts."""

    def __init__(self, suite: Suite, results: str | None) -> None:
        self.suite = suite
        self.results = results
        self.counts: Counter[str] = Counter()
        self.entries: Counter[str] = Counter()

    def put_in_place(self) -> None:
        """Let our classes take the place of others; what is replaced must be there."""
        for name, ours in self.suite.replaced.items():
            module, _, attribute = name.rpartition(".")
            place = importlib.import_module(module)
            getattr(place, attribute)
            setattr(place, attribute, ours)

    # Where the tests run.

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            pattern = entry_for(_name(item), self.suite.left_out)
            if pattern is not None:
                item.add_marker(pytest.mark.skip(reason=f"not applicable: {self.suite.left_out[pattern]}"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Any:
        Usage.seen = False
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        report = yield
        if report.when == "call" or report.outcome != "passed":
            self._judge(_name(item), report)
        return report

    def _judge(self, test: str, report: Any) -> None:
        pattern = entry_for(test, self.suite.expected)
        difference = None if pattern is None else self.suite.expected[pattern]
        found, complaint = verdict(report.outcome, Usage.seen, difference, _message(report))
        if difference is not None and found == "difference":
            report.outcome, report.wasxfail = "skipped", difference.reason
        elif complaint:
            report.outcome, report.longrepr = "failed", f"{test}: {complaint}"
        report.foreign = {"verdict": found, "entry": pattern or entry_for(test, self.suite.left_out)}

    # Where the reports arrive.

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        foreign = getattr(report, "foreign", None)
        if foreign is not None:
            self.counts[foreign["verdict"]] += 1
            self.entries.update(filter(None, [foreign["entry"]]))

    def errors(self) -> list[str]:
        """Return what is wrong with the suite as a whole: entries that name no test, or no test at all."""
        entries = [*self.suite.expected, *self.suite.left_out]
        idle = [f"no test is named by {pattern!r}" for pattern in entries if not self.entries[pattern]]
        return idle if self.counts["passed"] else [*idle, "no applicable test passed"]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            return
        chosen = bool(session.config.getoption("keyword"))  # some tests only: then the others say nothing
        errors = [] if chosen else self.errors()
        if errors and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        for error in errors:
            print(f"\n{self.suite.name}: {error}", end="")
        if self.results is not None:
            failed = session.exitstatus != pytest.ExitCode.OK
            answer = {"counts": self.counts, "entries": self.entries, "failed": failed}
            Path(self.results).write_text(json.dumps(answer))


def _message(report: Any) -> str:
    """Return the last error of a test that failed, without the way that led there."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(report.longrepr) if crash is None else crash.message


def _name(item: pytest.Item) -> str:
    return f"{item.path.stem}::{item.nodeid.partition('::')[2]}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the suite and where to write the counts."""
    group = parser.getgroup("foreign")
    group.addoption("--foreign-suite", help="the suite as module:name", required=True)
    group.addoption("--foreign-results", help="file for the counts")


def pytest_configure(config: pytest.Config) -> None:
    """Put our classes in place before anything is collected."""
    module, _, name = config.getoption("foreign_suite").partition(":")
    judge = Judge(getattr(importlib.import_module(module), name), config.getoption("foreign_results"))
    judge.put_in_place()
    config.pluginmanager.register(judge, "foreign-judge")
