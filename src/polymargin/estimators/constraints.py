"""Constraints of parameters that several estimators have."""

from __future__ import annotations

from typing import Any, get_args

from sklearn.utils._param_validation import StrOptions

from polymargin.support.typing import LINEAR_SOLVERS, CalibrationMethod

BIAS: list[Any] = [StrOptions({"regularized", "free"}), None]
COSTS: list[Any] = ["array-like", None]
JOINT_SOLVER: list[Any] = [StrOptions({"auto", "decomposition", *LINEAR_SOLVERS})]
HINGE: list[Any] = [StrOptions({"hinge", "squared_hinge"})]
CALIBRATION: list[Any] = [StrOptions(set(get_args(CalibrationMethod))), None]
