"""Costs from a taxonomy: fewer mistakes between branches of newsgroups, more between neighbours."""

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import fetch_20newsgroups
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from polymargin import WestonWatkinsSVC
from polymargin.costs import mean_cost, taxonomy_costs

GROUPS = [
    "alt.atheism",
    "comp.graphics",
    "comp.os.ms-windows.misc",
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
    "comp.windows.x",
    "misc.forsale",
    "rec.autos",
    "rec.motorcycles",
    "rec.sport.baseball",
    "rec.sport.hockey",
    "sci.crypt",
    "sci.electronics",
    "sci.med",
    "sci.space",
    "soc.religion.christian",
    "talk.politics.guns",
    "talk.politics.mideast",
    "talk.politics.misc",
    "talk.religion.misc",
]


def newsgroups():
    """Return word weights and groups of training and test messages, if they were fetched to this machine before."""
    parts = [fetch_20newsgroups(subset=part, download_if_missing=False) for part in ("train", "test")]
    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit(parts[0].data)
    names = np.array(parts[0].target_names)
    return [item for part in parts for item in (words.transform(part.data), names[part.target])]


def made():
    """Return messages that are drawn: every node of the tree of groups has words of its own."""
    rng = np.random.default_rng(0)
    nodes = sorted({".".join(g.split(".")[: d + 1]) for g in GROUPS for d in range(g.count(".") + 1)})
    own = {node: rng.integers(0, 3000, 30) for node in nodes}
    groups, rows = rng.choice(GROUPS, 1600), []
    for group in groups:
        parts = group.split(".")
        path = [own[".".join(parts[: d + 1])] for d in range(len(parts))]
        words = [rng.choice(words, (2, 3, 1)[min(d, 2)]) for d, words in enumerate(path)]
        rows.append(np.bincount(np.concatenate([*words, rng.integers(0, 3000, 40)]), minlength=3000))
    X = normalize(csr_matrix(np.array(rows, dtype=float)))
    return X[:800], groups[:800], X[800:], groups[800:]


try:
    X, y, X_test, y_test = newsgroups()
except OSError:
    X, y, X_test, y_test = made()

classes = np.unique(y)
costs = taxonomy_costs(classes)
print("trained with      errors  mean cost  mistakes across branches")
for name, given in (("costs of 1", None), ("taxonomy", costs)):
    predicted = WestonWatkinsSVC(kernel="linear", C=1.0, costs=given).fit(X, y).predict(X_test)
    branch = [np.array([group.split(".")[0] for group in groups]) for groups in (y_test, predicted)]
    cost = mean_cost(y_test, predicted, costs, classes=classes)
    print(f"{name:16}  {np.mean(predicted != y_test):6.1%}  {cost:9.4f}  {np.sum(branch[0] != branch[1]):24,}")
