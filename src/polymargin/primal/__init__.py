"""Machines that are trained in the primal: losses, the objective with its dual bound, and the optimiser."""

from polymargin.primal.losses import OneVsRestLoss, SoftmaxLoss
from polymargin.primal.objective import Objective, class_factor
from polymargin.primal.solver import Outcome, Progress, minimize

__all__ = ["Objective", "OneVsRestLoss", "Outcome", "Progress", "SoftmaxLoss", "class_factor", "minimize"]
