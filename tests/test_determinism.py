"""The same answer for any number of threads; and a fit that leaves Python, and Ctrl-C, alone."""

import json
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reference.compare import fitted_bits, scores
from reference.data import digits, overlapping
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from polymargin import (
    CrammerSingerSVC,
    LeeLinWahbaSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    SoftmaxSVC,
    TotalMaximumSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)

MACHINES = [
    OneVsOneSVC,
    OneVsRestSVC,
    WestonWatkinsSVC,
    CrammerSingerSVC,
    LinearProgramSVC,
    UncertaintySVC,
    OutputCodeSVC,
    SoftmaxSVC,
]
ABSOLUTE = [LeeLinWahbaSVC, TotalMaximumSVC]
TOGETHER = [*MACHINES[2:4], *ABSOLUTE]
CACHED = [*MACHINES[:5], *ABSOLUTE]
MACHINES += ABSOLUTE
PROBLEMS = {
    "digits": digits,
    "overlapping": lambda: overlapping(n=3000),
    "sparse digits": lambda: (sparse.csr_matrix(digits(800)[0]), digits(800)[1]),
}


@pytest.mark.parametrize("Machine", MACHINES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_bit_identical_for_any_number_of_threads(Machine, problem):
    X, y = PROBLEMS[problem]()
    most = {SoftmaxSVC: 800, LinearProgramSVC: 500}.get(Machine, 1500 if Machine in TOGETHER else len(y))
    X, y = X[:most], y[:most]
    one = fitted_bits(Machine(C=2.0, n_jobs=1).fit(X, y), X)
    for n_jobs in (2, 4):
        assert fitted_bits(Machine(C=2.0, n_jobs=n_jobs).fit(X, y), X) == one, n_jobs


@pytest.mark.parametrize("Machine", CACHED)
def test_bit_identical_for_any_number_of_threads_with_a_small_cache(Machine):
    X, y = overlapping(n=400 if Machine is LinearProgramSVC else 1200)
    one = fitted_bits(Machine(cache_size=1, n_jobs=1).fit(X, y), X)
    for n_jobs in (2, 4):
        assert fitted_bits(Machine(cache_size=1, n_jobs=n_jobs).fit(X, y), X) == one, n_jobs


@pytest.mark.parametrize("Machine", TOGETHER)
@pytest.mark.parametrize("bias", [None, "regularized", "free"])
def test_every_bias_is_the_same_for_any_number_of_threads(Machine, bias):
    X, y = overlapping(n=1000)
    one = fitted_bits(Machine(bias=bias, n_jobs=1).fit(X, y), X)
    for n_jobs in (2, 4):
        assert fitted_bits(Machine(bias=bias, n_jobs=n_jobs).fit(X, y), X) == one, n_jobs


@pytest.mark.parametrize("decision", ["votes", "dag", "adag", "coupling"])
def test_decisions_are_the_same_for_any_number_of_threads(decision):
    X, y = digits()
    machine = OneVsOneSVC(C=0.02, decision=decision).fit(X[:400], y[:400])
    predictions = [machine.set_params(n_jobs=n_jobs).predict(X) for n_jobs in (1, 2, 4)]
    np.testing.assert_array_equal(predictions[0], predictions[1])
    np.testing.assert_array_equal(predictions[0], predictions[2])


@pytest.mark.parametrize("Machine", MACHINES)
def test_two_fits_one_after_the_other_are_bit_identical(Machine):
    X, y = overlapping(n=500)
    assert fitted_bits(Machine().fit(X, y), X) == fitted_bits(Machine().fit(X, y), X)


@pytest.mark.parametrize("Machine", CACHED)
@pytest.mark.parametrize("cache_size", [1, 2])
def test_a_small_cache_gives_the_same_answer(Machine, cache_size):
    X, y = overlapping(n=500 if Machine is LinearProgramSVC else 2000)  # the whole kernel matrix is 2 or 16 MB
    whole = Machine(tol=1e-4, cache_size=200).fit(X, y)
    cached = Machine(tol=1e-4, cache_size=cache_size).fit(X, y)
    assert cached.converged_
    assert cached.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-6)
    np.testing.assert_allclose(scores(cached, X), scores(whole, X), atol=1e-3)
    if Machine is not LinearProgramSVC:  # which takes another solver where its matrices have no room
        assert cached.n_kernel_evaluations_ >= whole.n_kernel_evaluations_


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_that_fit_at_once_do_not_meet(n_jobs):
    # The data are made beforehand: making them uses BLAS, whose threads a fit elsewhere limits.
    sizes = {Machine: 200 if Machine is LinearProgramSVC else 700 for Machine in MACHINES}
    tasks = [(Machine, *overlapping(n=sizes[Machine], seed=seed)) for Machine in MACHINES for seed in range(3)]

    def run(task):
        Machine, X, y = task
        return fitted_bits(Machine(C=3.0, n_jobs=n_jobs, random_state=0).fit(X, y), X)

    serial = [run(task) for task in tasks]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            assert list(pool.map(run, tasks)) == serial


