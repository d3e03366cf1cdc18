"""What the parameters of a kernel may be, for scikit-learn's validation."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from polymargin.kernels.table import KERNELS

KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions(KERNELS.keys()), callable],
    "degree": [Interval(Integral, 0, None, closed="left")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
}
