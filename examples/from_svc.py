"""Coming from scikit-learn's SVC: change the import, keep the rest; the answers agree."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from polymargin import OneVsOneSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# The same parameters, in a pipeline as before. With "ovo", SVC's decision_function gives its pairwise values.
old = make_pipeline(MinMaxScaler(), SVC(C=10, gamma=0.05, decision_function_shape="ovo"))
new = make_pipeline(MinMaxScaler(), OneVsOneSVC(C=10, gamma=0.05))
old.fit(X_train, y_train)
new.fit(X_train, y_train)

scaled = new[:-1].transform(X_test)
difference = np.abs(old.decision_function(X_test) - new[-1].pairwise_decision_function(scaled)).max()
print(f"same labels:          {np.mean(old.predict(X_test) == new.predict(X_test)):.2%} of the test rows")
print(f"pairwise values:      differ by at most {difference:.1e} (both stop at tol = 1e-3)")
print(f"support vectors:      {len(old[-1].support_)} and {len(new[-1].support_)}")
print(f"relative gap:         {new[-1].duality_gap_:.1e}")

# Model selection works as it does with SVC.
grid = {"onevsonesvc__C": [1, 10, 100], "onevsonesvc__gamma": [0.01, 0.05, 0.2]}
search = GridSearchCV(new, grid, cv=3).fit(X_train, y_train)
print(f"best of the grid:     {search.best_params_}")
print(f"test rate:            {search.score(X_test, y_test):.2%}")
