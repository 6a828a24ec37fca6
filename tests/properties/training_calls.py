"""The same for what trains: torch, scikit-learn, LDA."""

from __future__ import annotations

import given
import kinds
import numpy as np
import pandas as pd
import results
import torch
from calls import FEW_ITEMS, LABELS, POSITIVE_SHARE, SEED, Call, plain
from kinds import Kind
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.linear_model import LogisticRegression, SGDClassifier
from torch.utils.data import IterableDataset, TensorDataset

import dmsgd
import dmsgd.sklearn
import dmsgd.torch
from dmsgd import lda, sgd


class Endless(IterableDataset):
    """Has no item numbers."""

    def __iter__(self):
        return iter(())


def tensors(s):
    return torch.tensor(s.X, dtype=torch.float32), torch.tensor(s.y)


def model(s):
    return torch.nn.Linear(s.d, 3)


def each_loss(outputs, targets):
    return torch.nn.functional.cross_entropy(outputs, targets, reduction="none")


def topics(s):
    return LatentDirichletAllocation(2, batch_size=s.k, total_samples=s.n)


def is_log_probabilities(logs, s, arguments):
    """Gradients of those that are finite are finite, too."""
    assert logs.dtype == torch.float64
    results.is_log_probability(logs.detach().numpy(), s, arguments)
    for name in ("features", "L"):
        if getattr(given := arguments.get(name), "requires_grad", False):
            logs[logs.isfinite()].sum().backward()
            assert given.grad.isfinite().all()


def parameter(s, X, dtype=torch.float64):
    return torch.tensor(X, dtype=dtype, requires_grad=True)


K_OF_SETS = Kind(
    {"k": lambda s: s.k},
    {k: v for k, v in kinds.BATCH_SIZE.bad.items() if k != "None"},
    {"None": lambda s: None, "n": lambda s: s.n, "1": lambda s: 1},
)
#: Features that are learned; those that no tensor holds are refused by what makes it an array.
LEARNED = Kind(
    {
        "array": lambda s: s.X,
        "float32": lambda s: parameter(s, s.X, torch.float32),
        "float64": lambda s: parameter(s, s.X),
        "half": lambda s: parameter(s, s.X, torch.float16),
    },
    {k: v for k, v in given.FEATURES_BAD.items() if k not in ("3-D", "1e300")},
    {
        **given.FEATURES_ODD,
        "3-D": lambda s: s.X[None],
        "1e300": lambda s: s.X * 1e300,
        "1e120": lambda s: parameter(s, s.X * 1e120),
        "zero rows": lambda s: parameter(s, 0 * s.X),
    },
)
KERNEL_MATRIX = Kind(
    {
        "array": lambda s: given.Gram(s).X,
        "float64": lambda s: parameter(s, given.Gram(s).X),
        "float32": lambda s: parameter(s, given.Gram(s).X, torch.float32),
    },
    given.FEATURES_BAD,
    {
        **given.FEATURES_ODD,
        "low rank": lambda s: parameter(s, s.X @ s.X.T),
        "asymmetric": lambda s: parameter(s, np.triu(s.X @ s.X.T)),
        "negative": lambda s: parameter(s, -np.eye(s.n)),
        "huge": lambda s: np.eye(s.n) * 1e140,
    },
)
MODEL = Kind({"model": model}, given.NOTHING_LIKE_IT)
DATASET = Kind(
    {"dataset": lambda s: TensorDataset(*tensors(s)),
     "list": lambda s: list(zip(*tensors(s), strict=True))},
    {**given.NOTHING_LIKE_IT, "endless": lambda s: Endless(),
     "too short": lambda s: TensorDataset(torch.ones(s.n - 1, s.d), torch.ones(s.n - 1))},
).without("structured", "sets in an array")  # fmt: skip
#: What estimators themselves look into: only what is no table at all is refused here.
TABLE = Kind(
    {"array": lambda s: s.counts, "frame": lambda s: pd.DataFrame(s.counts),
     "list": lambda s: s.counts.tolist(), "CSR": lambda s: given.sparse.csr_array(s.counts)},
    {**given.NOTHING_LIKE_IT, "too short": lambda s: s.counts[:-1], "text alone": lambda s: "X"},
    {name: given.FEATURES_BAD[name] for name in ("NaN", "text", "complex", "empty", "1-D", "3-D")},
).without("structured", "sets in an array")  # fmt: skip
TARGETS = Kind(
    {"array": lambda s: s.y, "list": lambda s: s.y.tolist(), "series": lambda s: pd.Series(s.y)},
    {**given.NOTHING_LIKE_IT, "too short": lambda s: s.y[:-1], "text alone": lambda s: "y"},
    given.LABELS_ODD,
).without("structured", "sets in an array", "surrogates", "range", "timestamps", "one class")
STEPS = {"steps": kinds.COUNT_OR_ZERO, "seed": SEED, "start": kinds.COUNT_OR_ZERO}
DRAWN = Kind({"KDPP": lambda s: s.design}, kinds.DRAWN.bad, {
    name: make for name, make in kinds.DRAWN.good.items() if name != "KDPP"
})  # fmt: skip


