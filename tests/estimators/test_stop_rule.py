"""What ``tol`` is compared with: the violation or the gap, whatever the machine, its data and the number of rows."""

import io
import re
import warnings

import numpy as np
import pytest
from reference.compare import audit, oracle
from reference.data import overlapping, random_classes
from reference.linear import linear_optimum, worth
from rich.console import Console
from scipy.sparse import csr_matrix
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning

from polymargin import (
    CrammerSingerSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
    SoftmaxSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
    certify,
)
from polymargin.selection import KernelSearchCV

KERNEL_MACHINES = [OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC, UncertaintySVC, OutputCodeSVC]
ALL = [*KERNEL_MACHINES, LinearProgramSVC, SoftmaxSVC]
LINEAR = [OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC]
CONTAINERS = {"dense": np.asarray, "sparse": csr_matrix}
HARD_TO_CLOSE = {"C": 1e4, "gamma": 1.0}
"""Most examples are free: more than are solved for at once, and each unit of C counts the violation."""
DEAR_ROWS = {"cache_size": 8}
"""Without the whole matrix one-against-all does not begin with all classes together, which closes such gaps."""


def touching(n=1600, seed=1):
    """Classes that touch: with a narrow kernel and a large C, a small violation leaves a large gap."""
    return make_blobs(n, 6, centers=6, cluster_std=1.5, random_state=seed)


