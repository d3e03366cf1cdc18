"""Weston and Watkins' machine: the three biases, and two classes as the binary machine."""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from polymargin import WestonWatkinsSVC

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)

print("bias              primal       dual      gap  sum of coefs  intercepts")
for bias in (None, "regularized", "free"):
    machine = WestonWatkinsSVC(C=1, gamma=0.05, bias=bias).fit(X, y)
    largest = np.abs(machine.dual_coef_.sum(axis=1)).max()  # over all examples, for the worst class
    print(
        f"{bias!s:<13}{machine.primal_objective_:11.4f}{machine.dual_objective_:11.4f}{machine.duality_gap_:9.1e}"
        f"{largest:14.1e}  {np.array2string(machine.intercept_, precision=3, suppress_small=True)}"
    )

two = y < 2
binary = SVC(C=1, gamma=0.05, tol=1e-6).fit(X[two], y[two])
machine = WestonWatkinsSVC(C=1, gamma=0.05, bias="free", tol=1e-6).fit(X[two], y[two])
difference = np.abs(machine.decision_function(X) - binary.decision_function(X)).max()
print(f"two classes: scores differ from those of SVC by at most {difference:.0e}")
