"""What polymargin promises where its peers crash, hang or answer wrongly: one test for each promise, with its figure.

Each promise is tested for more machines and cases where the code lies that keeps it; here it is tested as it was
measured on the peers. ``make fuzz`` sets POLYMARGIN_LONG, and the rounds are then the long ones.
"""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reference.compare import fitted_bits
from reference.data import digits, iris, overlapping, wine
from reference.mutations import mutated, outcome
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import polymargin
from polymargin import OneVsOneSVC, SoftmaxSVC, load_model, save_model
from polymargin.decision import pair_index
from polymargin.storage import export_libsvm, import_libsvm

LONG = bool(os.environ.get("POLYMARGIN_LONG"))
MACHINES = [getattr(polymargin, name) for name in polymargin.__all__ if name.endswith("SVC")]
every_machine = pytest.mark.parametrize("Machine", MACHINES)


def rounds(short, long):
    """Return how often to try."""
    return long if LONG else short


def child(program, *arguments):
    """Start a Python program of its own, and wait until it says that it is ready."""
    command = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


# Files


@pytest.mark.parametrize("kind", ["safetensors", "libsvm"])
def test_mutations_of_a_model_file_neither_crash_nor_hang_nor_change_its_meaning(kind, tmp_path):
    """Peers: LIBSVM 35.8 % segmentation faults, LIBLINEAR 9.2 %."""
    X, y = iris()
    machine = OneVsOneSVC().fit(X, y)
    save, load = (save_model, load_model) if kind == "safetensors" else (export_libsvm, import_libsvm)
    save(machine, tmp_path / "good")
    good, expected = (tmp_path / "good").read_bytes(), machine.decision_function(X).tobytes()
    rng = np.random.default_rng(0)
    for _ in range(rounds(1000, 100_000)):
        (tmp_path / "mutated").write_bytes(mutated(good, rng, b'0123456789.-e:"{}[], \n'))
        loaded = outcome(load, tmp_path / "mutated")
        if isinstance(loaded, str):
            assert loaded.startswith(str(tmp_path / "mutated"))
        elif kind == "safetensors":
            assert loaded.decision_function(X).tobytes() == expected
        else:  # a text without a digest: another digit is another model, and it works
            assert isinstance(outcome(loaded.predict, np.zeros((2, loaded.n_features_in_))), np.ndarray | str)


def test_a_saved_and_loaded_machine_is_bit_identical_on_200_rows(tmp_path):
    """Peers: LIBSVM 0 of 200."""
    X, y = digits(400)
    for Machine in MACHINES:
        machine = Machine().fit(X[:200], y[:200])
        save_model(machine, tmp_path / "model")
        found = load_model(tmp_path / "model").decision_function(X[200:])
        assert (found == machine.decision_function(X[200:])).all(axis=1).sum() == 200


def test_loading_runs_nothing_that_the_file_names(tmp_path):
    """Peers: pickle runs code."""

    class Payload:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "ran"),))

    (tmp_path / "model").write_bytes(pickle.dumps(Payload()))
    for load in (load_model, import_libsvm):
        with pytest.raises(ValueError, match="model"):
            load(tmp_path / "model")
    assert not (tmp_path / "ran").exists()


SAVING = """
import sys
from polymargin import load_model, save_model
models = [load_model(path) for path in sys.argv[1:3]]
print("ready", flush=True)
for i in range(10**9):
    save_model(models[i % 2], sys.argv[3])
"""


def test_kill_9_while_saving_leaves_a_whole_model(tmp_path):
    """Peers: the old model is lost. The full disk is in tests/storage/test_files.py."""
    X, y = digits(600)
    expected = {}
    for name, C in {"one": 1.0, "two": 0.01}.items():
        machine = OneVsOneSVC(C=C).fit(X, y)
        save_model(machine, tmp_path / name)
        expected[name] = machine.decision_function(X[:5]).tobytes()
    save_model(machine, tmp_path / "model")
    rng = np.random.default_rng(0)
    for _ in range(rounds(2, 200)):
        with child(SAVING, tmp_path / "one", tmp_path / "two", tmp_path / "model") as saving:
            time.sleep(rng.uniform(0.01, 0.1))
            saving.kill()
        assert load_model(tmp_path / "model").decision_function(X[:5]).tobytes() in expected.values()


# Bad input


