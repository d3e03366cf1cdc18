"""The contenders: one small class each, with `prepare`, `fit` and `predict`; only the last two are timed.

Every import of a peer is inside its class, so that a peer that is not installed costs nothing and fails
alone.
"""

import logging
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from datasets import Dataset, Parameters
from numpy.typing import NDArray

PEER_CACHE_MB = 4000
GRAM_BUFFER_BYTES = 2**30


def polymargin_available() -> bool:
    """Whether our own machines can be imported; the scripts still run with the peers if they cannot."""
    try:
        from polymargin import OneVsOneSVC, OneVsRestSVC  # noqa: F401
    except ImportError:
        return False
    return True


def polymargin_one_vs_one(parameters: Parameters, threads: int, **options: Any) -> Any:
    """Our all-pairs machine."""
    from polymargin import OneVsOneSVC

    return OneVsOneSVC(C=parameters.C, gamma=parameters.gamma, n_jobs=threads, **options)


def polymargin_one_vs_rest(parameters: Parameters, threads: int, **options: Any) -> Any:
    """Our one-against-all machine."""
    from polymargin import OneVsRestSVC

    return OneVsRestSVC(C=parameters.C, gamma=parameters.gamma, n_jobs=threads, **options)


def polymargin_weston_watkins(parameters: Parameters, threads: int, **options: Any) -> Any:
    """Our Weston-Watkins machine; the bias is regularised, as in Hsu & Lin (9)."""
    from polymargin import WestonWatkinsSVC

    return WestonWatkinsSVC(C=parameters.C, gamma=parameters.gamma, n_jobs=threads, **options)


def polymargin_crammer_singer(parameters: Parameters, threads: int, **options: Any) -> Any:
    """Our Crammer-Singer machine; there is no bias, as in Hsu & Lin (16)."""
    from polymargin import CrammerSingerSVC

    return CrammerSingerSVC(C=parameters.C, gamma=parameters.gamma, n_jobs=threads, **options)


def scikit_learn_svc(parameters: Parameters, **options: Any) -> Any:
    """scikit-learn's SVC with a cache that is large enough not to matter."""
    from sklearn.svm import SVC

    return SVC(C=parameters.C, gamma=parameters.gamma, **{"cache_size": PEER_CACHE_MB, **options})


class Contender(ABC):
    """What the worker asks of a contender. `threads` is fixed for the life of the process."""

    dtype: type = np.float64
    predicts = True

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.data: Dataset | None = None
        self.model: Any = None

    def prepare(self, data: Dataset) -> None:
        """Convert the data as this contender likes it best, outside the clock."""
        self.data = data

    def forget_model(self) -> None:
        """Free the last model outside the clock."""
        self.model = None

    def release(self) -> None:
        """Free model and data while other data sets run; `prepare` comes first again."""
        kept = {"threads", "messages"}
        for name in set(vars(self)) - kept:
            setattr(self, name, None)

    @abstractmethod
    def fit(self) -> None:
        """Train; this is what is timed."""

    def predict(self) -> NDArray:
        """Labels of the test rows; this is what is timed."""
        raise TypeError(f"{type(self).__name__} does not predict: `predicts` says so")

    def check(self) -> None:  # noqa: B027 (most have nothing to check)
        """Raise if the last call did not run the code it claims to run."""

    def facts(self) -> dict[str, Any]:
        """Anything worth keeping beside the time."""
        names = ("fit_time_", "dual_objective_", "solver_used_")
        found = {name: getattr(self.model, name) for name in names if hasattr(self.model, name)}
        if hasattr(self.model, "support_"):
            found["n_support"] = len(self.model.support_)
        return found


class EstimatorContender(Contender):
    """A contender with scikit-learn's interface."""

    @abstractmethod
    def make(self) -> Any:
        """Build a fresh estimator for the data at hand."""

    def fit(self) -> None:
        self.model = self.make().fit(self.data.X_train, self.data.y_train)

    def predict(self) -> NDArray:
        return self.model.predict(self.data.X_test)


