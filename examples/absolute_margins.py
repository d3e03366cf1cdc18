"""The machines of absolute margins side by side: how optimal they are, and scores that sum to zero."""

from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from polymargin import (
    AbsoluteMaximumSVC,
    LeeLinWahbaSVC,
    MaximumMarginRegressionSVC,
    ReinforcedSVC,
    TotalMaximumSVC,
    TotalSumSVC,
    certify,
)

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
machines = [
    LeeLinWahbaSVC(),
    ReinforcedSVC(share=0.5),
    AbsoluteMaximumSVC(),
    TotalMaximumSVC(),
    TotalSumSVC(),
    MaximumMarginRegressionSVC(),
]
print(
    f"{'absolute margins':28} {'primal':>9} {'dual':>9} {'gap':>8} {'infeasible':>10} {'SVs':>4} {'sum of scores':>14}"
)
for machine in machines:
    machine.fit(X, y)
    proof = certify(machine, X, y)
    sums = machine.decision_function(X).sum(axis=1)
    print(
        f"{type(machine).__name__:28} {proof.primal_objective:9.4f} {proof.dual_objective:9.4f} "
        f"{proof.duality_gap:8.0e} {proof.infeasibility:10.0e} {len(machine.support_):4} {abs(sums).max():14.0e}"
    )
