"""Output codes: five codes on the digits, with both ways to decode them."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polymargin import OutputCodeSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)

print("code           problems  hamming     loss")
for code in ("one-vs-one", "one-vs-rest", "dense", "sparse", "exhaustive"):
    machine = OutputCodeSVC(C=10, gamma=0.001, code=code).fit(X_train, y_train)
    hamming = machine.score(X_test, y_test)
    loss = machine.set_params(decoding="loss").score(X_test, y_test)
    print(f"{code:15}{machine.code_book_.shape[1]:8}{hamming:9.2%}{loss:9.2%}")