def quiet(machine, X, y, **params):
    """Fit without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return machine.fit(X, y, **params)


@pytest.mark.parametrize("Machine", ALL)
@pytest.mark.parametrize("bad", ["gaps", "", None, 1])
def test_a_rule_that_is_none_is_named(Machine, bad):
    X, y = random_classes(3)
    with pytest.raises(ValueError, match=rf"'stop' parameter of {Machine.__name__}.*Got {bad!r}"):
        Machine(stop=bad).fit(X, y)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("Machine", [*KERNEL_MACHINES, LinearProgramSVC])
def test_a_gap_that_was_asked_for_is_there_and_no_further_from_the_optimum(Machine, container):
    X, y = random_classes(3, n=60)
    machine = quiet(Machine(C=100.0, tol=1e-5, stop="gap"), CONTAINERS[container](X), y)
    best, _ = oracle(machine, X, y)
    assert machine.converged_
    assert machine.duality_gap_ <= 1e-5
    assert best.dual * (1 - 1e-5) - 1e-6 <= machine.dual_objective_ <= best.dual * (1 + 1e-6) + 1e-6
    assert machine.primal_objective_ <= best.dual * (1 + 2e-5) + 1e-6


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("Machine", KERNEL_MACHINES)
def test_the_gap_of_a_larger_machine_is_there_by_other_code_too(Machine, container):
    X, y = touching(1200)
    machine = quiet(Machine(stop="gap", tol=1e-3, **HARD_TO_CLOSE), CONTAINERS[container](X), y)
    checked = audit(machine, X, y)
    assert machine.converged_
    assert machine.duality_gap_ <= 1e-3
    assert (checked.primal - checked.dual) / checked.primal <= 1.01e-3
    assert checked.infeasibility < 1e-9


@pytest.mark.parametrize("Machine", [WestonWatkinsSVC, CrammerSingerSVC])
@pytest.mark.parametrize("bias", ["free", "regularized", None])
def test_the_gap_with_every_bias(Machine, bias):
    X, y = touching(1100)
    machine = quiet(Machine(stop="gap", tol=1e-3, bias=bias, **HARD_TO_CLOSE), X, y)
    assert machine.converged_
    assert certify(machine, X, y).duality_gap <= 1.01e-3


@pytest.mark.parametrize("Machine", KERNEL_MACHINES)
def test_a_smaller_gap_takes_more_steps(Machine):
    X, y = touching(1200)
    gaps, steps = [], []
    for tol in (0.5, 1e-2, 1e-5):
        machine = Machine(stop="gap", tol=tol, **HARD_TO_CLOSE).fit(X, y)
        gaps.append(machine.duality_gap_ / tol)
        steps.append(np.sum(machine.n_iter_))
    assert max(gaps) <= 1
    assert steps[0] <= steps[1] <= steps[2]
    assert steps[0] < steps[2]


@pytest.mark.parametrize("Machine", KERNEL_MACHINES)
def test_an_open_gap_is_told_with_the_two_ways_out(Machine):
    X, y = make_classification(
        3000, 10, n_informative=6, n_classes=3, weights=[0.9, 0.06, 0.04], class_sep=0.8, random_state=0
    )
    dear = DEAR_ROWS if Machine is OneVsRestSVC else {}
    with pytest.warns(ConvergenceWarning, match="met tol=0.5") as caught:
        machine = Machine(stop="violation", tol=0.5, **HARD_TO_CLOSE, **dear).fit(X, y)
    message = str(caught[0].message)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert machine.converged_
    assert machine.duality_gap_ > 1e-2
    assert f"relative gap {machine.duality_gap_:.3g}" in message
    assert "smaller tol" in message
    assert 'stop="gap"' in message
    for way_out in ({"tol": 1e-6}, {"stop": "gap", "tol": 1e-3}):
        quiet(Machine(**{"stop": "violation"} | HARD_TO_CLOSE | way_out), X, y)


@pytest.mark.parametrize("Machine", KERNEL_MACHINES)
def test_the_violation_is_the_rule_of_kernel_machines(Machine):
    X, y = overlapping(n=1200)
    default, named = (quiet(Machine(**rule), X, y) for rule in ({}, {"stop": "violation"}))
    np.testing.assert_array_equal(default.dual_coef_, named.dual_coef_)


@pytest.mark.parametrize("Machine", [OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC])
@pytest.mark.parametrize("C", [1e4, 1e6])
def test_a_gap_that_is_cheap_to_close_is_closed_in_silence(Machine, C):
    X, y = touching()
    machine = quiet(Machine(C=C), X, y)  # without the finish the gaps are 0.3 to 0.99
    assert machine.duality_gap_ <= 1e-2


@pytest.mark.parametrize("stop", ["violation", "gap"])
@pytest.mark.parametrize("Machine", KERNEL_MACHINES)
def test_a_gap_does_not_depend_on_threads(Machine, stop):
    X, y = touching(1100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, two = (Machine(stop=stop, n_jobs=jobs, **HARD_TO_CLOSE).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_steps_that_close_the_gap_count_as_steps():
    X, y = touching(1100)
    with pytest.warns(ConvergenceWarning, match="max_iter=300 was reached"):
        machine = OneVsRestSVC(stop="gap", tol=1e-6, max_iter=300, **HARD_TO_CLOSE).fit(X, y)
    assert machine.stop_reason_ == "max_iter"
    assert np.max(machine.n_iter_) <= 300


@pytest.mark.parametrize("Machine", [OneVsOneSVC, WestonWatkinsSVC])
def test_a_gap_beyond_rounding_ends_with_precision(Machine):
    X, y = touching(1100)
    with pytest.warns(ConvergenceWarning, match="rounding hides the rest"):
        machine = Machine(stop="gap", tol=1e-300, C=1e4).fit(X, y)
    assert machine.stop_reason_ == "precision"
    assert machine.duality_gap_ < 1e-4


def test_a_hard_margin_may_be_asked_for_by_its_gap():
    X, y = make_blobs(1200, 2, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    machine = quiet(OneVsOneSVC(C=np.inf, kernel="linear", stop="gap", tol=1e-6), X, y)
    assert machine.duality_gap_ <= 1e-6
    assert machine.score(X, y) == 1.0


def held_violation(machine, X, y):
    """Return by how much the worst example of a linear one-against-all machine without a bias violates (22)."""
    B = np.zeros((len(y), len(machine.classes_)))
    B[machine.support_] = machine.dual_coef_.T
    t = np.where(y[:, None] == machine.classes_, 1.0, -1.0)
    short = 1.0 - t * machine.decision_function(X)
    alpha = t * B
    return max(np.max(np.where(alpha < 1 - 1e-9, short, 0.0)), np.max(np.where(alpha > 1e-9, -short, 0.0)))


@pytest.mark.parametrize("n", [300, 1500])
def test_the_violation_of_a_linear_machine_is_that_of_its_scores(n):
    X, y = overlapping(n=n)
    machine = quiet(OneVsRestSVC(kernel="linear", bias=None, stop="violation", tol=1e-3), X, y)
    assert held_violation(machine, X, y) <= 1e-3 * (1 + 1e-6)
    by_gap = quiet(OneVsRestSVC(kernel="linear", bias=None, stop="gap", tol=1e-3), X, y)
    assert held_violation(by_gap, X, y) > 1e-3


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("bias", ["free", "regularized", None])
@pytest.mark.parametrize("Machine", LINEAR)
@pytest.mark.parametrize("stop", ["violation", "gap"])
def test_linear_machines_have_both_rules(Machine, bias, container, stop):
    X, y = random_classes(3, n=60)
    solver = {"solver": "sequential-dual"}
    machine = quiet(Machine(kernel="linear", bias=bias, stop=stop, tol=1e-4, **solver), CONTAINERS[container](X), y)
    best = linear_optimum(machine, X, y)
    assert machine.converged_
    assert machine.duality_gap_ <= 1e-4
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=2e-4)
    assert worth(machine, X, y).primal == pytest.approx(machine.primal_objective_, rel=1e-6)


@pytest.mark.parametrize("solver", ["decomposition", "sequential-dual", "auto"])
@pytest.mark.parametrize("n", [900, 1100])
@pytest.mark.parametrize("Machine", LINEAR)
def test_a_linear_machine_goes_by_its_gap_below_and_above_1024_rows(Machine, n, solver):
    X, y = overlapping(n=n, n_features=8, n_classes=3)
    default, named = (quiet(Machine(kernel="linear", solver=solver, **rule), X, y) for rule in ({}, {"stop": "gap"}))
    assert default.duality_gap_ <= 1e-3
    np.testing.assert_array_equal(default.dual_coef_, named.dual_coef_)


def test_what_never_reaches_its_limits_has_no_violation():
    X, y = random_classes(3)
    machine = CrammerSingerSVC(kernel="linear", solver="exponentiated-gradient", stop="violation")
    with pytest.raises(ValueError, match=r"exponentiated-gradient.*no stop='violation'"):
        machine.fit(X, y)
    quiet(machine.set_params(stop="gap"), X, y)


SUMS = {
    "program": lambda **rule: LinearProgramSVC(C=10.0, **rule),
    "softmax": lambda **rule: SoftmaxSVC(C=10.0, **rule),
    "planes": lambda **rule: WestonWatkinsSVC(C=0.1, kernel="linear", solver="cutting-plane", **rule),
}


@pytest.mark.parametrize("make", SUMS)
def test_machines_of_sums_have_a_mean_violation(make):
    X, y = overlapping(n=1100, n_features=8, n_classes=3)
    machine = SUMS[make](stop="violation", tol=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    assert machine.converged_
    assert machine.primal_objective_ - machine.dual_objective_ <= 0.3 * machine.C * len(y)
    exact = quiet(SUMS[make](stop="gap", tol=1e-3), X, y)
    assert exact.duality_gap_ <= 1e-3
    # the interior point method of the program leaves no more than a millionth in any case
    assert machine.duality_gap_ > exact.duality_gap_ or make == "program"


def test_an_open_gap_of_a_mean_violation_is_told():
    X, y = overlapping(n=1100, n_features=8, n_classes=3)
    with pytest.warns(ConvergenceWarning, match='smaller tol, or stop="gap"'):
        machine = SUMS["planes"](stop="violation", tol=0.3).fit(X, y)  # others go far beyond such a tolerance
    assert machine.converged_
    assert machine.duality_gap_ > 1e-2


@pytest.mark.parametrize(("Machine", "C"), [(LinearProgramSVC, 100.0), (SoftmaxSVC, 1.0)])
def test_a_violation_that_leaves_the_gap_open_is_told(Machine, C):
    X, y = touching(1100)
    with pytest.warns(ConvergenceWarning, match="may be far from the optimum") as caught:
        machine = Machine(C=C, stop="violation", tol=1.0).fit(X, y)
    message = str(caught[0].message)
    assert len(caught) == 1
    assert machine.converged_
    assert machine.duality_gap_ > 1e-2
    assert f"relative gap {machine.duality_gap_:.3g}" in message
    assert "smaller tol" in message
    assert 'stop="gap"' in message
    for way_out in ({"stop": "violation", "tol": 1e-6}, {"stop": "gap", "tol": 1e-3}):
        assert quiet(Machine(C=C, **way_out), X, y).duality_gap_ <= 1e-2


@pytest.mark.parametrize("Machine", [LinearProgramSVC, SoftmaxSVC])
def test_a_gap_that_was_set_to_more_is_not_told(Machine):
    X, y = touching(1100)
    assert quiet(Machine(C=100.0, stop="gap", tol=0.3), X, y).duality_gap_ > 1e-2


@pytest.mark.parametrize(("C", "colour"), [(1.0, "32"), (1e4, "31")])
def test_certify_shows_the_gap_in_a_colour_that_fits(C, colour):
    X, y = touching()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = OneVsRestSVC(C=C, gamma=1.0, tol=1e-4 if C == 1 else 0.5, **DEAR_ROWS)
        proof = certify(machine.fit(X, y), X, y)
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=200)
    console.print(proof)
    printed = console.file.getvalue()
    assert f"{colour}mduality_gap={proof.duality_gap!r}" in printed
    assert re.sub(r"\x1b\[[0-9;]*m", "", printed) == f"{proof!r}\n"


def test_whoever_sets_the_gap_to_more_knows():
    X, y = overlapping(n=1500)
    machine = quiet(CrammerSingerSVC(kernel="linear", solver="sequential-dual", tol=0.3), X, y)
    assert machine.duality_gap_ > 1e-2


def test_a_search_by_the_gap_finds_what_single_fits_find():
    X, y = touching(300)
    grid = {"C": [1.0, 1e4], "gamma": [0.1, 1.0]}
    search = KernelSearchCV(OneVsOneSVC(stop="gap", tol=1e-4), grid, cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody sees the gaps of candidates
        search.fit(X, y)
    assert search.best_estimator_.duality_gap_ <= 1e-4
    assert search.best_score_ == pytest.approx(search.cv_results_["mean_test_score"].max())


def test_candidates_with_open_gaps_are_searched_in_silence():
    X, y = touching(1600)
    search = KernelSearchCV(WestonWatkinsSVC(tol=0.05), {"C": [1e4], "gamma": [1.0]}, cv=2, refit=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        search.fit(X, y)
