"""What is asked of a comparison: checked, and made into a grid and divisions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, check_cv

from polymargin.estimators import OneVsOneSVC
from polymargin.kernels import names_of_functions
from polymargin.selection import hsu_lin_grid
from polymargin.support.examples import Matrix, checked_examples

SCALINGS = ("range", "standard")
GRIDS = ("coarse", "hsu-lin")

Split = tuple[NDArray[np.int64], NDArray[np.int64]]


def check_choices(
    kernel: str, scaling: str | None, level: float, holdout: float | None, time_limit: float | None
) -> None:
    """Raise ValueError, naming what would be right, for a choice that there is not."""
    if kernel not in names_of_functions():
        raise ValueError(f"kernel must be one of {', '.join(names_of_functions())}, got {kernel!r}")
    if scaling is not None and scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, or None, got {scaling!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    if holdout is not None and not 0 < holdout < 1:
        raise ValueError(f"holdout must lie between 0 and 1, or be None, got {holdout}")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive, or None, got {time_limit}")


def chosen_grid(grid: Any) -> dict[str, list[Any]]:
    """Return the values of each parameter, from a dictionary or the name of a grid."""
    if isinstance(grid, Mapping):
        values = {str(name): list(values) for name, values in grid.items()}
        empty = [name for name in values if not values[name]]
        if empty:
            raise ValueError(f"grid has no value for {', '.join(empty)}")
        return values
    full = hsu_lin_grid()
    if grid is None or grid == "coarse":
        return {name: values[::2] for name, values in full.items()}
    if grid == "hsu-lin":
        return {name: list(values) for name, values in full.items()}
    raise ValueError(f"grid must be one of {', '.join(GRIDS)}, or a dictionary of lists, got {grid!r}")


def check_names(grid: Any, machines: Iterable[Any]) -> None:
    """Raise ValueError if a dictionary has a parameter that nobody has: none of these, nor a kernel machine."""
    if not isinstance(grid, Mapping):
        return
    known = {name for machine in (OneVsOneSVC(), *machines) for name in machine.get_params(deep=False)}
    for name in grid:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(known))}"
            raise ValueError(f"grid has {name!r}, a parameter that none of the machines has{hint}")


def checked_test(X: Matrix, X_test: Any, y_test: Any) -> tuple[Matrix, NDArray[Any]] | None:
    """Return the test set as the machines take it; None if there is none."""
    if X_test is None and y_test is None:
        return None
    if X_test is None or y_test is None:
        raise ValueError("X_test and y_test belong together: give both or none")
    X_test, y_test = checked_examples(OneVsOneSVC(), X_test, y_test, reset=True)
    if X_test.shape[1] != X.shape[1]:
        raise ValueError(f"X_test has {X_test.shape[1]} features, but X has {X.shape[1]}")
    return X_test, y_test


def divisions(
    X: Matrix, y: NDArray[Any], cv: Any, holdout: float | None, random_state: int | None
) -> tuple[list[Split], str]:
    """Return the divisions that every machine sees, and what to call them."""
    fewest = int(np.unique(y, return_counts=True)[1].min())
    if holdout is not None:
        if fewest < 2:
            raise ValueError("holdout needs two examples of every class; use holdout=None for the folds of cv")
        splitter: Any = StratifiedShuffleSplit(1, test_size=holdout, random_state=random_state)
        title = f"{1 - holdout:.0%} of the training examples to fit, {holdout:.0%} to choose"
    elif isinstance(cv, int | np.integer):
        if not 2 <= cv <= fewest:
            raise ValueError(
                f"cv={cv} must be from 2 to {fewest}, the number of examples of the smallest class"
                if fewest > 1
                else "a class has only one example; leave it out, or give folds of your own as cv"
            )
        splitter = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
        title = f"{cv}-fold cross-validation"
    else:
        splitter = check_cv(cv, y, classifier=True)
        title = "cross-validation on given folds"
    return list(splitter.split(X, y)), title
