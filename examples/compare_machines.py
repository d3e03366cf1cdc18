"""The four machines on the same data and kernel, each with two certificates: that of fit, and one recomputed."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, certify

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)

columns = ("test rate", "SVs", "coefs", "primal", "dual", "gap of fit", "certified", "infeasible")
print(f"{'machine':<17}" + "".join(f"{name:>11}" for name in columns))
for Machine in (OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC):
    machine = Machine(C=10, gamma=0.001, tol=1e-4).fit(X_train, y_train)
    proof = certify(machine, X_train, y_train)
    print(
        f"{Machine.__name__:<17}{machine.score(X_test, y_test):11.2%}{len(machine.support_):11}"
        f"{np.count_nonzero(machine.dual_coef_):11}{proof.primal_objective:11.3f}{proof.dual_objective:11.3f}"
        f"{machine.duality_gap_:11.1e}{proof.duality_gap:11.1e}{proof.infeasibility:11.0e}"
    )
