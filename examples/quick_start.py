"""Fit, predict, and see how optimal the answer is."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polymargin import OneVsOneSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

machine = OneVsOneSVC(C=10, gamma=0.001).fit(X_train, y_train)
print(f"test rate     {machine.score(X_test, y_test):.4f}")
print(f"primal        {machine.primal_objective_:.4f}")
print(f"dual          {machine.dual_objective_:.4f}")
print(f"relative gap  {machine.duality_gap_:.1e}, {machine.stop_reason_}")

exact = OneVsOneSVC(C=10, gamma=0.001, tol=1e-6).fit(X_train, y_train)
print(f"with tol=1e-6 {exact.duality_gap_:.1e}")