def is_steps(records, s, arguments):
    records = list(records)
    assert len(records) == int(arguments["steps"])
    for record in records:
        results.is_batches(record.batch[None], 1, s.k, s.n)


def all_of(function):
    """Return the call that goes through all that a function yields."""
    return lambda s, **arguments: list(function(**arguments))


def chosen(s, X, quality, given, exclude, **options):
    selector = dmsgd.sklearn.DiverseSelector(**options)
    return selector.fit(X, None, quality, given, exclude).selected_idx_


def covering(s, X, groups, costs, **options):
    """Return a fitted selector with room for all wishes, so that good ones have an answer."""
    selector = dmsgd.sklearn.DiverseSelector(at_most=s.n, budget=1e300, **options)
    return selector.fit(X, groups=groups, costs=costs)


def is_covering(selector, s, arguments):
    items, coverage = selector.selected_idx_, selector.coverage_
    results.is_items(items, s.n)
    assert len(items) == len(selector.gains_) == len(selector.stands_for_) == len(coverage) - 1
    assert (np.diff(coverage) >= -1e-9).all()
    assert coverage[-1] <= 1 + 1e-9


def classifier(s):
    return SGDClassifier(random_state=0)


ESTIMATOR = Kind(
    {"SGDClassifier": classifier},
    {**given.NOTHING_LIKE_IT, "no partial_fit": lambda s: LogisticRegression()},
)
SHARD = Kind({"auto": lambda s: "auto", "False": lambda s: False}, kinds.FLAG.bad)


def state_with(**changed):
    """Return the maker of a sampler's state in which these fields are others."""
    return lambda s: {**iter(dmsgd.torch.DiverseSampler(s.design)).state_dict(), **changed}


def without(name):
    """Return the maker of a sampler's state in which a field is missing."""
    return lambda s: {k: v for k, v in state_with()(s).items() if k != name}


def resumed(sampler, state):
    sampler.resume(state)
    return sampler


