"""Pairs chosen by uncertainty: the test rate as more of them are trained, and that of all pairs by votes."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polymargin import OneVsOneSVC, UncertaintySVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)

print("pairs  test rate      SVs")
for max_pairs in (5, 10, 0.5, 1.0):
    machine = UncertaintySVC(C=10, gamma=0.001, max_pairs=max_pairs, min_distance=float("inf")).fit(X_train, y_train)
    print(f"{len(machine.pairs_):5}{machine.score(X_test, y_test):11.2%}{len(machine.support_):9}")
votes = OneVsOneSVC(C=10, gamma=0.001).fit(X_train, y_train)
print(f"votes{votes.score(X_test, y_test):11.2%}{len(votes.support_):9}")
