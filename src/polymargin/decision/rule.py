"""What every way to decide has, and the ways by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from polymargin import decision
from polymargin.support.numeric import Floats, Ints, Matrix

if TYPE_CHECKING:
    from polymargin.decision import Sigmoids
    from polymargin.models import KernelModel, PairLayout


class DecisionRule(Protocol):
    """How the scores of a model become a class."""

    def public_scores(self, scores: Floats) -> Floats:
        """Return the scores, of all that a model has, that are shown as its own: those with weights in ``coef_``."""

    def decide(self, values: Floats) -> Ints:
        """Return the number of the class that all scores of each row name."""

    def predict(self, model: KernelModel, X: Matrix, threads: int) -> Ints:
        """Return the number of the class of each row, whatever the rounding of its scores."""

    def decision_function(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return a score for each class, or one for two; the largest, or the sign, names the class of ``predict``."""


class ProbabilityRule(DecisionRule, Protocol):
    """A way to decide that has probabilities, the largest being that of the class of ``predict``."""

    def probabilities(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the probability of each class, (n, k)."""


def _coupling(layout: PairLayout, class_order: Ints | None, sigmoids: Sigmoids | None) -> DecisionRule:
    if sigmoids is None:
        raise ValueError("pairs without sigmoids have no probabilities")
    return decision.Coupling(sigmoids, layout.n_classes, layout.sign, class_order)


PairDecision: TypeAlias = "Callable[[PairLayout, Ints | None, Sigmoids | None], DecisionRule]"
PAIR_DECISIONS: dict[str, PairDecision] = {
    "votes": lambda layout, class_order, _: decision.Votes(layout.n_classes, class_order),
    "dag": lambda layout, class_order, _: decision.Elimination("dag", layout.n_classes, class_order),
    "adag": lambda layout, class_order, _: decision.Elimination("adag", layout.n_classes, class_order),
    "coupling": _coupling,
}
"""How the answers of pairs become a class, by name: functions of the layout of the pairs, the order in which classes
win ties (None is that of their numbers), and sigmoids if there are any."""
