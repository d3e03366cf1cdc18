"""Pairs chosen by uncertainty: test rates as more of them are trained, and that of all pairs by votes."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polymargin import OneVsOneSVC, UncertaintySVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)

print("pairs    signs  margins")
for max_pairs in (5, 10, 0.5, 1.0):
    rates = []
    for answers in ("signs", "margins"):
        machine = UncertaintySVC(C=10, gamma=0.001, max_pairs=max_pairs, min_distance=float("inf"), answers=answers)
        rates.append(machine.fit(X_train, y_train).score(X_test, y_test))
    print(f"{len(machine.pairs_):5}{rates[0]:9.2%}{rates[1]:9.2%}")
votes = OneVsOneSVC(C=10, gamma=0.001).fit(X_train, y_train)
print(f"votes{votes.score(X_test, y_test):9.2%}")
