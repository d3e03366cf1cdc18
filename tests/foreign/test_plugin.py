"""The judge of foreign suites, its adapters and its page; the suites themselves run with ``make foreign``."""

import json
from pathlib import Path

import numpy as np
import pytest
from reference.data import iris
from sklearn.base import clone

from foreign import page, suites
from foreign.adapters import SVC, GridSearchCV, LinearCrammerSinger, LinearSVC, LogisticRegression
from foreign.common_checks import ESTIMATORS
from foreign.plugin import Difference, Suite, entry_for, matches, verdict
from polymargin import OneVsOneSVC, OneVsRestSVC

pytest_plugins = ["pytester"]

DOCS = Path(__file__).resolve().parents[2] / "docs" / "foreign_suites.md"
SUITES = [getattr(suites, name) for name in suites.ALL]


@pytest.mark.parametrize(
    ("outcome", "used", "listed", "expected"),
    [
        ("passed", True, False, "passed"),
        ("failed", True, False, "failed"),
        ("failed", True, True, "difference"),
        ("passed", True, True, "failed"),
        ("passed", False, True, "failed"),
        ("failed", False, True, "failed"),
        ("passed", False, False, "not applicable"),
        ("failed", False, False, "failed"),
        ("skipped", True, False, "not applicable"),
        ("skipped", True, True, "not applicable"),
    ],
)
def test_verdicts(outcome, used, listed, expected):
    difference = Difference("on purpose", "2 == 1") if listed else None
    assert verdict(outcome, used, difference, "assert 2 == 1")[0] == expected


def test_a_listed_test_that_fails_otherwise_fails():
    found, complaint = verdict("failed", True, Difference("on purpose", "2 == 1"), "division by zero")
    assert found == "failed"
    assert "says '2 == 1', but it says:\ndivision by zero" in complaint


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("test_a::test_x", True),
        ("test_a::test_x[3-SVC]", True),
        ("test_a::test_x[*-SVC]", True),
        ("test_a::test_x[*-NuSVC]", False),
        ("test_a::test_x[SVC]", False),
        ("test_a::test_", False),
        ("test_b::test_x", False),
    ],
)
def test_patterns_name_functions_or_single_parameters(pattern, named):
    assert matches("test_a::test_x[3-SVC]", pattern) == named
    assert entry_for("test_a::test_x[3-SVC]", {"test_a::test_y": "", pattern: ""}) == (pattern if named else None)


THEIRS = "class Machine:\n    answer = 1\n"
SUITE = """
import theirs
from foreign.usage import Tracked
from foreign.plugin import Difference, Suite

class Ours(Tracked):
    answer = 2

SUITE = Suite("theirs", ("test_theirs.py",), {{"theirs.Machine": Ours}}, left_out={left_out}, expected={expected})
"""
TESTS = """
import pytest
import theirs
from theirs import Machine

made = Machine()

def test_passes():
    assert Machine().answer > 0

def test_differs():
    assert theirs.Machine().answer == 1

def test_made_when_collected():
    assert made.answer == 2

def test_without():
    assert 1 + 1 == 2

@pytest.mark.parametrize("value", [1, 2])
def test_left_out(value):
    assert Machine().answer == value
"""
LEFT_OUT = {"test_theirs::test_left_out[1]": "no counterpart"}
DIFFERS = {"test_theirs::test_differs": Difference("on purpose", "assert 2 == 1")}


@pytest.fixture
def judged(pytester, monkeypatch):
    """Run the tests above, and return how pytest ended and what the judge wrote."""
    pytester.syspathinsert()
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).resolve().parents[1]}:{pytester.path}")  # for workers

    def judged(*options, left_out=LEFT_OUT, expected=DIFFERS, tests=TESTS):
        pytester.makepyfile(theirs=THEIRS, suite_here=SUITE.format(left_out=left_out, expected=expected))
        pytester.makepyfile(test_theirs=tests)
        plugin = ("-p", "foreign.plugin", "--foreign-suite=suite_here:SUITE", "--foreign-results=results.json")
        in_workers = "--numprocesses" in options
        run = (pytester.runpytest_subprocess if in_workers else pytester.runpytest_inprocess)(*plugin, *options)
        return run, json.loads((pytester.path / "results.json").read_text())

    return judged


@pytest.mark.parametrize("options", [("-p", "no:xdist"), ("--numprocesses", "1")], ids=["alone", "in a worker"])
def test_tests_are_counted_by_what_they_use(judged, options):
    run, results = judged(*options)
    run.assert_outcomes(passed=4, skipped=1, xfailed=1)
    assert run.ret == 0
    assert results["counts"] == {"passed": 3, "difference": 1, "not applicable": 2}
    assert results["entries"] == {"test_theirs::test_left_out[1]": 1, "test_theirs::test_differs": 1}
    assert not results["failed"]


def test_a_difference_that_is_not_listed_fails(judged):
    run, results = judged(expected={})
    run.assert_outcomes(passed=4, skipped=1, failed=1)
    assert results["failed"]
    assert results["counts"]["failed"] == 1


@pytest.mark.parametrize(
    ("listed", "complaint"),
    [("test_passes", "it passes: strike it off the list"), ("test_without", "it uses none of our classes")],
)
def test_a_listed_test_that_does_not_differ_fails(judged, listed, complaint):
    run, results = judged(expected=DIFFERS | {f"test_theirs::{listed}": Difference("wrongly", "")})
    run.assert_outcomes(passed=3, skipped=1, xfailed=1, failed=1)
    run.stdout.fnmatch_lines(f"*{complaint}*")
    assert results["failed"]


