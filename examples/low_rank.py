"""Features of low rank turn a linear machine into an approximate kernel machine."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from polymargin import CrammerSingerSVC
from polymargin.features import CholeskyFeatures, KernelPCAFeatures, SubsetFeatures

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)
K = rbf_kernel(X_train, gamma=0.1)

exact = CrammerSingerSVC(C=10, gamma=0.1).fit(X_train, y_train)
print(f"exact kernel machine           test rate {exact.score(X_test, y_test):.4f}")
for Features in (KernelPCAFeatures, SubsetFeatures, CholeskyFeatures):
    for rank in (50, 200):
        features = Features(rank, gamma=0.1)
        Z = features.fit_transform(X_train)
        error = np.trace(K - Z @ Z.T) / np.trace(K)
        machine = make_pipeline(features, CrammerSingerSVC(C=10, kernel="linear")).fit(X_train, y_train)
        rate = machine.score(X_test, y_test)
        print(f"{Features.__name__:<18} rank {rank:>3}    test rate {rate:.4f}, {error:5.1%} of the trace missing")