def test_threads_that_predict_with_one_machine_do_not_meet():
    X, y = digits()
    machine = OneVsOneSVC(n_jobs=2).fit(X[:500], y[:500])
    expected = machine.predict(X)
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(lambda _: machine.predict(X), range(12)):
            np.testing.assert_array_equal(got, expected)


def hard_problem(n=8000):
    """Labels that have nothing to do with the rows: a fit that does not end soon."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 10)), rng.integers(0, 3, n)


@pytest.mark.parametrize("Machine", MACHINES)
def test_python_runs_while_a_machine_is_fitted(Machine):
    X, y = hard_problem(3000 if Machine is SoftmaxSVC else 8000)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    counter = threading.Thread(target=tick)
    counter.start()
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            Machine(C=1e6, tol=1e-10, time_limit=1.0, cache_size=100).fit(X, y)
    finally:
        end = time.perf_counter()
        stop.set()
        counter.join()
    assert end - begin > 0.2, "the fit was too short to tell"
    inside = [begin, *(t for t in ticks if begin < t < end), end]
    assert len(inside) > 20
    assert np.diff(inside).max() < 0.5 * (end - begin)


INTERRUPTED = """
import json, sys
import numpy as np
import polymargin

machine = getattr(polymargin, sys.argv[1])(gamma=0.5, cache_size=100)
rng = np.random.default_rng(0)
machine.fit(rng.normal(size=(60, 10)), np.arange(60) % 3)
machine.set_params(C=1e6, tol=1e-10, time_limit=60.0)
X, y = rng.normal(size=(8000, 10)), rng.integers(0, 3, 8000)
before = dict(vars(machine))
outcome = "not interrupted"
print("ready", flush=True)
try:
    machine.fit(X, y)
except KeyboardInterrupt:
    outcome = "interrupted"
same = vars(machine).keys() == before.keys() and all(vars(machine)[name] is before[name] for name in before)
works = machine.predict(X[:5]).shape == (5,)
print(json.dumps({"outcome": outcome, "same": same, "works": works}), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("Machine", MACHINES)
def test_ctrl_c_ends_a_fit_and_leaves_the_machine_as_it_was(Machine):
    command = [sys.executable, "-c", INTERRUPTED, Machine.__name__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n", child.stderr.read()
            time.sleep(1.0)
            assert child.poll() is None, "the fit was too short to interrupt"
            child.send_signal(signal.SIGINT)
            begin = time.perf_counter()
            line = child.stdout.readline()
            waited = time.perf_counter() - begin
            report = json.loads(line) if line else child.stderr.read()
        finally:
            child.kill()
    assert report == {"outcome": "interrupted", "same": True, "works": True}
    assert waited < 2.0
