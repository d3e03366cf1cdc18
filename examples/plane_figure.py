"""Figure 1 of Weston & Watkins (1998) drawn again: two machines in the plane, support vectors ringed, errors crossed.

The kernel is the polynomial one of degree 2. On the left three classes are separated with the largest margin, on the
right four classes overlap. The data are made up, as theirs were, which the paper does not list.

    python examples/plane_figure.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from polymargin import LinearProgramSVC, WestonWatkinsSVC
from polymargin.plots import decision_regions

KERNEL = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}


def three_classes(rng):
    """Return a disc and the two halves of a ring around it, each clear of the others."""
    radius = np.concatenate([0.6 * np.sqrt(rng.random(16)), rng.uniform(1.0, 1.5, 32)])
    angle = np.concatenate([rng.uniform(0, 2 * np.pi, 16), rng.uniform(0.1, 0.9, 32) * np.pi])
    angle[32:] += np.pi
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return X, np.repeat(["disc", "upper", "lower"], 16)


def four_classes(rng):
    """Return four clouds that overlap."""
    centers = np.array([[-0.75, 0.6], [0.7, 0.75], [0.75, -0.65], [-0.65, -0.75]])
    X = np.repeat(centers, 20, axis=0) + rng.normal(scale=0.47, size=(80, 2))
    return X, np.repeat(["A", "B", "C", "D"], 20)


def main():
    """Draw the four pictures."""
    rng = np.random.default_rng(4)
    data = {
        "three classes, hard margin": (np.inf, *three_classes(rng)),
        "four classes, C = 1": (1.0, *four_classes(rng)),
    }
    figure, axes = plt.subplots(2, 2, figsize=(8, 8.2), layout="constrained")
    for column, (title, (C, X, y)) in enumerate(data.items()):
        machines = WestonWatkinsSVC(C=C, bias="free", **KERNEL), LinearProgramSVC(C=C, **KERNEL)
        for row, machine in enumerate(machines):
            machine.fit(X, y)
            ax = decision_regions(machine, X, y, ax=axes[row, column], legend=False)
            errors = int((machine.predict(X) != y).sum())
            caption = f"{title}: {len(machine.support_)} support vectors, errors: {errors}"
            ax.set(title=type(machine).__name__, xlabel=caption, xticks=[], yticks=[])
            print(f"{type(machine).__name__:<18}{caption}")
    marks = dict(zip(*reversed(axes[0, 1].get_legend_handles_labels()), strict=True))
    kinds = ("support vector", "error")
    figure.legend([marks[kind] for kind in kinds], kinds, loc="outside lower center", ncols=2, frameon=False)
    if len(sys.argv) > 1:
        figure.savefig(sys.argv[1], dpi=110)
    else:
        plt.show()


if __name__ == "__main__":
    main()
