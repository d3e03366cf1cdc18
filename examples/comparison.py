"""Machines side by side on the wine data, scikit-learn's SVC among them; writes a report beside the table."""

import sys

from rich.console import Console
from sklearn.datasets import load_wine
from sklearn.svm import SVC

from polymargin import CrammerSingerSVC, OneVsOneSVC, WestonWatkinsSVC, compare
from polymargin.comparison.report import terminal

X, y = load_wine(return_X_y=True)
comparison = compare(
    X,
    y,
    machines=[OneVsOneSVC(), WestonWatkinsSVC(), CrammerSingerSVC(), CrammerSingerSVC(bias="regularized"), SVC()],
    grid={"C": [0.25, 1, 4, 16], "gamma": [0.01, 0.04, 0.16]},
    scaling="range",
    name="wine",
)
terminal(comparison, Console(width=100))
if len(sys.argv) > 1:
    comparison.to_html(sys.argv[1])
