"""The compiled module: classes for what crosses the boundary, sound whatever it is given, and a stub that is true."""

import ast
import enum
import gc
import inspect
import weakref
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from reference.binary import solve_binary
from reference.data import overlapping

from polymargin import _core
from polymargin.support.threads import one_blas_thread

CHECKED_IN = Path(__file__).resolve().parents[1] / "src" / "polymargin" / "_core.pyi"
SETTINGS = [_core.BinarySettings, _core.JointSettings, _core.LinearSettings, _core.Exactness, _core.Resources]
RESULTS = [_core.BinaryResults, _core.JointResult, _core.LinearResult, _core.SparseExamples]
LOSSES = [_core.WestonWatkins(), _core.CrammerSinger(), _core.OneVsRest()]
N_CLASSES = 6


@pytest.fixture(autouse=True)
def _threads_of_the_core_alone():
    with one_blas_thread():
        yield


def fields(kind):
    return [name for name, value in vars(kind).items() if isinstance(value, property)]


@pytest.fixture(scope="module")
def data():
    """Examples sorted by class, their classes, and where the classes begin."""
    X, y = overlapping(n=180, n_classes=N_CLASSES)
    order = np.argsort(y, kind="stable")
    return X[order], y[order].astype(np.int64), np.searchsorted(y[order], np.arange(N_CLASSES + 1))


def gram(X):
    squares = (X**2).sum(axis=1)
    return np.exp(-0.3 * (squares[:, None] + squares - 2 * X @ X.T))


def session_on(X, **resources):
    kernel = _core.Kernel(_core.KernelType.rbf, 0.3, 0.0, 3)
    exactness = _core.Exactness(largest_cost_bound=100.0, tolerance=1e-8)
    limits = _core.Resources(**{"budget_bytes": 50_000_000} | resources)
    return _core.KernelSession(_core.Data.dense(X), kernel, np.arange(len(X)), exactness, limits)


def coded(codes, class_starts):
    """Return the problems of codes, rows of +1, -1 and 0 for each class, as a table of signed ranges."""
    return np.array(
        [
            (p, begin, end, sign)
            for p, code in enumerate(codes)
            for (begin, end), sign in zip(pairwise(class_starts), code, strict=True)
            if sign != 0
        ],
        dtype=np.int64,
    )


CODES = np.array([[1, -1, 1, -1, 1, -1], [1, 0, -1, 0, 1, -1], [0, 1, 1, -1, 0, -1], [1, 0, 0, 0, 0, -1]])


# What there is.


def test_the_stub_is_the_one_that_the_module_gives():
    stubgen = pytest.importorskip("nanobind.stubgen", reason="nanobind writes the stub")
    written = stubgen.StubGen(_core)
    written.put(_core)
    assert CHECKED_IN.read_text() == written.get(), "copy the build's _core.pyi to src/polymargin/_core.pyi"


def functions():
    """Return every function and method that the stub has."""
    return [node for node in ast.walk(ast.parse(CHECKED_IN.read_text())) if isinstance(node, ast.FunctionDef)]


def test_no_call_takes_more_than_eight_arguments():
    for function in functions():
        arguments = function.args.posonlyargs + function.args.args
        if function.name != "__init__" or len(arguments) > 1:  # settings name their fields
            arguments = arguments + function.args.kwonlyargs
        given = [argument.arg for argument in arguments]
        assert len(given) - ("self" in given) <= 8, (function.name, given)


def test_nothing_returns_a_dict_or_a_tuple_and_no_enum_is_a_string():
    for function in functions():
        answer = ast.unparse(function.returns)
        assert not answer.startswith(("dict", "tuple")), function.name
        for argument in function.args.args:
            assert argument.annotation is None or ast.unparse(argument.annotation) != "str", function.name


@pytest.mark.parametrize("kind", SETTINGS + RESULTS, ids=lambda kind: kind.__name__)
def test_every_field_is_documented(kind):
    assert fields(kind)
    assert inspect.getdoc(kind)
    for name in fields(kind):
        assert inspect.getdoc(getattr(kind, name)), name


@pytest.mark.parametrize("kind", SETTINGS, ids=lambda kind: kind.__name__)
def test_settings_are_read_and_written(kind):
    settings = kind()
    for name in fields(kind):
        before = getattr(settings, name)
        other = list(type(before))[-1] if isinstance(before, enum.Enum) else type(before)(not before)
        setattr(settings, name, other)
        assert getattr(settings, name) == other == getattr(kind(**{name: other}), name)
        assert getattr(kind(), name) == before
    with pytest.raises(TypeError):
        kind(nothing=1)


