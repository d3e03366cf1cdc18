"""Every machine of the package on the same three classes in the plane.

python examples/machines_side_by_side.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import polymargin
from polymargin.plots import decision_regions

MACHINES = [getattr(polymargin, name) for name in polymargin.__all__ if name.endswith("SVC")]
COLUMNS = 4


def spirals(n, rng):
    """Return three arms of a spiral, blurred."""
    arm = np.repeat(np.arange(3), n)
    radius = np.tile(np.linspace(0.2, 1.0, n), 3)
    angle = 3.0 * radius + 2 * np.pi * arm / 3
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return X + rng.normal(scale=0.105, size=X.shape), np.array(["first", "second", "third"])[arm]


def main():
    """Fit and draw them all."""
    X, y = spirals(40, np.random.default_rng(0))
    rows = -(-len(MACHINES) // COLUMNS)
    columns = min(COLUMNS, len(MACHINES))
    figure, axes = plt.subplots(rows, columns, figsize=(2.7 * columns, 3.0 * rows), layout="constrained", squeeze=False)
    for ax in axes.flat[len(MACHINES) :]:
        ax.axis("off")
    for ax, Machine in zip(axes.flat, MACHINES, strict=False):
        machine = Machine(C=10, gamma=2.0).fit(X, y)
        decision_regions(machine, X, y, ax=ax, legend=False)
        errors = int((machine.predict(X) != y).sum())
        caption = f"{len(machine.support_)} support vectors, errors: {errors}"
        ax.set(xticks=[], yticks=[], xlabel=caption)
        ax.set_title(Machine.__name__, fontsize=11)
        print(f"{Machine.__name__:<28}{caption}")
    if len(sys.argv) > 1:
        figure.savefig(sys.argv[1], dpi=110)
    else:
        plt.show()


if __name__ == "__main__":
    main()
