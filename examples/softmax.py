"""The softmax machine: probabilities, from the sum to the maximum of the losses, and features of low rank."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polymargin import SoftmaxSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)

machine = SoftmaxSVC(C=10, gamma=0.1).fit(X_train, y_train)
P = machine.predict_proba(X_test)
print(f"softmax machine: test rate {machine.score(X_test, y_test):.4f}, gap {machine.duality_gap_:.0e}")
print(f"log loss         {-np.mean(np.log(P[np.arange(len(y_test)), y_test])):.3f}")

for aggregation in (0, 1, 10, np.inf):
    machine = SoftmaxSVC(C=10, gamma=0.1, aggregation=aggregation).fit(X_train, y_train)
    print(
        f"aggregation {aggregation:>3}  objective {machine.primal_objective_:6.1f}, {machine.score(X_test, y_test):.4f}"
    )

for rank in (25, 100, 400):
    machine = SoftmaxSVC(C=10, gamma=0.1, basis="cholesky", rank=rank).fit(X_train, y_train)
    print(f"rank {rank:>3}         {len(machine.support_)} points, {machine.score(X_test, y_test):.4f}")