def test_enums_are_named_as_users_know_them():
    names = {kind: [member.name for member in kind] for kind in (_core.Status, _core.Bias, _core.LinearMethod)}
    assert names[_core.Status] == ["converged", "max_iter", "time_limit", "stopped", "precision", "unbounded"]
    assert names[_core.Bias] == ["none", "regularized", "free"]
    assert names[_core.LinearMethod] == ["sequential_dual", "exponentiated_gradient"]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_every_loss_has_an_exact_step(loss):
    row = _core.exact_step(loss, np.array([-1.0, 0.5, 2.0]), 1.0, 0, 1.0, np.zeros(3))
    assert row[0] > 0
    assert np.all(row[1:] <= 0)


# Binary problems.


def test_signed_ranges_are_solved_to_the_optimum_of_a_quadratic_program(data):
    X, _, class_starts = data
    rng = np.random.default_rng(3)
    cost_bounds = rng.uniform(0.5, 20.0, len(X))
    problems = _core.BinaryProblems(coded(CODES, class_starts))
    settings = _core.BinarySettings(tolerance=1e-8)
    answers = [session_on(X, **r).train_binary(problems, cost_bounds, settings) for r in ({}, {"threads": 2})]
    K = gram(X)
    for results in answers:
        assert results.status == [_core.Status.converged] * len(CODES)
        for p, code in enumerate(CODES):
            sign = np.repeat(code, np.diff(class_starts))
            used = np.flatnonzero(sign)
            expected = solve_binary(K[np.ix_(used, used)], sign[used], cost_bounds[used])
            np.testing.assert_allclose(results.dual[p], expected.dual, rtol=1e-8)
            np.testing.assert_allclose(results.primal[p], expected.primal, rtol=1e-8)
            np.testing.assert_allclose(results.intercept[p], expected.b, atol=1e-5)
            part = results.part(p, p + 1)
            assert np.all(np.sign(part.beta) == sign[part.support])
    for name in ("support", "beta", "intercept"):  # whatever the number of threads
        np.testing.assert_array_equal(getattr(answers[0], name), getattr(answers[1], name))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0, 0, 5, 1], [0, 4, 9, -1]], "row 1: the ranges"),
        ([[0, 5, 5, 1], [0, 5, 9, -1]], "row 0: the ranges"),
        ([[0, 5, 9, 1], [0, 0, 5, -1]], "row 1: the ranges"),
        ([[0, -1, 5, 1], [0, 5, 9, -1]], "row 0: the ranges"),
        ([[0, 0, 5, 1], [0, 5, 9, 0]], "row 1: the sign"),
        ([[0, 0, 5, 1], [0, 5, 9, 1]], "problem 0: there must be examples of both signs"),
        ([[1, 0, 5, 1], [1, 5, 9, -1]], "row 0: problems must be numbered"),
        ([[0, 0, 5, 1], [0, 5, 9, -1], [2, 0, 5, 1]], "row 2: problems must be numbered"),
    ],
)
def test_problems_that_are_none_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        _core.BinaryProblems(np.array(table))


def test_what_does_not_fit_the_session_is_refused(data):
    X, y, class_starts = data
    session, settings, cost_bounds = session_on(X), _core.BinarySettings(), np.ones(len(X))
    problems = _core.BinaryProblems(np.array([[0, 0, 5, 1], [0, 5, len(X) + 1, -1]]))
    with pytest.raises(ValueError, match="problem 0: its ranges go beyond the examples"):
        session.train_binary(problems, cost_bounds, settings)
    problems = _core.BinaryProblems(coded(CODES, class_starts))
    empty = _core.BinaryStart(np.array([0, 0]), np.array([], dtype=np.int64), np.array([]))
    with pytest.raises(ValueError, match="a start for each problem"):
        session.train_binary(problems, cost_bounds, settings, start=empty)
    with pytest.raises(ValueError, match="starts must ascend"):
        _core.BinaryStart(np.array([0, 3]), np.array([1]), np.array([1.0]))
    with pytest.raises(ValueError, match="every example needs a fold"):
        session.train_binary(problems, cost_bounds, settings, folds=np.zeros(3, dtype=np.int64))
    with pytest.raises(ValueError, match="label of example 7"):
        _core.JointProblem(LOSSES[0], _core.Bias.free, cost_bounds, np.where(np.arange(len(y)) == 7, 9, y), N_CLASSES)
    with pytest.raises(ValueError, match="for each example"):
        _core.LinearProblem(LOSSES[2], _core.Bias.free, cost_bounds[1:], y, N_CLASSES)
    with pytest.raises(TypeError):
        _core.JointProblem(_core.OneVsRest(), _core.Bias.free, cost_bounds, y, N_CLASSES)
    problem = _core.JointProblem(LOSSES[0], _core.Bias.free, cost_bounds, y, N_CLASSES)
    for support, rows in (([len(y)], 1), ([3, 3], 2), ([3], 2)):
        start = _core.RowStart(np.array(support), np.zeros((rows, N_CLASSES)), np.zeros(N_CLASSES))
        with pytest.raises(ValueError, match="a start must"):
            session.train_joint(problem, _core.JointSettings(), start=start)
    linear = _core.LinearProblem(LOSSES[0], _core.Bias.free, cost_bounds, y, N_CLASSES)
    with pytest.raises(ValueError, match="needs a label"):
        _core.train_linear(_core.Data.dense(X), np.arange(3), linear, _core.LinearSettings())


