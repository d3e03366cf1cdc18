"""One-against-one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from polymargin.decision import adag, dag, vote_scores, votes
from polymargin.machines._data import Matrix
from polymargin.machines._documentation import with_shared_documentation
from polymargin.machines._pairs import PairLayout, PairMachine, all_pairs
from polymargin.machines._solution import Floats, Ints


@with_shared_documentation
class OneVsOneSVC(PairMachine):
    r"""One-against-one: a binary support vector machine for each pair of classes.

    For classes i < j the machine solves Hsu & Lin (3) on the examples of the two classes, those of i being
    positive,

    .. math:: \min_{w, b, \xi} \tfrac12 \|w\|^2 + \sum_t C_t \xi_t
              \quad\text{s.t.}\quad y_t (w \cdot \phi(x_t) + b) \ge 1 - \xi_t,\; \xi_t \ge 0,

    in its dual, and stops when the optimality conditions (22) hold to within ``tol``. All pairs share one kernel
    engine: a row of kernel values against a class is computed once for all pairs that need it.

    Parameters
    ----------
    <C>
    decision : {"votes", "dag", "adag"}, default="votes"
        How the answers of the pairs become a class. ``"votes"``: most votes, a tie goes to the class that sorts
        first. ``"dag"``: ask (first, last) of the classes left and drop the loser, k - 1 questions. ``"adag"``:
        a knock-out tournament, first against last, second against second-last, and so on.
    <parameters>

    Attributes
    ----------
    <support>
    dual_coef_ : ndarray of shape (k - 1, n_SV)
        Signed coefficients, as in scikit-learn's ``SVC``: for a vector of class i, row j - 1 (for j > i) or j
        (for j < i) is its coefficient in the pair with class j.
    intercept_ : ndarray of shape (k (k - 1) / 2,)
        Intercepts of the pairs.
    coef_ : ndarray of shape (k (k - 1) / 2, n_features)
        Weights of the features, for the linear kernel.
    n_iter_ : ndarray of shape (k (k - 1) / 2,)
        Steps taken for each pair.
    primal_objective_ : float
        Primal objective, summed over the pairs.
    dual_objective_ : float
        Dual objective, summed over the pairs: maximised, so never larger than the primal.
    <outcome>

    References
    ----------
    <Hsu and Lin>

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import OneVsOneSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = OneVsOneSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.99
    >>> machine.converged_, machine.duality_gap_ < 1e-6
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairMachine._parameter_constraints,
        "decision": [StrOptions({"votes", "dag", "adag"})],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        decision: str = "votes",
        kernel: str | Callable[[Matrix, Matrix], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        cache_size: str | float = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        super().__init__(
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
        self.decision = decision

    def _layout(self, n_classes: int) -> PairLayout:
        return all_pairs(n_classes)

    # Deciding.

    def decision_function(self, X: Any) -> Floats:
        """Return a score for each class; the largest is the class that ``predict`` gives.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, k), or (n_samples,) for two classes
            The votes of each class plus its summed decision values squeezed into (-1/3, 1/3), which order classes
            with equally many votes; where that order contradicts ``predict``, the two scores change places. For two
            classes the decision value, positive for the second.
        """
        X = self._checked_queries(X)
        values = self._all_scores(X)
        n_classes = len(self.classes_)
        if n_classes == 2:
            return values[:, 0]
        return vote_scores(values, n_classes, self._decide_all(values))

    def _decide_all(self, values: Floats) -> Ints:
        """Decide from the values of all pairs."""
        n_classes = len(self.classes_)
        if self.decision == "votes":
            return votes(values, n_classes)
        eliminate = dag if self.decision == "dag" else adag
        return eliminate(lambda p, rows: values[rows, p], len(values), n_classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each example.

        With ``decision="dag"`` or ``"adag"`` only the machines on the path of an example are evaluated, all
        examples that ask the same machine together.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        X = self._checked_queries(X)
        n_classes = len(self.classes_)
        if n_classes == 2:
            return self.classes_[(self._all_scores(X)[:, 0] > 0).astype(np.intp)]
        in_core = self._kernel.kind in ("linear", "poly", "rbf", "sigmoid")
        if self.decision == "votes" or not in_core:
            return self.classes_[self._decide_all(self._all_scores(X))]
        eliminate = dag if self.decision == "dag" else adag
        return self.classes_[eliminate(self._path_answer(X), X.shape[0], n_classes)]

    def _path_answer(self, X: Matrix) -> Callable[[int, Ints], Floats]:
        """Return a function that evaluates one pair machine for some rows."""

        def answer(p: int, rows: Ints) -> Floats:
            members, coefficients = self._pair(p)
            out = np.full((len(rows), 1), self.intercept_[p])
            blocks = [((0, len(members)), [0])]
            vectors = self.support_vectors_[members]
            return self._add_scores(X, rows, coefficients[None, :], blocks, out, vectors)[:, 0]

        return answer
