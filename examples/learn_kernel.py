"""A kernel learned from observed sets: a planted one, then slates that users chose from candidates.

`dmsgd.torch.log_prob` is the log-probability of sets with gradients, so minus its mean is a loss.
What was learned goes into `dmsgd.KDPP` or `dmsgd.DPP`, to draw new sets or the likeliest.

DDP:     the loss is a mean over sets, so ranks that hold equally many average their gradients.
Resume:  as of any model: save its parameters and the optimizer's state.
Workers: any number; a loader hands out sets and, for slates, the features of their candidates.
"""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch.nn.functional import normalize

import dmsgd
from dmsgd.kernels import Linear
from dmsgd.torch import log_prob

torch.manual_seed(0)


def train(parameters: Iterable[torch.Tensor], mean_log_prob: Callable[[], torch.Tensor]) -> None:
    optimizer = torch.optim.Adam(parameters, lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        (-mean_log_prob()).backward()
        optimizer.step()


# Sets of 4 of 30 items, drawn from a kernel of 6 features; 12 are learned.
planted = dmsgd.KDPP(Linear(torch.randn(30, 6)), k=4)
sets, others = planted.sample(2000, seed=0), planted.sample(2000, seed=1)
B = torch.randn(30, 12, requires_grad=True)
start = log_prob(others, k=4, features=B).mean()
train([B], lambda: log_prob(sets, k=4, features=B).mean())
learned = dmsgd.KDPP(Linear(B.detach()), k=4)
after, best = (design.log_prob(others).mean() for design in (learned, planted))
print(f"planted: held-out log P {start:.2f} at the start, {after:.2f} learned, {best:.2f} true")

# Each of 600 users chose 5 of 50 candidates: good ones (feature 0), of different kinds (1 to 5).
X = torch.randn(600, 50, 16)
true = torch.exp(X[..., :1]) * normalize(X[..., 1:6], dim=-1)
chosen = np.vstack([dmsgd.KDPP(Linear(each), k=5).sample(1, seed=t) for t, each in enumerate(true)])
model = torch.nn.Linear(16, 1 + 10)  # the log of a quality, and a direction


def features(X: torch.Tensor) -> torch.Tensor:
    F: torch.Tensor = model(X)
    return torch.exp(F[..., :1]) * normalize(F[..., 1:], dim=-1)


start = log_prob(chosen[400:], k=5, features=features(X[400:])).mean()
train(model.parameters(), lambda: log_prob(chosen[:400], k=5, features=features(X[:400])).mean())
after, best = (log_prob(chosen[400:], 5, features=F[400:]).mean() for F in (features(X), true))
print(f"slates: held-out log P {start:.2f} at the start, {after:.2f} learned, {best:.2f} true")

design = dmsgd.KDPP(Linear(features(torch.randn(50, 16)).detach()), k=5)  # of a new user
print(f"two draws: {design.sample(2, seed=0).tolist()}; greedy: {design.greedy_map().tolist()}")
