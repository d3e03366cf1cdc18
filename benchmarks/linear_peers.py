"""The contenders of the linear race: one small class each; only `fit` is timed, at a precision of the contender's own.

There is no bias and C is 1 for everybody. What counts as precise differs from contender to contender, so each has a
ladder of its own settings, and the race compares what objective they lead to.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from linear_data import LinearData
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

C = 1.0
EPSILONS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
"""LIBLINEAR's -e and those who stop by the same rule, the largest violation."""
MANY = 100_000
"""Iterations: precision or the budget ends a run, not the peer's default."""
PRODUCTS = 5


class LinearContender(ABC):
    """What the worker asks of a contender. Machine and threads are fixed for the life of the process."""

    ladder: tuple[float | str, ...] = EPSILONS
    quick: tuple[float | str, ...] = (0.03, 0.001)
    threaded = False

    def __init__(self, machine: str, threads: int) -> None:
        self.machine, self.threads = machine, threads
        self.data: LinearData | None = None
        self.rows: Any = None
        self.model: Any = None

    def prepare(self, data: LinearData) -> None:
        """Convert the data as this contender likes it best, outside the clock."""
        self.data, self.rows = data, data.X_train

    def release(self) -> None:
        """Free model and data while others run; `prepare` comes first again."""
        self.data = self.rows = self.model = None

    def forget_model(self) -> None:
        """Free the last model outside the clock."""
        self.model = None

    @abstractmethod
    def fit(self, precision: Any) -> None:
        """Train; this is what is timed."""

    def weights(self) -> NDArray | None:
        """Classes x features, classes in order; None of those who fit nothing."""
        return self.model.coef_

    def facts(self) -> dict[str, Any]:
        """Anything worth keeping beside the time."""
        return {}


def polymargin(machine: str, tol: float, threads: int, **options: Any) -> Any:
    """Ours, all by the sequential dual method; `tol` is the relative duality gap."""
    import polymargin

    classes = {
        "crammer-singer": ("CrammerSingerSVC", {}),
        "weston-watkins": ("WestonWatkinsSVC", {"margin": 1.0}),
        "one-vs-rest": ("OneVsRestSVC", {}),
    }
    name, special = classes[machine]
    common = {"kernel": "linear", "bias": None, "solver": "sequential-dual", "tol": tol, "n_jobs": threads}
    return getattr(polymargin, name)(C=C, **common, **special, **options)


def account(model: Any) -> dict[str, Any]:
    """What our machines say of a fit; visits are those of one class where every class has a problem of its own."""
    names = ("primal_objective_", "dual_objective_", "duality_gap_", "stop_reason_", "fit_time_")
    said = {name: getattr(model, name) for name in names if hasattr(model, name)}
    return {**said, "visits": float(np.mean(model.n_iter_))}


def weights_without_bias(model: Any) -> NDArray:
    """Our weights; an intercept would be another problem than the peers'."""
    if np.any(model.intercept_):
        raise RuntimeError("there is an intercept in a machine without bias")
    return model.coef_


class LinearEstimator(LinearContender):
    """A contender with scikit-learn's interface."""

    def fit(self, precision: float) -> None:
        self.model = self.make(precision).fit(self.rows, self.data.y_train)

    @abstractmethod
    def make(self, precision: float) -> Any:
        """Build a fresh estimator."""


class Polymargin(LinearEstimator):
    """Ours. The last rungs are there so that the optimum is known better than the finest level of the race."""

    ladder = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5)
    quick = (1e-3, 1e-4)
    threaded = True

    def make(self, precision: float) -> Any:
        return polymargin(self.machine, precision, self.threads)

    def weights(self) -> NDArray:
        return weights_without_bias(self.model)

    def facts(self) -> dict[str, Any]:
        return account(self.model)


class Liblinear(LinearContender):
    """liblinear-official: -s 4 or -s 3. The conversion to its rows is left outside the clock."""

    def prepare(self, data: LinearData) -> None:
        from liblinear.liblinear import problem

        super().prepare(data)
        self.rows = problem(data.y_train, csr_matrix(data.X_train), -1)

    def fit(self, precision: float) -> None:
        from liblinear.liblinearutil import train

        solver = {"crammer-singer": 4, "one-vs-rest": 3}[self.machine]
        self.model = train(self.rows, f"-s {solver} -c {C!r} -e {precision!r} -B -1 -q")

    def weights(self) -> NDArray:
        shape = (self.model.get_nr_feature(), self.model.get_nr_class())
        columns = np.ctypeslib.as_array(self.model.w, shape)
        return columns[:, np.argsort(self.model.get_labels())].T


class ScikitLearn(LinearEstimator):
    """scikit-learn's copy of LIBLINEAR; it converts the rows inside `fit`, so that is in its time."""

    def make(self, precision: float) -> Any:
        from sklearn.svm import LinearSVC

        options = {"fit_intercept": False, "max_iter": MANY, "random_state": 0}
        return LinearSVC(C=C, multi_class="crammer_singer", tol=precision, **options)


class Snapml(LinearEstimator):
    """Snap ML; it computes in float32, so it gets that."""

    ladder = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5)
    quick = (1e-2, 1e-3)
    threaded = True

    def prepare(self, data: LinearData) -> None:
        super().prepare(data)
        self.rows = data.X_train.astype(np.float32)

    def make(self, precision: float) -> Any:
        from snapml import SupportVectorMachine

        return SupportVectorMachine(
            regularizer=1 / C, tol=precision, n_jobs=self.threads, max_iter=MANY, random_state=0
        )


class Lightning(LinearEstimator):
    """sklearn-contrib-lightning's dual coordinate descent, which has no bias."""

    def make(self, precision: float) -> Any:
        from lightning.classification import LinearSVC

        return LinearSVC(C=C, loss="hinge", tol=precision, max_iter=MANY, random_state=0)


class Product(LinearContender):
    """The yardstick: the scores of all rows, X times features x classes, by SciPy or its BLAS."""

    ladder = quick = ("float64", "float32")
    threaded = True

    def prepare(self, data: LinearData) -> None:
        super().prepare(data)
        columns = np.random.default_rng(0).standard_normal((data.X_train.shape[1], data.n_classes))
        self.factors = {kind: (data.X_train.astype(kind), columns.astype(kind)) for kind in self.ladder}

    def release(self) -> None:
        super().release()
        self.factors = {}

    def fit(self, precision: str) -> None:
        X, columns = self.factors[precision]
        for _ in range(PRODUCTS):
            X @ columns

    def weights(self) -> None:
        return None

    def facts(self) -> dict[str, Any]:
        return {"products": PRODUCTS, "sparse": issparse(self.data.X_train)}


YARDSTICK = "yardstick"
MACHINES: dict[str, dict[str, type[LinearContender]]] = {
    "crammer-singer": {"polymargin": Polymargin, "liblinear": Liblinear, "scikit-learn": ScikitLearn},
    "weston-watkins": {"polymargin": Polymargin},
    "one-vs-rest": {"polymargin": Polymargin, "liblinear": Liblinear, "snapml": Snapml, "lightning": Lightning},
}
ALL = MACHINES | {YARDSTICK: {"product": Product}}
PACKAGES = ("liblinear-official", "snapml", "sklearn-contrib-lightning")
"""Whose versions the pages name beside those of all benchmarks."""
