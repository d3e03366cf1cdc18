"""A series of C, each fit started from the last one's solution: fewer steps for the same answers."""

from sklearn.datasets import load_digits

from polymargin import OneVsOneSVC

X, y = load_digits(return_X_y=True)
warm = OneVsOneSVC(gamma=0.001, warm_start=True)

print(f"{'C':>6} {'dual objective':>16} {'relative gap':>13} {'steps, warm':>12} {'steps, cold':>12}")
for C in (0.5, 1, 2, 4, 8, 16):
    warm.set_params(C=C).fit(X, y)
    cold = OneVsOneSVC(C=C, gamma=0.001).fit(X, y)
    steps = (warm.n_iter_.sum(), cold.n_iter_.sum())
    print(f"{C:6g} {warm.dual_objective_:16.6f} {warm.duality_gap_:13.1e} {steps[0]:12,} {steps[1]:12,}")
