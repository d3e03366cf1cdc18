"""The feature maps as scikit-learn transformers."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from polymargin.documentation import with_shared_documentation
from polymargin.features.basis import Basis, Examples, chosen_points, incomplete_cholesky, kernel_pca, projected, subset
from polymargin.kernels import KERNEL_CONSTRAINTS, Kernel, KernelParameter, is_precomputed
from polymargin.support.blocks import RowBlocks, row_blocks
from polymargin.support.examples import checked_examples
from polymargin.support.numeric import Ints, Matrix
from polymargin.support.state import unchanged_on_error
from polymargin.support.threads import thread_count
from polymargin.support.typing import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    Gamma,
    TransformerMixin,
)


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Coordinates of examples in an orthonormal basis of the span of some of them, in the space of a kernel.

    A subclass makes the basis (:meth:`_basis`).
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        **KERNEL_CONSTRAINTS,
        "n_jobs": [Integral, None],
    }

    indices_: Ints
    points_: Matrix
    coefficients_: NDArray[np.float64]
    _kernel: Kernel

    def __init__(
        self,
        rank: int | None = None,
        *,
        kernel: KernelParameter = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self.rank = rank
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = is_precomputed(self.kernel)
        tags.input_tags.sparse = not precomputed
        tags.input_tags.pairwise = precomputed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @abstractmethod
    def _basis(self, examples: Examples, blocks: RowBlocks) -> tuple[Basis, NDArray[Any]]:
        """Return the basis, and the features of the examples."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the basis.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; with ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : Ignored
            Not used; there because scikit-learn's pipelines pass it.

        Returns
        -------
        self : object
            The fitted transformer. If the fit is interrupted or fails, it is as it was before.
        """
        self._fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[Any]:
        """Choose the basis and return the features of the same examples, which are then computed only once.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; with ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : Ignored
            Not used.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Features, float32 if X is.
        """
        return self._fit_transform(X)

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_transform(self, X: Any) -> NDArray[Any]:
        with unchanged_on_error(self):
            X = checked_examples(self, X, reset=True)
            kernel = Kernel.resolved(self.kernel, self.gamma, self.coef0, self.degree, X, None)
            kernel.check_training(X)
            examples = Examples(X, np.arange(X.shape[0]), kernel, thread_count(self.n_jobs), _float_type(X))
            with row_blocks(self.n_jobs) as blocks:
                basis, features = self._basis(examples, blocks)
            self._kernel = kernel
            self.indices_ = basis.points
            self.points_ = np.empty((0, 0)) if kernel.precomputed else X[basis.points]
            self.coefficients_ = basis.coefficients
            self._n_features_out = basis.coefficients.shape[1]
        return features.astype(_float_type(X), copy=False)

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the features of examples: their coordinates in the basis.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; for a precomputed kernel their kernel values with the training examples, of which only the columns
            ``indices_`` are read.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Features, float32 if X is.
        """
        check_is_fitted(self)
        X = checked_examples(self, X, reset=False, finite=not self._kernel.precomputed)
        rows = np.arange(X.shape[0])
        values = self._kernel.matrix(X, rows, self.points_, self.indices_, thread_count(self.n_jobs), _float_type(X))
        with row_blocks(self.n_jobs) as blocks:
            return projected(values, self.coefficients_, blocks)


def _float_type(X: Matrix) -> Any:
    """Return the type of the features of some examples: theirs, if they are numbers."""
    return np.float64 if X.dtype == object else X.dtype