class Polymargin(EstimatorContender):
    """Ours: all pairs."""

    def make(self) -> Any:
        return polymargin_one_vs_one(self.data.source.one_vs_one, self.threads)


class PolymarginRest(EstimatorContender):
    """Ours: one against all."""

    predicts = False

    def make(self) -> Any:
        return polymargin_one_vs_rest(self.data.source.one_vs_rest, self.threads)


class PolymarginDag(EstimatorContender):
    """Ours: the machines of all pairs at the parameters that the papers chose for the DAG."""

    predicts = False

    def make(self) -> Any:
        source = self.data.source
        return polymargin_one_vs_one(source.dag or source.one_vs_one, self.threads, decision="dag")


class Together(EstimatorContender):
    """Ours: all classes in one problem. It says more about how it went than the others."""

    predicts = False

    def facts(self) -> dict[str, Any]:
        names = ("n_iter_", "duality_gap_", "converged_")
        return {**super().facts(), **{name: getattr(self.model, name) for name in names}}


class PolymarginWestonWatkins(Together):
    """Ours: Weston-Watkins."""

    def make(self) -> Any:
        return polymargin_weston_watkins(self.data.source.weston_watkins, self.threads)


class PolymarginCrammerSinger(Together):
    """Ours: Crammer-Singer."""

    def make(self) -> Any:
        return polymargin_crammer_singer(self.data.source.crammer_singer, self.threads)


class ScikitLearn(EstimatorContender):
    """scikit-learn's SVC; it has no threads."""

    def make(self) -> Any:
        return scikit_learn_svc(self.data.source.one_vs_one)


class ScikitLearnRest(EstimatorContender):
    """One against all around scikit-learn's SVC, one process per job; the processes are kept between fits."""

    predicts = False

    def make(self) -> Any:
        from sklearn.multiclass import OneVsRestClassifier

        return OneVsRestClassifier(scikit_learn_svc(self.data.source.one_vs_rest), n_jobs=self.threads)

    def fit(self) -> None:
        import joblib

        with joblib.parallel_config("loky", idle_worker_timeout=7200):
            super().fit()


class Probable(EstimatorContender):
    """A contender with probabilities; what they are worth is computed after the clock has stopped."""

    def predict(self) -> NDArray:
        return self.model.classes_[self.model.predict_proba(self.data.X_test).argmax(axis=1)]

    def facts(self) -> dict[str, Any]:
        from sklearn.metrics import log_loss

        return {**super().facts(), "log_loss": log_loss(self.data.y_test, self.model.predict_proba(self.data.X_test))}


class PolymarginCoupling(Probable):
    """Ours: all pairs with probabilities."""

    def make(self) -> Any:
        return polymargin_one_vs_one(self.data.source.one_vs_one, self.threads, decision="coupling")


class ScikitLearnCalibrated(Probable):
    """scikit-learn's calibration around its SVC, one process per job; the processes are kept between fits."""

    def make(self) -> Any:
        from sklearn.calibration import CalibratedClassifierCV

        return CalibratedClassifierCV(
            scikit_learn_svc(self.data.source.one_vs_one), ensemble=False, n_jobs=self.threads
        )

    def fit(self) -> None:
        import joblib

        with joblib.parallel_config("loky", idle_worker_timeout=7200):
            super().fit()


