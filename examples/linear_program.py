"""The linear programming machine beside Weston and Watkins' quadratic one: the same margins with few coefficients."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polymargin import LinearProgramSVC, WestonWatkinsSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=900, stratify=y, random_state=0)

print("cost  machine            test rate   SVs  coefs  objective  relative gap")
for C in (1, np.inf):
    for machine in (WestonWatkinsSVC(C, gamma=0.1, bias="free"), LinearProgramSVC(C, gamma=0.1)):
        machine.fit(X_train, y_train)
        print(
            f"{C:<6}{type(machine).__name__:<18}{machine.score(X_test, y_test):>10.2%}{len(machine.support_):>6}"
            f"{np.count_nonzero(machine.dual_coef_):>7}{machine.primal_objective_:>11.3f}{machine.duality_gap_:>14.1e}"
        )
