"""Which items to label first, and which to label next: diverse sets instead of random ones.

Forty digits are drawn by `dmsgd.select` and labelled. The model that they train says how uncertain
it is about the others; the next twenty are uncertain, unlike the first forty and unlike each other.

DDP, resume and loader workers do not matter here: there is one set. From a terminal it is

    dmsgd select features.npy -k 40 -o first.csv
    dmsgd select features.npy -k 20 --given first.csv --quality uncertainty.npy --how greedy
"""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import dmsgd
from data import long_tailed_digits

X, y, test_X, test_y = long_tailed_digits()
rng = np.random.default_rng(0)


def learn(name: str, sets: Any) -> LogisticRegression:
    """Print how well models do that know the labels of these sets alone; return the last one."""
    models = [LogisticRegression(C=10, max_iter=2000).fit(X[items], y[items]) for items in sets]
    accuracy = np.mean([model.score(test_X, test_y) for model in models])
    classes = np.mean([np.unique(y[items]).size for items in sets])
    print(f"{name}: balanced test accuracy {accuracy:.3f}, {classes:.1f} of 10 classes")
    return models[-1]


learn("at random", dmsgd.Uniform(len(X), k=40).sample(10, seed=0))
draws = [dmsgd.select(X, k=40, seed=seed) for seed in range(10)]
model = learn("diverse", draws)
first = draws[-1]

print("20 more:")
two = np.sort(model.predict_proba(X), axis=1)[:, -2:]
uncertainty = 1 - (two[:, 1] - two[:, 0])  # 1 where the two likeliest classes are equally likely
rest = np.setdiff1d(np.arange(len(X)), first)
more = {
    "more at random": rng.choice(rest, 20, replace=False),
    "most uncertain": rest[np.argsort(-uncertainty[rest])][:20],
    "uncertain and diverse": dmsgd.select(X, k=20, quality=uncertainty, given=first, how="greedy"),
}
for name, items in more.items():
    learn(name, [np.append(first, items)])
