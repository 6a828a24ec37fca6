"""Which items to label first: a diverse set instead of a random one, and then more of them.

A model is trained on 40 labelled digits. A draw from the k-DPP is a fair sample, so that weights
can make estimates of it; the most likely set is no sample, and the best of the three to train on.
`design.given(labelled)` chooses those that go with what is labelled already.

DDP, resume and loader workers do not matter here: there is one set. From a terminal it is

    dmsgd select features.npy --kernel rbf -k 40 -o chosen.csv
    dmsgd select features.npy --kernel rbf -k 60 --given chosen.csv -o more.csv
"""

from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier

import dmsgd
from data import long_tailed_digits

X, y, test_X, test_y = long_tailed_digits()


def learn(name: str, sets: Any) -> None:
    """Print how well models do that know the labels of these sets alone."""
    models = [RidgeClassifier().fit(X[items], y[items]) for items in sets]
    accuracy = np.mean([model.score(test_X, test_y) for model in models])
    classes = np.mean([np.unique(y[items]).size for items in sets])
    print(f"{name}: balanced test accuracy {accuracy:.3f}, {classes:.1f} of 10 classes")


design = dmsgd.diversify(X, k=40, kernel="rbf")
first = design.greedy_map()
learn("uniform", dmsgd.Uniform(len(X), k=40).sample(10, seed=0))
learn("diverse", design.sample(10, seed=0))
learn("likely", [first])

print("20 more:")
rest = np.setdiff1d(np.arange(len(X)), first)
random = [rest[batch] for batch in dmsgd.Uniform(len(rest), k=20).sample(10, seed=0)]
more = dmsgd.diversify(X, k=60, kernel="rbf").given(first)
learn("at random", [np.append(first, items) for items in random])
learn("diverse given the first", more.sample(10, seed=0))
learn("likely given the first", [more.greedy_map()])

# What a labelled draw tells of all items: the share of the digit 3, without bias.
weights, batches = dmsgd.unbiased_weights(design), design.sample(2000, seed=1)
estimates = np.sum(weights[batches] * (y[batches] == 3), axis=1)
print(
    f"share of threes: {np.mean(y == 3):.3f}; weighted sets say {estimates.mean():.3f} on average"
)
