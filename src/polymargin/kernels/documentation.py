"""What docstrings and help texts say of the kernels, made from the table."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill, indent

from polymargin.kernels.table import KERNELS, readers

_WIDTH = 116  # of a line of a docstring, without its own indentation
_SPACE = "\N{NO-BREAK SPACE}"  # within a formula, until lines are broken


def listed(names: Iterable[str], quote: str = '``"{}"``') -> str:
    """Return names as a text: ``"a"``, ``"b"`` and ``"c"``."""
    *first, last = (quote.format(name) for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def kernel_documentation(default: str = "rbf", weighted: bool = False) -> str:
    """Return the parameters ``kernel``, ``degree``, ``gamma`` and ``coef0`` as numpydoc has them."""
    names = ", ".join(f'"{name}"' for name in KERNELS)
    lengths = [name for name in readers("gamma") if KERNELS[name].dimension == 1]
    of_lengths = f", with the standard deviation in its place for {listed(lengths)}" if lengths else ""
    weights = ", the variance being weighted when there are sample weights" if weighted else ""
    formulas = "; ".join(
        f'``"{name}"`` is ``{entry.formula.replace(" ", _SPACE)}``'
        for name, entry in KERNELS.items()
        if not entry.precomputed
    )
    parameters = {
        f'kernel : {{{names}}} or callable, default="{default}"': (
            f"The kernel: {formulas}. A callable gets two matrices of examples and returns the matrix of their kernel "
            "values."
        ),
        "degree : int, default=3": f"Degree of {listed(readers('degree'))}.",
        'gamma : {"scale", "auto"} or float, default="scale"': (
            f'Factor of {listed(readers("gamma"))}: ``"scale"`` is 1 / (n_features * variance of X){of_lengths}'
            f'{weights}; ``"auto"`` is 1 / n_features.'
        ),
        "coef0 : float, default=0.0": f"Constant term of {listed(readers('coef0'))}.",
    }
    return "".join(f"{name}\n{_paragraph(text)}\n" for name, text in parameters.items())


def _paragraph(text: str) -> str:
    return indent(fill(text, _WIDTH - 4, break_on_hyphens=False), "    ").replace(_SPACE, " ")
