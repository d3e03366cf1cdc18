"""Grids of the literature."""

from __future__ import annotations


def hsu_lin_grid() -> dict[str, list[float]]:
    """Return the 15 x 15 grid of Hsu and Lin (2002, section V): C from 2^-2 to 2^12, gamma from 2^-10 to 2^4.

    Returns
    -------
    dict
        Values of ``C`` and ``gamma``, for ``param_grid``.

    Examples
    --------
    >>> from polymargin.selection import hsu_lin_grid
    >>> [(name, min(values), max(values)) for name, values in hsu_lin_grid().items()]
    [('C', 0.25, 4096.0), ('gamma', 0.0009765625, 16.0)]
    """
    return {
        "C": [2.0**exponent for exponent in range(-2, 13)],
        "gamma": [2.0**exponent for exponent in range(-10, 5)],
    }
