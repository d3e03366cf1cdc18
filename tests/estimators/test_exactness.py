"""When answers are exact to rounding: where somebody asks for it, and where it is cheap."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from polymargin import OneVsOneSVC, OneVsRestSVC

EXACT = 1e-10
MACHINES = pytest.mark.parametrize("Machine", [OneVsOneSVC, OneVsRestSVC])


def digits(n=400):
    X, y = load_digits(return_X_y=True)
    return X[:n], y[:n]


@MACHINES
def test_a_few_examples_are_solved_to_rounding(Machine):
    machine = Machine().fit(*load_iris(return_X_y=True))
    assert machine.duality_gap_ < EXACT


@MACHINES
def test_a_small_tolerance_asks_for_exact_answers(Machine):
    X, y = digits()
    rough, exact = Machine().fit(X, y), Machine(tol=1e-5).fit(X, y)
    assert EXACT < rough.duality_gap_ < 1e-2
    assert exact.duality_gap_ < EXACT


@MACHINES
def test_weights_that_differ_ask_for_exact_answers(Machine):
    X, y = digits()
    assert Machine().fit(X, y, sample_weight=np.full(len(y), 2.0)).duality_gap_ > EXACT
    assert Machine().fit(X, y, sample_weight=np.arange(len(y)) % 3 + 1.0).duality_gap_ < EXACT


def test_probabilities_ask_for_exact_answers():
    assert OneVsOneSVC(decision="coupling").fit(*digits(200)).duality_gap_ < EXACT