class Intelex(EstimatorContender):
    """scikit-learn-intelex. It falls back to scikit-learn in silence, so its log is read after every call."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import daal4py

        daal4py.daalinit(threads)
        self.messages: list[str] = []
        self.listen()

    def listen(self) -> None:
        """Collect what the package says about which implementation it runs."""
        handler = logging.Handler()
        handler.emit = lambda record: self.messages.append(record.getMessage())
        logger = logging.getLogger("sklearnex")
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO)

    def make(self) -> Any:
        from sklearnex.svm import SVC

        p = self.data.source.one_vs_one
        return SVC(C=p.C, gamma=p.gamma, cache_size=PEER_CACHE_MB, n_jobs=self.threads)

    def check(self) -> None:
        said, self.messages[:] = list(self.messages), []
        if len(said) == 0 or not all("running accelerated version" in message for message in said):
            raise RuntimeError(f"scikit-learn-intelex did not run its own code: {said}")

    def facts(self) -> dict[str, Any]:
        import daal4py

        return {**super().facts(), "dtype": str(self.data.X_train.dtype), "threads": daal4py.num_threads()}


class IntelexFloat32(Intelex):
    """The same in single precision."""

    dtype = np.float32


class LibSVM(Contender):
    """libsvm-official. Its Python wrapper converts rows slowly, so conversion is left outside the clock."""

    def prepare(self, data: Dataset) -> None:
        super().prepare(data)
        self.problem = self.convert(data.X_train, data.y_train)
        self.test = self.convert(data.X_test, data.y_test)

    def convert(self, X: NDArray, y: NDArray) -> Any:
        """LIBSVM's own row format; it recognises the older sparse class alone."""
        from libsvm.svmutil import svm_problem
        from scipy.sparse import csr_matrix

        return svm_problem(y, csr_matrix(X))

    def fit(self) -> None:
        from libsvm.svmutil import svm_train

        p = self.data.source.one_vs_one
        options = f"-s 0 -t 2 -c {p.C!r} -g {p.gamma!r} -e 0.001 -m {PEER_CACHE_MB} -q"
        self.model = svm_train(self.problem, options)

    def predict(self) -> NDArray:
        from libsvm.svm import libsvm

        rows = (self.test.x[i] for i in range(self.test.l))
        return np.fromiter((libsvm.svm_predict(self.model, row) for row in rows), float, self.test.l)

    def facts(self) -> dict[str, Any]:
        return {"n_support": self.model.get_nr_sv()}


class GramMatrix(Contender):
    """The yardstick: X X' in float32 by the BLAS that SciPy carries, and nothing else.

    The whole matrix, not half of it. A matrix over 1 GB is computed in row blocks into one buffer, so that
    the yardstick measures arithmetic and not the memory of the machine.
    """

    dtype = np.float32
    predicts = False

    def prepare(self, data: Dataset) -> None:
        super().prepare(data)
        n = len(data.X_train)
        self.block = min(n, max(1, GRAM_BUFFER_BYTES // (4 * n)))
        self.buffer = np.full((n, self.block), 1.0, dtype=np.float32, order="F")  # touches every page

    def fit(self) -> None:
        from scipy.linalg.blas import sgemm

        columns = self.data.X_train.T
        for start in range(0, columns.shape[1], self.block):
            block = columns[:, start : start + self.block]
            out = self.buffer[:, : block.shape[1]]
            sgemm(1.0, columns, block, trans_a=True, c=out, overwrite_c=True)

    def facts(self) -> dict[str, Any]:
        return {"block_rows": self.block}


ONE_VS_ONE: dict[str, type[Contender]] = {
    "polymargin": Polymargin,
    "scikit-learn": ScikitLearn,
    "intelex": Intelex,
    "intelex float32": IntelexFloat32,
    "libsvm": LibSVM,
    "gram": GramMatrix,
}
ONE_VS_REST: dict[str, type[Contender]] = {
    "polymargin one-vs-rest": PolymarginRest,
    "scikit-learn one-vs-rest": ScikitLearnRest,
}
TOGETHER: dict[str, type[Contender]] = {
    "weston-watkins": PolymarginWestonWatkins,
    "crammer-singer": PolymarginCrammerSinger,
}
DAG: dict[str, type[Contender]] = {"polymargin dag": PolymarginDag}
COUPLING: dict[str, type[Contender]] = {
    "polymargin coupling": PolymarginCoupling,
    "scikit-learn calibrated": ScikitLearnCalibrated,
}
ALL = ONE_VS_ONE | ONE_VS_REST | TOGETHER | DAG | COUPLING
UNTHREADED = {"scikit-learn"}
"""Contenders without threads: they run once and stand in every row."""
SLOW = {("mnist-60000", name) for name in ("scikit-learn", "libsvm", "scikit-learn one-vs-rest")}
"""Minutes for one fit or predict: only on request, and once."""
