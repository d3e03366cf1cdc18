"""scikit-learn's common checks of estimators, for our classes in 61 parameterisations.

The file is no test by its name: it runs as a suite, tests/test_common.py with fewer parameterisations as a test.
"""

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

from foreign.usage import Usage
from polymargin import (
    CrammerSingerSVC,
    LinearProgramSVC,
    OneVsOneSVC,
    OneVsRestSVC,
    SoftmaxSVC,
    UncertaintySVC,
    WestonWatkinsSVC,
)
from polymargin.features import CholeskyFeatures, KernelPCAFeatures, SubsetFeatures


class InnerProducts:
    """A kernel that can be pickled, and has the same name in every process."""

    def __call__(self, A, B):
        return A @ B.T

    def __repr__(self):
        return "inner_products"


# Without a kernel matrix answers are as exact as tol, relative to the objective; the checks compare to seven digits.
EXACT = {"kernel": "linear", "tol": 1e-8}

ESTIMATORS = [
    *(
        OneVsOneSVC(decision=decision, kernel=kernel)
        for decision in ("votes", "dag", "adag", "coupling")
        for kernel in ("rbf", "linear", "poly", "precomputed")
    ),
    OneVsOneSVC(kernel="sigmoid"),
    OneVsOneSVC(kernel=InnerProducts()),
    *(OneVsRestSVC(kernel=kernel) for kernel in ("rbf", "linear", "poly", "sigmoid", "precomputed")),
    *(OneVsRestSVC(solver="sequential-dual", bias=bias, **EXACT) for bias in ("free", "regularized", None)),
    *(
        Machine(bias=bias, kernel=kernel)
        for Machine in (WestonWatkinsSVC, CrammerSingerSVC)
        for bias in ("regularized", "free", None)
        for kernel in ("rbf", "linear")
    ),
    WestonWatkinsSVC(kernel="precomputed"),
    WestonWatkinsSVC(margin=1.0, bias="free", kernel="poly"),
    WestonWatkinsSVC(solver="sequential-dual", **EXACT),
    WestonWatkinsSVC(kernel="linear", solver="cutting-plane"),
    CrammerSingerSVC(kernel="precomputed"),
    CrammerSingerSVC(solver="sequential-dual", **EXACT),
    CrammerSingerSVC(kernel="linear", solver="exponentiated-gradient"),
    CrammerSingerSVC(kernel="linear", solver="cutting-plane"),
    *(LinearProgramSVC(kernel=kernel) for kernel in ("rbf", "linear", "precomputed")),
    UncertaintySVC(),
    UncertaintySVC(answers="margins"),
    UncertaintySVC(kernel="linear"),
    UncertaintySVC(kernel="precomputed"),
    SoftmaxSVC(),
    SoftmaxSVC(aggregation=np.inf, basis="cholesky", bias="regularized"),
    SoftmaxSVC(strategy="one-vs-rest", basis="subset", rank=50),
    SoftmaxSVC(kernel="linear", bias=None),
    SoftmaxSVC(kernel="precomputed"),
    KernelPCAFeatures(),
    SubsetFeatures(rank=10),
    CholeskyFeatures(rank=10),
]


@parametrize_with_checks(ESTIMATORS)
def test_common(estimator, check):
    """Every check is about our class."""
    Usage.seen = True
    check(estimator)
