"""Linear machines on text: sparse data with many features, and no kernel matrix."""

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from polymargin import CrammerSingerSVC, OneVsRestSVC, WestonWatkinsSVC

# Sentences about five subjects, made from their words, so that nothing has to be downloaded.
SUBJECTS = {
    "sea": "wave harbour sailor tide anchor storm ship coast island captain",
    "kitchen": "flour oven butter spoon recipe onion pepper bread sauce plate",
    "garden": "rose soil spade seed hedge compost tulip weed orchard rain",
    "railway": "train track station signal engine platform timetable carriage bridge ticket",
    "music": "violin chord melody drum concert choir rhythm organ singer tune",
}


def sentences():
    """Yield 2,000 sentences, each of four words of its subject and four of any, and their subjects."""
    words = [word for line in SUBJECTS.values() for word in line.split()]
    for i in range(2000):
        subject = list(SUBJECTS)[i % len(SUBJECTS)]
        own = SUBJECTS[subject].split()
        chosen = [own[(i * step) % 10] for step in (1, 3, 7, 9)] + [words[(i * step) % 50] for step in (7, 11, 13, 17)]
        yield " ".join(chosen), subject


texts, subjects = zip(*sentences(), strict=True)
X = TfidfVectorizer().fit_transform(texts)
X_train, X_test, y_train, y_test = train_test_split(X, subjects, random_state=0)
print(f"linear machines on {X_train.shape[0]} sentences, {X_train.shape[1]} words")
for Machine in (OneVsRestSVC, WestonWatkinsSVC, CrammerSingerSVC):
    machine = Machine(C=1, kernel="linear", solver="sequential-dual").fit(X_train, y_train)
    print(
        f"{Machine.__name__:17} {machine.solver_used_}, "
        f"gap below {machine.tol:g}: {machine.duality_gap_ <= machine.tol}, "
        f"test rate {machine.score(X_test, y_test):.3f}, weights {machine.coef_.shape}"
    )