def test_a_listed_test_that_fails_in_another_way_fails(judged):
    run, results = judged(expected={"test_theirs::test_differs": Difference("on purpose", "assert 3 == 1")})
    run.assert_outcomes(passed=4, skipped=1, failed=1)
    run.stdout.fnmatch_lines("*that says 'assert 3 == 1', but it says:*")
    assert results["failed"]


@pytest.mark.parametrize("argument", ["left_out", "expected"])
def test_an_entry_that_names_no_test_fails(judged, argument):
    entries = {"left_out": LEFT_OUT, "expected": DIFFERS}
    any_entry = next(iter(entries[argument].values()))
    entries[argument] = entries[argument] | {"test_theirs::test_gone": any_entry}
    run, results = judged(**entries)
    run.assert_outcomes(passed=4, skipped=1, xfailed=1)
    run.stdout.fnmatch_lines("*no test is named by 'test_theirs::test_gone'*")
    assert run.ret == 1
    assert results["failed"]


def test_entries_of_other_tests_are_not_missed_when_some_were_chosen(judged):
    run, results = judged("-k", "passes")
    assert run.ret == 0
    assert results["counts"] == {"passed": 1}


def test_a_suite_without_applicable_tests_fails(judged):
    run, results = judged(left_out={}, expected={}, tests="def test_nothing():\n    pass\n")
    run.stdout.fnmatch_lines("*no applicable test passed*")
    assert results["failed"]


def test_a_failure_that_has_nothing_to_do_with_us_is_not_passed_over(judged):
    tests = TESTS + "\ndef test_broken():\n    raise OSError\n"
    _, results = judged(tests=tests)
    assert results["counts"]["failed"] == 1


@pytest.mark.parametrize("phase", ["setup", "teardown"])
def test_fixtures_that_fail_are_failures(judged, phase):
    steps = {"setup": "raise OSError\n    yield", "teardown": "yield\n    raise OSError"}
    fixture = f"\n@pytest.fixture\ndef bad():\n    {steps[phase]}\n\ndef test_with(bad):\n    assert Machine()\n"
    _, results = judged(tests=TESTS + fixture)
    assert results["failed"]
    assert results["counts"]["failed"] == 1


# Adapters.


def test_the_adapter_of_svc_is_one_against_one():
    X, y = iris()
    ours, adapted = OneVsOneSVC(C=3.0).fit(X, y), SVC(C=3.0).fit(X, y)
    np.testing.assert_array_equal(adapted.decision_function(X), ours.decision_function(X))
    pairs = clone(adapted).set_params(decision_function_shape="ovo").fit(X, y)
    np.testing.assert_array_equal(pairs.decision_function(X), ours.pairwise_decision_function(X))
    assert not hasattr(adapted, "predict_proba")
    assert SVC(probability=True).fit(X, y).predict_proba(X).shape == (150, 3)


def test_pairs_of_two_classes_have_the_sign_of_scikit_learn():
    X, y = (values[:100] for values in iris())
    machine = SVC(decision_function_shape="ovo").fit(X, y)
    np.testing.assert_array_equal(machine.predict(X), (machine.decision_function(X) > 0).astype(int))


def test_linear_adapters_are_what_their_parameters_say():
    assert isinstance(LinearSVC(), OneVsRestSVC)
    assert LinearSVC().bias == "free"
    assert LinearSVC(fit_intercept=False).bias is None
    joint = LinearSVC(multi_class="crammer_singer")
    assert isinstance(clone(joint), LinearCrammerSinger)
    assert joint.bias == "regularized"
    with pytest.raises(NotImplementedError, match="leave the test out"):
        LinearSVC(penalty="l1").fit(*iris())


def test_our_search_shares_work_of_all_adapters():
    X, y = iris()
    for machine in (SVC(), LinearSVC(), LogisticRegression()):
        assert GridSearchCV(machine, {"C": [0.1, 1.0]}).fit(X, y).shared_


# Suites and their page.


def reasons_of(suite):
    """Return all entries of a suite with their reasons."""
    return [*((pattern, entry.reason) for pattern, entry in suite.expected.items()), *suite.left_out.items()]


def test_every_reason_is_said():
    for suite in SUITES:
        assert all(len(reason) > 20 for _, reason in reasons_of(suite))
        assert all(difference.says for difference in suite.expected.values())
        assert not suite.expected.keys() & suite.left_out.keys()


def test_the_common_checks_have_61_parameterisations():
    names = {repr(estimator) for estimator in ESTIMATORS}
    assert len(names) == len(ESTIMATORS) == 61
    assert not any(" at 0x" in name for name in names)  # workers have to agree on them


def test_the_table_counts():
    counts = {"passed": 5, "difference": 2, "failed": 1, "not applicable": 9}
    result = page.Result(Suite("theirs", ()), counts, {}, True, 1.0)
    lines = page.table([result, result]).splitlines()
    assert lines[2:] == ["| theirs | 8 | 5 | 2 |"] * 2 + ["| together | 16 | 10 | 4 |"]


def test_the_page_of_the_docs_has_all_entries():
    """When this fails: ``python tests/foreign/run.py --page docs/foreign_suites.md``."""
    text = DOCS.read_text()
    for suite in SUITES:
        assert f"| {suite.name} | " in text
    entries = [entry for suite in SUITES for entry in reasons_of(suite)]
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) == len(entries)
    for pattern, reason in entries:
        assert any(row.startswith(f"| `{pattern}` |") and row.endswith(f"| {reason} |") for row in rows)