def test_14_fitted_states_that_were_tampered_with_are_refused():
    """Peers: scikit-learn's SVC accepts 12 of 14 in silence."""

    def spoiled(array, value):
        array = np.array(array)
        array.flat[array.size // 2] = value
        return array

    changes = [
        ("dual_coef_", lambda a: a[:-1]),
        ("dual_coef_", lambda a: a[:, :-1]),
        ("dual_coef_", lambda a: np.vstack([a, a[:1]])),
        ("dual_coef_", lambda a: spoiled(a, np.nan)),
        ("dual_coef_", lambda a: spoiled(a, np.inf)),
        ("intercept_", lambda a: a[:-1]),
        ("intercept_", lambda a: spoiled(a, np.nan)),
        ("support_vectors_", lambda a: a[:, :-1]),
        ("support_vectors_", lambda a: a[:-1]),
        ("support_vectors_", lambda a: spoiled(a, np.nan)),
        ("n_support_", lambda a: a + 1),
        ("n_support_", lambda a: a[:-1]),
        ("classes_", lambda a: a[:-1]),
        ("n_features_in_", lambda n: n + 1),
    ]
    X, y = wine()
    machine = OneVsOneSVC().fit(X, y)
    refused = 0
    for name, change in changes:
        tampered = copy.deepcopy(machine)
        setattr(tampered, name, change(getattr(machine, name)))
        refused += isinstance(outcome(tampered.predict, X), str)
    assert refused == len(changes) == 14


def invalid_csr():
    """Yield six matrices whose arrays contradict each other."""
    X = sparse.csr_matrix(digits(150)[0])
    for name, at, value in [
        ("indptr", 5, X.indptr[7] + 3),
        ("indptr", 0, 2),
        ("indptr", -1, X.indptr[-1] + 1000),
        ("indices", 50, X.shape[1] + 5),
        ("indices", 50, -3),
    ]:
        bad = X.copy()
        getattr(bad, name)[at] = value
        yield bad
    bad = X.copy()
    bad.indptr = bad.indptr[:-4]
    yield bad


@every_machine
def test_six_invalid_csr_matrices_are_six_errors(Machine):
    """Peers: LinearSVC crashes on 3, hangs on 2 and accepts 1; SVC accepts 3."""
    y = digits(150)[1]
    assert sum(isinstance(outcome(Machine().fit, bad, y), str) for bad in invalid_csr()) == 6


@every_machine
def test_int64_indices_give_the_same_result(Machine):
    """Peers: refused by SVC and LinearSVC."""
    X, y = digits(150)
    narrow, wide = sparse.csr_matrix(X), sparse.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert fitted_bits(Machine().fit(wide, y), wide) == fitted_bits(Machine().fit(narrow, y), narrow)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@every_machine
def test_a_value_of_1e200_is_named_or_gives_finite_scores(Machine):
    """Peers: LinearSVC hangs, SVC and LIBSVM give scores that are not finite."""
    X, y = wine()
    X[37, 2] = 1e200
    for kernel in ("linear", "rbf"):
        found = outcome(lambda kernel=kernel: Machine(kernel=kernel, time_limit=10).fit(X, y).decision_function(X))
        if isinstance(found, str):
            assert "row 37" in found
            assert "column 2" in found
        else:
            assert np.isfinite(found).all()


@every_machine
def test_a_class_whose_weights_are_zero_is_named(Machine):
    """Peers: it disappears, and scores have another width (scikit-learn #5150)."""
    X, y = iris()
    with pytest.raises(ValueError, match="class"):
        Machine().fit(X, y, sample_weight=(y != 1).astype(float))


# A fit under way

FITTING = """
import json, sys, time
import numpy as np
import polymargin
machine = getattr(polymargin, sys.argv[1])(gamma=0.5, cache_size=100)
rng = np.random.default_rng(0)
machine.fit(rng.normal(size=(60, 10)), np.arange(60) % 3)
machine.set_params(C=1e6, tol=1e-10, time_limit=60.0)
X, y = rng.normal(size=(6000, 10)), rng.integers(0, 3, 6000)
before = dict(vars(machine))
print("ready", flush=True)
try:
    machine.fit(X, y)
except KeyboardInterrupt:
    ended = time.time()
same = vars(machine).keys() == before.keys() and all(vars(machine)[name] is before[name] for name in before)
print(json.dumps([ended, same]), flush=True)
"""


@pytest.mark.parametrize("Machine", [OneVsOneSVC, polymargin.CrammerSingerSVC])
def test_ctrl_c_ends_a_fit_in_a_fraction_of_a_second(Machine):
    """Peers: LIBSVM swallows it, LIBLINEAR and LinearSVC do not react in 5 s, SVC takes 3 s. Promised: 0.2 s.

    Four tries, of which the best counts: the machine that runs the tests may be busy.
    """
    waits = []
    for _ in range(4):
        with child(FITTING, Machine.__name__) as fitting:
            time.sleep(1.0)
            sent = time.time()
            fitting.send_signal(signal.SIGINT)
            ended, same = json.loads(fitting.stdout.readline())
        assert same
        waits.append(ended - sent)
        if waits[-1] <= 0.2:
            break
    assert min(waits) <= 0.2


@every_machine
def test_two_threads_that_fit_at_once_get_the_serial_answer(Machine):
    """Peers: LinearSVC differs in 20 of 20 runs."""
    X, y = digits(300)
    serial = fitted_bits(Machine(random_state=0).fit(X, y), X)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(rounds(3, 20)):
            both = [pool.submit(lambda: Machine(random_state=0, n_jobs=2).fit(X, y)) for _ in range(2)]
            assert [fitted_bits(fit.result(), X) == serial for fit in both] == [True, True]


CAPPED = """
import resource, sys
import numpy as np
import polymargin
from polymargin import OneVsOneSVC
rng = np.random.default_rng(0)
X, y = rng.normal(size=(4000, 50)), rng.integers(0, 4, 4000)
OneVsOneSVC().fit(X[:100], y[:100])
print("ready", flush=True)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 24_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    OneVsOneSVC(cache_size=float(sys.argv[1]) or "auto").fit(X, y)
    print("fitted")
except MemoryError:
    print("MemoryError")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the cap is Linux's RLIMIT_AS")
@pytest.mark.parametrize("megabytes", [0, 500])
def test_a_cap_of_24_megabytes_is_a_memory_error_or_a_smaller_cache(megabytes):
    """Peers: all three end with a segmentation fault."""
    with child(CAPPED, megabytes) as fitting:
        out, err = fitting.communicate(timeout=120)
    assert fitting.returncode == 0, err
    assert out.strip() in ("fitted", "MemoryError")


def test_every_fit_reports_primal_dual_and_gap_and_a_warning_quotes_them():
    """Peers: a violation below tol, no certificate."""
    X, y = overlapping(n=600)
    for Machine in MACHINES:
        few = 1 if Machine is polymargin.GenSVC else 3  # Newton steps, of which it needs no more
        machine = Machine(max_iter=few) if Machine is not polymargin.LinearProgramSVC else Machine()
        if machine.max_iter == few:
            with pytest.warns(ConvergenceWarning) as caught:
                machine.fit(X, y)
            assert f"{machine.primal_objective_:.6g}" in str(caught[-1].message)
        machine.set_params(max_iter=-1).fit(X[:200], y[:200])
        assert machine.dual_objective_ <= machine.primal_objective_ + 1e-9 * abs(machine.primal_objective_)
        assert 0 <= machine.duality_gap_ < 0.1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@every_machine
def test_a_long_fit_can_be_limited_and_watched(Machine, capfd):
    """Peers: dots on standard output. Ctrl-C is above, callbacks are in tests/test_callbacks.py."""
    X, y = overlapping(n=2000 if Machine not in (SoftmaxSVC, polymargin.GenSVC, polymargin.LinearProgramSVC) else 300)
    began = time.perf_counter()
    machine = Machine(C=1e5, tol=1e-10, time_limit=0.5, verbose=1)
    outcome(machine.fit, X, y)
    assert time.perf_counter() - began < 20
    assert Machine.__name__ in "".join(capfd.readouterr())


# Answers


@every_machine
def test_all_checks_of_scikit_learn_pass_and_none_is_declared_to_fail(Machine):
    """Peers: SVC and LinearSVC declare failures with sample weights."""
    results = check_estimator(Machine(), on_fail=None)
    assert not [result["check_name"] for result in results if result["status"] in ("failed", "xfail")]
    assert len(results) > 40


@every_machine
def test_a_row_given_twice_is_a_row_of_weight_two(Machine):
    X, y = iris()
    twice = np.concatenate([np.arange(len(y)), np.arange(0, len(y), 3)])
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    options = {"gamma": 0.3, "tol": 1e-8}
    if Machine is polymargin.UncertaintySVC:
        options |= {"max_pairs": 1.0, "min_distance": np.inf, "probe_size": len(twice)}  # nothing is drawn
    repeated = Machine(**options).fit(X[twice], y[twice]).decision_function(X)
    np.testing.assert_allclose(
        Machine(**options).fit(X, y, sample_weight=weight).decision_function(X), repeated, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("machine", [OneVsOneSVC(decision="coupling"), SoftmaxSVC()], ids=str)
def test_predict_is_the_largest_probability(machine):
    """Peers: may disagree (scikit-learn #13211)."""
    X, y = overlapping(n=500)
    machine.fit(X, y)
    np.testing.assert_array_equal(machine.predict(X), machine.classes_[machine.predict_proba(X).argmax(axis=1)])


def test_thousands_of_classes_are_counted_in_64_bits_and_what_does_not_fit_is_refused_with_advice(monkeypatch):
    """Peers: k (k - 1) / 2 overflows (scikit-learn #15008)."""
    k = 1000
    X = np.random.default_rng(0).normal(size=(2 * k, 60))
    y = np.arange(2 * k) % k
    machine = polymargin.CrammerSingerSVC(kernel="linear").fit(X, y)
    assert machine.decision_function(X[:3]).shape == (3, k)
    assert pair_index(np.int64(99_998), np.int64(99_999), 100_000) == 100_000 * 99_999 // 2 - 1
    monkeypatch.setattr("polymargin.models.layout.available_bytes", lambda: 8 * 2**30)
    many = np.arange(100_000) % 50_000
    with pytest.raises(MemoryError, match=r"1,249,975,000 pairs.*use OneVsRestSVC"):
        OneVsOneSVC().fit(np.zeros((len(many), 1)), many)