def test_a_solution_is_where_a_warm_start_ends(data):
    X, _, class_starts = data
    problems, cost_bounds = _core.BinaryProblems(coded(CODES, class_starts)), np.full(len(X), 2.0)
    np.testing.assert_array_equal(problems.sizes, [np.abs(code) @ np.diff(class_starts) for code in CODES])
    settings = _core.BinarySettings(tolerance=1e-8)
    cold = session_on(X).train_binary(problems, cost_bounds, settings)
    start = _core.BinaryStart(cold.starts, cold.support, cold.beta)
    warm = session_on(X).train_binary(problems, cost_bounds, settings, start=start)
    np.testing.assert_allclose(warm.dual, cold.dual, rtol=1e-10)
    assert warm.iterations.sum() < cold.iterations.sum()


# Results.


def test_parts_of_results_are_views(data):
    X, _, class_starts = data
    problems = _core.BinaryProblems(coded(CODES, class_starts))
    results = session_on(X).train_binary(problems, np.ones(len(X)), _core.BinarySettings())
    assert len(results) == len(problems) == len(CODES)
    parts = [results.part(p, p + 2) for p in (0, 2)]
    for name in ("support", "beta", "intercept", "primal", "dual", "violation", "iterations"):
        np.testing.assert_array_equal(np.concatenate([getattr(p, name) for p in parts]), getattr(results, name))
    assert np.shares_memory(parts[1].beta, results.beta)
    assert parts[1].starts[0] == 0
    assert parts[0].status + parts[1].status == results.status
    whole = results.beta.copy()
    del results
    gc.collect()
    np.testing.assert_array_equal(np.concatenate([part.beta for part in parts]), whole)
    with pytest.raises(IndexError):
        parts[0].part(1, 3)


def test_an_array_lives_without_its_result_and_without_the_other_arrays(data):
    X, y, _ = data
    problem = _core.LinearProblem(_core.CrammerSinger(), _core.Bias.regularized, np.ones(len(X)), y, N_CLASSES)
    result = _core.train_linear(_core.Data.dense(X), np.arange(len(X)), problem, _core.LinearSettings())
    assert result.weights.shape == (X.shape[1], N_CLASSES)
    weights, gone = result.weights, weakref.ref(result.coefficients.base or result.coefficients)
    expected = weights.copy()
    del result
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(weights, expected)


@pytest.mark.parametrize("bias", list(_core.Bias), ids=lambda bias: bias.name)
@pytest.mark.parametrize("loss", LOSSES[:2], ids=lambda loss: type(loss).__name__)
def test_joint_and_linear_machines_agree_and_start_where_they_ended(data, loss, bias):
    X, y, _ = data
    cost_bounds, order = np.full(len(X), 0.02), np.arange(len(X))
    kernel = _core.Kernel(_core.KernelType.linear, 0.0, 0.0, 0)
    exactness = _core.Exactness(largest_cost_bound=1.0, tolerance=1e-6)
    resources = _core.Resources(budget_bytes=50_000_000)
    session = _core.KernelSession(_core.Data.dense(X), kernel, order, exactness, resources)
    problem = _core.JointProblem(loss, bias, cost_bounds, y, N_CLASSES)
    assert (type(problem.loss), problem.bias, problem.classes) == (type(loss), bias, N_CLASSES)
    settings = _core.JointSettings(tolerance=1e-6)
    joint = session.train_joint(problem, settings)
    assert joint.status is _core.Status.converged
    assert joint.rows.shape == (len(joint.support), N_CLASSES)
    again = session.train_joint(problem, settings, start=_core.RowStart(joint.support, joint.rows, joint.intercept))
    np.testing.assert_allclose(again.dual, joint.dual, rtol=1e-6)
    linear = _core.train_linear(
        _core.Data.dense(X),
        order,
        _core.LinearProblem(loss, bias, cost_bounds, y, N_CLASSES),
        _core.LinearSettings(gap=1e-7),
        start=_core.RowStart(joint.support, joint.rows, joint.intercept),
    )
    assert linear.status is _core.Status.converged
    np.testing.assert_allclose(linear.dual, joint.dual, rtol=1e-5)
