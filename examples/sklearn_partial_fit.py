"""scikit-learn: one `partial_fit` for every draw, for any estimator that has it.

DDP:     none in scikit-learn.
Resume:  every record has its step; pickle the estimator and go on with `start=record.step + 1`.
Workers: none needed; draws are made many at a time.
"""

import pickle

from sklearn.linear_model import SGDClassifier

import dmsgd
from data import long_tailed_digits
from dmsgd.sgd import train_sklearn

X, y, test_X, test_y = long_tailed_digits()
diverse = dmsgd.diversify(X, k=20, labels=y, w=0.7)
for name, design in {"uniform": dmsgd.Uniform(len(X), k=20), "diverse": diverse}.items():
    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.1, random_state=0)
    for record in train_sklearn(model, X, y, design, steps=114, seed=0):
        if record.step == 49:
            checkpoint = pickle.dumps([model, record.step])
    print(f"{name}: balanced test accuracy {model.score(test_X, test_y):.3f}")

resumed, step = pickle.loads(checkpoint)
for _ in train_sklearn(resumed, X, y, diverse, steps=114 - 50, seed=0, start=step + 1):
    pass
print("resumed, same weights:", (resumed.coef_ == model.coef_).all())
