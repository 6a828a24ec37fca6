"""Which items to label first, and which to label next: diverse sets instead of random ones.

Forty digits are chosen by `dmsgd.select` and labelled. The model that they train says how uncertain
it is about the others; the next twenty stand for many uncertain ones that are unlike the first.

DDP, resume and loader workers do not matter here: there is one set. From a terminal it is

    dmsgd select features.npy -k 40 -o first.csv
    dmsgd select features.npy -k 20 --given first.csv --quality uncertainty.npy
"""

from collections import defaultdict

import numpy as np
from sklearn.linear_model import LogisticRegression

import dmsgd
from data import Array, long_tailed_digits

accuracy: dict[str, list[float]] = defaultdict(list)
classes: dict[str, list[int]] = defaultdict(list)


def learn(name: str, items: Array) -> LogisticRegression:
    """Return a model that knows the labels of these items alone."""
    model = LogisticRegression(C=10, max_iter=2000).fit(X[items], y[items])
    accuracy[name].append(model.score(test_X, test_y))
    classes[name].append(np.unique(y[items]).size)
    return model


for seed in range(6):
    X, y, test_X, test_y = long_tailed_digits(seed)
    rng = np.random.default_rng(seed)
    learn("at random", rng.choice(len(X), 40, replace=False))
    first = dmsgd.select(X, k=40)
    model = learn("diverse", first)

    uncertainty = dmsgd.uncertainty(model.predict_proba(X))
    rest = np.setdiff1d(np.arange(len(X)), first)
    more = {
        "20 more at random": rng.choice(rest, 20, replace=False),
        "20 most uncertain": rest[np.argsort(-uncertainty[rest])][:20],
        "20 uncertain and diverse": dmsgd.select(X, k=20, quality=uncertainty, given=first),
    }
    for name, items in more.items():
        learn(name, np.append(first, items))

for name, found in accuracy.items():
    seen = f"{np.mean(classes[name]):.1f} of 10 classes"
    print(f"{name}: balanced test accuracy {np.mean(found):.3f}, {seen}")
