"""Pictures of classifiers in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

# The colours of Okabe and Ito, which people with any of the common colour deficiencies tell apart, without black.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#444444")
SHADES = (0.0, 0.45, -0.4)  # once all colours are used: lighter, then darker
MARKERS = ("o", "s", "^", "D", "v", "P", "p", "<", "h", ">", "d")  # 11: with 24 colours, 264 pairs before one repeats
PALE = 0.62  # how much of the colour of a region is white
_SMOOTHING = 0.7  # of the boundaries, in cells of the grid


def decision_regions(
    model: Any,
    X: Any,
    y: Any,
    *,
    ax: Any = None,
    resolution: int = 300,
    feature_names: Any = None,
    support: bool = True,
    legend: bool = True,
) -> Any:
    """Draw the regions of a classifier in the plane, with the data, its support vectors and its errors.

    The picture is that of Weston & Watkins (1998), Figure 1: every class has a colour and a shape, support vectors are
    ringed and errors crossed. The colours are told apart with the common colour deficiencies; beyond eight classes
    they come lighter and darker, and the shapes help.

    Parameters
    ----------
    model : fitted classifier with ``predict``
        A machine of this package, any other classifier, or a pipeline.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, 2)
        Examples; the training examples if support vectors are to be ringed.
    y : array-like of shape (n_samples,)
        Their classes.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.
    resolution : int, default=300
        Points of the grid along each axis. All of them are predicted in one call.
    feature_names : sequence of two str, default=None
        Labels of the axes; None takes the names of a data frame's columns.
    support : bool, default=True
        Whether to ring the support vectors, where the model (or the last step of a pipeline) has ``support_``.
    legend : bool, default=True
        Whether to say, beside the picture, which class is which.

    Returns
    -------
    matplotlib Axes
        What was drawn on.

    References
    ----------
    J. Weston, C. Watkins, "Multi-class support vector machines", Royal Holloway technical report CSD-TR-98-04, 1998.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import WestonWatkinsSVC
    >>> from polymargin.plots import decision_regions
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = WestonWatkinsSVC().fit(X[:, 2:], y)
    >>> ax = decision_regions(machine, X[:, 2:], y, feature_names=["petal length", "petal width"])
    >>> ax.get_xlabel()
    'petal length'
    """
    plt = _pyplot()
    points, names = _checked_points(X, feature_names)
    y = np.asarray(y)
    if y.shape != (len(points),):
        raise ValueError(f"y must have one label for each of the {len(points)} rows of X, got shape {y.shape}")
    if resolution < 2:
        raise ValueError(f"resolution must be 2 or more, got {resolution}")
    rings = _support(model, points) if support else None
    across, up = (np.linspace(*_limits(column), int(resolution)) for column in points.T)
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(across, up)])
    regions = np.asarray(model.predict(_like(X, grid)))
    predicted = np.asarray(model.predict(X))
    classes, (regions, codes, predicted) = _codes(getattr(model, "classes_", None), regions, y, predicted)
    if ax is None:
        ax = plt.figure(layout="constrained").subplots()
    colors = _colors(len(classes))
    _draw_regions(ax, across, up, regions.reshape(len(up), len(across)), colors)
    _draw_points(ax, points, codes, classes, colors)
    _draw_marks(ax, points, rings, predicted != codes)
    ax.set(xlim=across[[0, -1]], ylim=up[[0, -1]], xlabel=names[0], ylabel=names[1])
    if legend:
        _draw_legend(ax)
    return ax


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: install it with pip install 'polymargin[plots]'") from error
    return plt


# What is drawn.


def _checked_points(X: Any, feature_names: Any) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """Return the examples as an array of two columns, and the names of the axes."""
    points = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"decision_regions draws a plane: X must have two features, got shape {points.shape}; choose two columns, "
            "or project them, for example with PCA(n_components=2), and fit on those"
        )
    if len(points) == 0 or not np.all(np.isfinite(points)):
        raise ValueError("X must have rows, and every value must be finite")
    if feature_names is None:
        feature_names = getattr(X, "columns", ("", ""))
    if len(feature_names) != 2:
        raise ValueError(f"feature_names must be two names, got {list(feature_names)}")
    return points, (str(feature_names[0]), str(feature_names[1]))


def _like(X: Any, grid: NDArray[np.float64]) -> Any:
    """Return the grid in the form of X, so that the model sees what it was fitted on."""
    if hasattr(X, "columns"):
        return type(X)(dict(zip(X.columns, grid.T, strict=True)))
    if getattr(X, "dtype", None) == np.float32:
        grid = grid.astype(np.float32)
    return sp.csr_array(grid) if sp.issparse(X) else grid


def _support(model: Any, points: NDArray[np.float64]) -> Any:
    """Return the rows that are support vectors, None where the model does not tell."""
    last = model[-1] if hasattr(model, "named_steps") else model
    rows = getattr(last, "support_", None)
    if rows is None:
        return None
    vectors = getattr(last, "support_vectors_", None) if last is model else None
    fits = np.max(rows, initial=0) < len(points)
    if fits and vectors is not None and vectors.shape == (len(rows), 2):
        vectors = vectors.toarray() if sp.issparse(vectors) else vectors
        fits = np.allclose(vectors, points[rows])
    if not fits:
        raise ValueError(
            "X is not what the model was fitted on, so its support vectors are none of the rows; use support=False"
        )
    return rows


def _limits(column: NDArray[np.float64]) -> tuple[float, float]:
    low, high = float(column.min()), float(column.max())
    padding = 0.07 * (high - low) or 1.0
    return low - padding, high + padding


def _codes(known: Any, *labels: NDArray[Any]) -> tuple[list[Any], list[NDArray[np.int64]]]:
    """Return all classes, those that the model knows first, and the number of the class of each label."""
    classes = {label: code for code, label in enumerate([] if known is None else np.asarray(known).tolist())}
    codes = []
    for array in labels:
        found, inverse = np.unique(array, return_inverse=True)
        codes.append(np.array([classes.setdefault(label, len(classes)) for label in found.tolist()])[inverse])
    return list(classes), codes


def _colors(count: int) -> NDArray[np.float64]:
    """Return a colour for each class, as red, green and blue."""
    base = np.array([[int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] for color in COLORS])
    numbers = np.arange(count)
    shade = np.array(SHADES)[numbers // len(COLORS) % len(SHADES), None]
    return _mixed(base[numbers % len(COLORS)], shade)


def _mixed(colors: NDArray[np.float64], shade: Any) -> NDArray[np.float64]:
    """Mix colours with white (shade above 0) or black (below)."""
    mixed: NDArray[np.float64] = colors + np.abs(shade) * ((np.asarray(shade) > 0) - colors)
    return mixed


# Drawing it.


def _draw_regions(ax: Any, across: Any, up: Any, regions: NDArray[np.int64], colors: NDArray[np.float64]) -> None:
    """Fill the regions with pale colours and draw their boundaries."""
    half = (across[1] - across[0]) / 2, (up[1] - up[0]) / 2
    extent = (across[0] - half[0], across[-1] + half[0], up[0] - half[1], up[-1] + half[1])
    ax.imshow(_mixed(colors, PALE)[regions], extent=extent, origin="lower", aspect="auto", interpolation="nearest")
    for code in np.unique(regions)[1:] if len(np.unique(regions)) == 2 else np.unique(regions):
        inside = gaussian_filter((regions == code).astype(float), _SMOOTHING, mode="nearest")
        if inside.min() < 0.5 < inside.max():
            ax.contour(across, up, inside, levels=[0.5], colors="#333333", linewidths=0.8)


def _draw_points(
    ax: Any, points: NDArray[np.float64], codes: NDArray[np.int64], classes: list[Any], colors: NDArray[np.float64]
) -> None:
    size = _size(len(points))
    for code in np.unique(codes):
        style = {"color": colors[code], "marker": MARKERS[code % len(MARKERS)], "s": size, "label": str(classes[code])}
        ax.scatter(*points[codes == code].T, edgecolors="#222222", linewidths=0.5, zorder=3, **style)


def _draw_marks(ax: Any, points: NDArray[np.float64], rings: Any, wrong: NDArray[np.bool_]) -> None:
    """Ring support vectors, and put crosses behind errors, so that their class is still seen."""
    size = _size(len(points))
    if rings is not None:
        style = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.1, "label": "support vector"}
        ax.scatter(*points[rings].T, s=3.2 * size, zorder=4, **style)
    if wrong.any():
        style = {"marker": "x", "color": "black", "linewidths": 1.8, "label": "error"}
        ax.scatter(*points[wrong].T, s=6.5 * size, zorder=2.5, **style)


def _size(count: int) -> float:
    """Return the area of a point: small when there are many."""
    return float(np.clip(9000 / max(count, 1), 8, 40))


def _draw_legend(ax: Any) -> None:
    entries = len(ax.get_legend_handles_labels()[1])
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, ncols=1 + entries // 20)
