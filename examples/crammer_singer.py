"""Crammer and Singer's machine: the same one as in liblinear, with kernels, and its hard margin."""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from polymargin import CrammerSingerSVC, WestonWatkinsSVC

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)

peer = LinearSVC(C=0.1, multi_class="crammer_singer", tol=1e-6, max_iter=100_000).fit(X, y)
machine = CrammerSingerSVC(C=0.1, kernel="linear", bias="regularized", tol=1e-6).fit(X, y)
difference = np.abs(machine.decision_function(X) - peer.decision_function(X)).max()
print(f"linear kernel:  scores differ from liblinear's by at most {difference:.0e}, gap {machine.duality_gap_:.1e}")

machine = CrammerSingerSVC(C=1, gamma=0.05).fit(X, y)
print(f"RBF kernel:     {len(machine.support_)} support vectors of {len(X)}, gap {machine.duality_gap_:.1e}")

hard = CrammerSingerSVC(C=np.inf, gamma=0.05, tol=1e-6).fit(X, y)
scores = hard.decision_function(X)
own = scores[np.arange(len(y)), y]
scores[np.arange(len(y)), y] = -np.inf
print(f"hard margin:    the smallest lead of a training example is {np.min(own - scores.max(axis=1)):.4f}")

other = WestonWatkinsSVC(C=np.inf, gamma=0.05, bias=None, tol=1e-6).fit(X, y)
difference = np.abs(other.decision_function(X) - 2 * hard.decision_function(X)).max()
print(f"Weston-Watkins: its hard-margin scores are twice these, to within {difference:.0e}")
