"""Probabilities from scores: coupling, sigmoid, isotonic and temperature by log loss, beside scikit-learn's way."""

from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from polymargin import CrammerSingerSVC, OneVsOneSVC, OneVsRestSVC, WestonWatkinsSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)
parameters = {"C": 5, "gamma": 0.1}

machines = {
    "one-against-one  coupling": OneVsOneSVC(decision="coupling", **parameters),
    "one-against-all  sigmoid": OneVsRestSVC(calibration="sigmoid", **parameters),
    "one-against-all  isotonic": OneVsRestSVC(calibration="isotonic", **parameters),
    "one-against-all  temperature": OneVsRestSVC(calibration="temperature", **parameters),
    "Weston-Watkins   sigmoid": WestonWatkinsSVC(calibration="sigmoid", **parameters),
    "Weston-Watkins   temperature": WestonWatkinsSVC(calibration="temperature", **parameters),
    "Crammer-Singer   temperature": CrammerSingerSVC(calibration="temperature", **parameters),
    "scikit-learn     sigmoid": CalibratedClassifierCV(SVC(**parameters), ensemble=False),
}
print("probabilities from            log loss  test rate")
for name, machine in machines.items():
    machine.fit(X_train, y_train)
    loss, rate = log_loss(y_test, machine.predict_proba(X_test)), machine.score(X_test, y_test)
    print(f"{name:30}{loss:8.4f}{rate:11.4f}")