def sampler_of_four(size):
    """Return a sampler of a schedule that has four epochs."""
    return dmsgd.torch.DiverseSampler(dmsgd.presample(size.design, 4 * (size.n // size.k)))


def named(sampler, epoch):
    sampler.set_epoch(epoch)
    return sampler


def loaded(batches, state):
    batches.load_state_dict(state)
    return batches


FIELDS = ("epoch", "consumed", "steps", "k", "n", "seed", "design")
STATE = Kind(
    {"new": state_with(), "in another epoch": state_with(epoch=3)},
    {
        **given.NOTHING_LIKE_IT,
        "text": lambda s: "x",
        "empty": lambda s: {},
        **{f"no {name}": without(name) for name in FIELDS},
        **{
            f"{name} {what}": lambda s, name=name, make=make: state_with(**{name: make(s)})(s)
            for name in FIELDS
            for what, make in given.COUNT_BAD.items()
            if not (name in ("epoch", "consumed") and what == "zero")
        },
        "consumed far beyond": state_with(consumed=10**9),
        "epoch far beyond": state_with(epoch=2**63 - 1),
    },
)
#: Of a schedule that ends with epoch 3.
SHORT_STATE = Kind(
    STATE.good,
    {
        **STATE.bad,
        "epoch past the end": state_with(epoch=5),
        "in it": state_with(epoch=4, consumed=2),
    },
    {"at the end": state_with(epoch=4)},
)
EPOCH = Kind(
    {"0": lambda s: 0, "3": lambda s: 3},
    {**kinds.COUNT_OR_ZERO.bad, "past the end": lambda s: 4, "2^62": lambda s: 2**62},
)
FRAMEWORKS = ("sklearn",)
#: Weights that are negative or overflow are for the estimator to refuse.
SAMPLE_WEIGHT = kinds.NUMBERS.optional().without("1e308")

TRAINING = {
    "sgd.train_torch": Call(
        all_of(sgd.train_torch),
        {
            "model": MODEL,
            "loss": Kind({"loss": lambda s: each_loss}, given.NOTHING_LIKE_IT).without("function"),
            "optimizer": Kind(
                {"SGD": lambda s: torch.optim.SGD(model(s).parameters(), lr=0.1)},
                given.NOTHING_LIKE_IT,
            ),
            "data": Kind({"tensors": tensors}, {**DATASET.good, **DATASET.bad}),
            "design": DRAWN,
            **STEPS,
            "unbiased": kinds.FLAG,
        },
        is_steps,
    ),
    "sgd.train_sklearn": Call(
        all_of(sgd.train_sklearn),
        {
            "estimator": ESTIMATOR,
            "X": TABLE,
            "y": TARGETS,
            "design": DRAWN,
            **STEPS,
            "classes": Kind({"None": lambda s: None, "array": lambda s: np.arange(3)}, {}),
            "unbiased": kinds.FLAG,
            "sample_weight": SAMPLE_WEIGHT,
        },
        is_steps,
        FRAMEWORKS,
    ),
    "lda.train": Call(
        all_of(lda.train),
        {
            "model": Kind({"LDA": topics}, given.NOTHING_LIKE_IT),
            "counts": TABLE,
            "design": DRAWN,
            **STEPS,
        },
        is_steps,
        FRAMEWORKS,
    ),
    "sklearn.DiverseSelector": Call(
        chosen,
        {
            "X": TABLE.without("broken array", "too short"),
            "n_to_select": kinds.COUNT.without("None"),
            "how": kinds.named("medoids", "greedy"),
            "diversity": POSITIVE_SHARE,
            "quality": kinds.WEIGHTS.optional(),
            "given": FEW_ITEMS,
            "exclude": FEW_ITEMS,
        },
        lambda items, s, given: results.is_items(items, s.n),
        FRAMEWORKS,
    ),
    "sklearn.DiverseSelector (cover)": Call(
        covering,
        {
            "X": TABLE.without("broken array", "too short"),
            "metric": kinds.named("euclidean", "cosine"),
            "until": POSITIVE_SHARE.without("None").optional(),
            "duplicates": POSITIVE_SHARE.without("None").optional(),
            "groups": LABELS.without("None"),
            "costs": kinds.WEIGHTS.having(tiny=lambda s: np.full(s.n, 1e-300)),
        },
        is_covering,
        FRAMEWORKS,
    ),
    "torch.loader": Call(
        plain(dmsgd.torch.loader),
        {
            "dataset": DATASET,
            "design": DRAWN,
            "accumulation": Kind({"1": lambda s: 1}, kinds.COUNT.bad, kinds.COUNT.good),
            "steps": kinds.COUNT.optional(),
            "seed": SEED,
            "loss_weights": kinds.FLAG,
            "shard": SHARD,
            "in_order": Kind({"True": lambda s: True}, given.FLAG_BAD),
        },
        lambda loader, s, given: [list(batch) for batch in loader],
    ),
    "torch.DiverseSampler": Call(
        plain(dmsgd.torch.DiverseSampler),
        {
            "design": DRAWN,
            "steps": kinds.COUNT.optional(),
            "seed": SEED,
            "shard": SHARD,
            "num_replicas": Kind({"1": lambda s: 1}, kinds.COUNT.bad),
            "rank": Kind({"0": lambda s: 0}, kinds.COUNT_OR_ZERO.bad),
        },
        lambda sampler, s, given: results.is_items(np.array(list(sampler)), s.n),
    ),
    "torch.DiverseSampler (state)": Call(
        lambda s, state: resumed(dmsgd.torch.DiverseSampler(s.design), state),
        {"state": STATE},
        lambda sampler, s, given: results.is_items(np.array(list(sampler)), s.n),
    ),
    "torch.DiverseSampler (state, schedule)": Call(
        lambda s, state: resumed(sampler_of_four(s), state),
        {"state": SHORT_STATE},
        lambda sampler, s, given: sampler.epoch == 4
        or results.is_items(np.array(list(sampler)), s.n),
    ),
    "torch.DiverseSampler (epoch, schedule)": Call(
        lambda s, epoch: named(sampler_of_four(s), epoch),
        {"epoch": EPOCH},
        lambda sampler, s, given: results.is_items(np.array(list(sampler)), s.n),
    ),
    "torch.loader (state)": Call(
        lambda s, state: loaded(dmsgd.torch.loader(DATASET.good["dataset"](s), s.design), state),
        {"state": STATE},
        lambda loader, s, given: [list(batch) for batch in loader],
    ),
    "torch.WithLossWeights": Call(
        plain(dmsgd.torch.WithLossWeights),
        {"dataset": DATASET, "design": kinds.CLOSED},
        lambda data, s, given: results.is_finite(data.loss_weights, s, given),
    ),
    "torch.labels": Call(
        plain(dmsgd.torch.labels),
        {
            "dataset": Kind(DATASET.good, DATASET.bad).without("too short"),
            "field": Kind(
                {"None": lambda s: None, "1": lambda s: 1},
                {"text": lambda s: "label", "-1": lambda s: -1, "2": lambda s: 2,
                 "list": lambda s: [1],
                 "True": lambda s: True, "array": lambda s: np.arange(2), "1.0": lambda s: 1.0},
                {"0": lambda s: 0},
            ),
        },
        lambda found, s, given: np.testing.assert_array_equal(found, s.y),
    ),
    "torch.embed": Call(
        plain(dmsgd.torch.embed),
        {
            "model": MODEL,
            "data": DATASET.without("too short"),
            "batch_size": kinds.COUNT,
        },
        results.is_finite,
    ),
    "torch.log_prob": Call(
        plain(dmsgd.torch.log_prob),
        {"sets": kinds.BATCHES, "k": K_OF_SETS, "features": LEARNED},
        is_log_probabilities,
    ),
    "torch.log_prob (L)": Call(
        plain(dmsgd.torch.log_prob),
        {"sets": kinds.BATCHES, "k": K_OF_SETS, "L": KERNEL_MATRIX},
        is_log_probabilities,
    ),
    "torch.log_prob (any size)": Call(
        plain(dmsgd.torch.log_prob),
        {"sets": kinds.BATCHES_OF_ANY_SIZE, "features": LEARNED},
        is_log_probabilities,
    ),
}  # fmt: skip