@with_shared_documentation
class KernelPCAFeatures(KernelFeatures):
    r"""Kernel principal components, not centred: features whose scalar products are the Gram matrix.

    With the eigenvalues of the Gram matrix, :math:`K = V \Lambda V'`, the basis is :math:`A = V \Lambda^{-1/2}` and the
    training examples have the features :math:`V \Lambda^{1/2}`. Negative eigenvalues, of a kernel that is not positive
    semi-definite, are left out, and so are those that are rounding. The time grows with the cube and the memory with
    the square of the number of examples; for many take :class:`SubsetFeatures` or :class:`CholeskyFeatures`.

    Parameters
    ----------
    rank : int or None, default=None
        At most so many features, those of the largest eigenvalues; None for all.
    <kernel>
    <threads>

    Attributes
    ----------
    <basis>

    References
    ----------
    <Zien>

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from polymargin.features import KernelPCAFeatures
    >>> X, _ = load_iris(return_X_y=True)
    >>> Z = KernelPCAFeatures(gamma=0.5).fit_transform(X)
    >>> np.allclose(Z @ Z.T, rbf_kernel(X, gamma=0.5))
    True
    """

    def _basis(self, examples: Examples, blocks: RowBlocks) -> tuple[Basis, NDArray[Any]]:
        return kernel_pca(examples, self.rank)


@with_shared_documentation
class SubsetFeatures(KernelFeatures):
    r"""Kernel principal components of some of the examples, and the projections of all others onto them.

    Zien et al.'s approximation by fewer points, known as Nystroem's method: for chosen points with the Gram matrix
    :math:`V \Lambda V'` the basis is :math:`A = V \Lambda^{-1/2}`, and all examples have the features
    :math:`K(X, \text{points})\, A`. The memory is that of the features.

    Parameters
    ----------
    rank : int or None, default=None
        So many points; None for all. There are fewer features where points depend on each other.
    choice : {"random", "first"}, default="random"
        Which points.
    <kernel>
    <threads>
    random_state : int, RandomState instance or None, default=None
        Chooses the points; None is always the same choice.

    Attributes
    ----------
    <basis>

    References
    ----------
    <Zien>

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from polymargin import CrammerSingerSVC
    >>> from polymargin.features import SubsetFeatures
    >>> X, y = load_digits(return_X_y=True)
    >>> machine = make_pipeline(SubsetFeatures(100), CrammerSingerSVC(kernel="linear")).fit(X, y)
    >>> machine.score(X, y) > 0.97
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelFeatures._parameter_constraints,
        "choice": [StrOptions({"random", "first"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        rank: int | None = None,
        *,
        choice: str = "random",
        kernel: KernelParameter = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(rank, kernel=kernel, degree=degree, gamma=gamma, coef0=coef0, n_jobs=n_jobs)
        self.choice = choice
        self.random_state = random_state

    def _basis(self, examples: Examples, blocks: RowBlocks) -> tuple[Basis, NDArray[Any]]:
        return subset(examples, chosen_points(len(examples), self.rank, self.choice, self.random_state), blocks)


@with_shared_documentation
class CholeskyFeatures(KernelFeatures):
    r"""Incomplete Cholesky factorisation with pivoting: features in a basis that grows where it is worst.

    The Gram matrix is approached by :math:`L L'`, L having ``rank`` columns, of which the next one always belongs to an
    example that the ones before represent badly: its residual :math:`K_{ii} - |L_i|^2` is at least half the largest.
    The rows of L are the features of the examples. Only the pivots' kernel values are computed, and the memory is
    that of the features.

    Parameters
    ----------
    rank : int or None, default=None
        At most so many features; None goes on until the residuals are rounding.
    <kernel>
    <threads>

    Attributes
    ----------
    <basis>

    References
    ----------
    S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations", Journal of Machine Learning
    Research 2, 2001.

    <Zien>

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from polymargin.features import CholeskyFeatures
    >>> X, _ = load_iris(return_X_y=True)
    >>> K = rbf_kernel(X, gamma=0.5)
    >>> for rank in (5, 20, 80):
    ...     Z = CholeskyFeatures(rank, gamma=0.5).fit_transform(X)
    ...     print(rank, f"{abs(K - Z @ Z.T).max():.0e}")
    5 9e-01
    20 2e-01
    80 1e-03
    """

    def _basis(self, examples: Examples, blocks: RowBlocks) -> tuple[Basis, NDArray[Any]]:
        return incomplete_cholesky(examples, self.rank, blocks)
