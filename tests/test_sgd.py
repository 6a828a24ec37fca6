from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from torch.utils.data import TensorDataset

import dmsgd
from dmsgd.designs.stream import CHUNK
from dmsgd.sgd import train_sklearn, train_torch

RNG = np.random.default_rng(0)
X8, Y8 = RNG.normal(size=(8, 4)), np.arange(8) % 3
EVERY_BATCH = np.array(list(combinations(range(8), 3)))
DESIGNS = {
    "k-DPP": dmsgd.diversify(X8, k=3, labels=Y8, w=0.4),
    "stratified": dmsgd.Stratified(Y8 // 2, k=3),
    "uniform": dmsgd.Uniform(8, 3),
}
X, Y = RNG.normal(size=(60, 5)), np.arange(60) % 3
DESIGN = dmsgd.diversify(X, k=4)
CROSS_ENTROPY = torch.nn.CrossEntropyLoss(reduction="none")


class Always(dmsgd.Design):
    """A design that draws one given batch, with the inclusion probabilities of a real one."""

    def __init__(self, design, batch):
        self.n, self.k, self.inclusion, self.batch = design.n, design.k, design.inclusion, batch

    def _draw(self, key, start, size, workers):
        return np.tile(self.batch, (size, 1))

    def fingerprint(self):
        return "always"


def network(inputs):
    """A small network whose weights are the same at every call."""
    generator = torch.Generator().manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(inputs, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3)
    ).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return model


def flat(model):
    return torch.cat([p.detach().ravel() for p in model.parameters()]).numpy().copy()


def gradient(weights):
    """The gradient of Σ_i weights_i l_i over all eight items, and that sum."""
    model = network(4)
    risk = CROSS_ENTROPY(model(torch.tensor(X8)), torch.tensor(Y8)) @ torch.tensor(weights)
    risk.backward()
    return torch.cat([p.grad.ravel() for p in model.parameters()]).numpy(), risk.item()


def expected_update(design, unbiased):
    """E[θ_0 - θ_1] at learning rate 1 and E[loss], through the real loop, over all batches."""
    update, loss = 0.0, 0.0
    data = (torch.tensor(X8), torch.tensor(Y8))
    for batch, probability in zip(EVERY_BATCH, np.exp(design.log_prob(EVERY_BATCH)), strict=True):
        model = network(4)
        before = flat(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        (record,) = train_torch(
            model, CROSS_ENTROPY, optimizer, data, Always(design, batch), 1, unbiased=unbiased
        )
        update += probability * (before - flat(model))
        loss += probability * record.loss
    return update, loss


@pytest.mark.parametrize("name", DESIGNS)
def test_biased_steps_follow_the_diversified_risk(name):
    design = DESIGNS[name]
    update, loss = expected_update(design, unbiased=False)
    full, risk = gradient(design.inclusion() / design.k)
    np.testing.assert_allclose(update, full, atol=1e-10)
    assert loss == pytest.approx(risk, abs=1e-10)


@pytest.mark.parametrize("name", DESIGNS)
def test_unbiased_steps_follow_the_full_mean_gradient(name):
    update, loss = expected_update(DESIGNS[name], unbiased=True)
    full, risk = gradient(np.full(8, 1 / 8))
    np.testing.assert_allclose(update, full, atol=1e-10)
    assert loss == pytest.approx(risk, abs=1e-10)


def test_the_two_risks_differ_so_that_the_tests_above_can_tell_them_apart():
    biased, _ = gradient(DESIGNS["k-DPP"].inclusion() / 3)
    assert np.abs(biased - gradient(np.full(8, 1 / 8))[0]).max() > 0.01


def run_torch(data, steps=10, *, model=None, optimizer=None, design=DESIGN, **options):
    model = model or network(5)
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    records = list(train_torch(model, CROSS_ENTROPY, optimizer, data, design, steps, **options))
    return records, model, optimizer


TENSORS = (torch.tensor(X), torch.tensor(Y))


def test_several_inputs_reach_the_model():
    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network(5)

        def forward(self, a, b):
            return self.inner(a + b)

    halves = (TENSORS[0] / 2, TENSORS[0] / 2, TENSORS[1])
    expected, _, _ = run_torch(TENSORS)
    records, _, _ = run_torch(halves, model=Sum())
    assert [r.loss for r in records] == pytest.approx([r.loss for r in expected])


def test_batches_go_to_the_models_device():
    """On the meta device, which every machine has; only the value of the loss is missing there."""
    devices = []

    def loss(outputs, targets):
        devices.extend([outputs.device.type, targets.device.type])
        return CROSS_ENTROPY(outputs, targets)

    records = in_torch(model=network(5).to("meta"), loss=loss, unbiased=True)()
    with pytest.raises(RuntimeError, match="meta"):
        next(records)
    assert devices == ["meta", "meta"]


def test_several_steps_by_hand():
    model, by_hand = network(5), network(5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    records = train_torch(model, CROSS_ENTROPY, optimizer, TENSORS, DESIGN, 4)
    for record, batch in zip(records, DESIGN.sample(4, seed=0), strict=True):
        loss = CROSS_ENTROPY(by_hand(TENSORS[0][batch]), TENSORS[1][batch]).sum() / 4
        assert record.loss == pytest.approx(loss.item())
        parameters = list(by_hand.parameters())
        with torch.no_grad():
            for parameter, slope in zip(
                parameters, torch.autograd.grad(loss, parameters), strict=True
            ):
                parameter -= 0.1 * slope
        np.testing.assert_allclose(flat(model), flat(by_hand), rtol=1e-12)


def test_records_are_the_draws_in_order_whatever_the_chunks():
    steps = 2 * CHUNK + 5
    records, _, _ = run_torch(TENSORS, steps, seed=3, start=7)
    assert [r.step for r in records] == list(range(7, 7 + steps))
    batches = np.array([r.batch for r in records])
    np.testing.assert_array_equal(batches, DESIGN.sample(steps, seed=3, start=7))


def test_stopped_training_goes_on_where_it_was():
    expected, model, _ = run_torch(TENSORS, 10)
    first, resumed, optimizer = run_torch(TENSORS, 4)
    second, _, _ = run_torch(TENSORS, 6, model=resumed, optimizer=optimizer, start=4)
    assert [r.loss for r in first + second] == [r.loss for r in expected]
    np.testing.assert_array_equal(flat(resumed), flat(model))


def test_no_update_is_made_before_it_is_asked_for():
    model = network(5)
    before = flat(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    records = train_torch(model, CROSS_ENTROPY, optimizer, TENSORS, DESIGN, 5)
    np.testing.assert_array_equal(flat(model), before)
    next(records)
    once = flat(model)
    assert np.abs(once - before).max() > 0
    records.close()
    np.testing.assert_array_equal(flat(model), once)


def test_a_schedule_stands_for_its_design():
    schedule = dmsgd.presample(DESIGN, 70, seed=11)
    expected, model, _ = run_torch(TENSORS, 70, seed=11, unbiased=True)
    records, same, _ = run_torch(TENSORS, 70, design=schedule, unbiased=True)
    assert [r.loss for r in records] == [r.loss for r in expected]
    np.testing.assert_array_equal(flat(same), flat(model))


class Recorder:
    """An estimator that remembers what it was given."""

    def __init__(self):
        self.calls = []

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        self.calls.append((X, y, classes, sample_weight))


CONTAINERS = {
    "array": (X, Y),
    "list": (X.tolist(), Y.tolist()),
    "CSR": (sparse.csr_array(X), Y),
    "COO": (sparse.coo_matrix(X), Y),
    "pandas": (pd.DataFrame(X, index=RNG.permutation(60)), pd.Series(Y, index=range(60, 0, -1))),
    "polars": (pl.DataFrame(X), pl.Series(Y)),
}


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


@pytest.mark.parametrize("name", CONTAINERS)
def test_sklearn_gets_the_rows_of_each_draw(name):
    estimator, (data, targets) = Recorder(), CONTAINERS[name]
    records = list(train_sklearn(estimator, data, targets, DESIGN, 5, seed=2, unbiased=True))
    batches = DESIGN.sample(5, seed=2)
    b = DESIGN.inclusion()
    for record, batch, call in zip(records, batches, estimator.calls, strict=True):
        rows, answers, classes, weights = call
        np.testing.assert_array_equal(record.batch, batch)
        np.testing.assert_array_equal(dense(rows), X[batch])
        np.testing.assert_array_equal(np.asarray(answers), Y[batch])
        np.testing.assert_allclose(weights, 4 / (60 * b[batch]))
        assert (classes is not None) == (record.step == 0)
        assert record.loss is None
    if name in ("pandas", "polars"):
        assert type(rows) is type(data)
    assert estimator.calls[0][2].tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["array", "CSR", "pandas", "polars"])
def test_sklearn_training_equals_partial_fit_by_hand(name):
    data, targets = CONTAINERS[name]
    model, by_hand = SGDClassifier(random_state=0), SGDClassifier(random_state=0)
    for _ in train_sklearn(model, data, targets, DESIGN, 30, unbiased=True):
        pass
    weights = 4 * dmsgd.unbiased_weights(DESIGN)
    rows = sparse.csr_array(X) if name == "CSR" else X  # SGD treats the intercept differently
    for batch in DESIGN.sample(30, seed=0):
        by_hand.partial_fit(rows[batch], Y[batch], [0, 1, 2], weights[batch])
    np.testing.assert_allclose(model.coef_, by_hand.coef_)


def test_unbiased_weights_give_every_item_the_same_say_and_mean_one():
    design, say, mean = DESIGNS["k-DPP"], np.zeros(8), 0.0
    for batch, probability in zip(EVERY_BATCH, np.exp(design.log_prob(EVERY_BATCH)), strict=True):
        estimator = Recorder()
        list(train_sklearn(estimator, X8, Y8, Always(design, batch), 1, unbiased=True))
        weights = estimator.calls[0][3]
        say[batch] += probability * weights
        mean += probability * weights.mean()
    np.testing.assert_allclose(say, 3 / 8, atol=1e-10)
    assert mean == pytest.approx(1.0, abs=1e-10)


def test_estimators_of_other_kinds():
    means = MiniBatchKMeans(3, random_state=0, n_init=1)
    design = dmsgd.diversify(X, k=5)
    assert len(list(train_sklearn(means, X, None, design, 20, unbiased=True))) == 20
    assert means.cluster_centers_.shape == (3, 5)
    regressor = SGDRegressor(random_state=0)
    list(train_sklearn(regressor, X, X @ np.arange(5.0), DESIGN, 500))
    np.testing.assert_allclose(regressor.coef_, np.arange(5), atol=0.2)
    bayes = GaussianNB()
    list(train_sklearn(bayes, X, Y, DESIGN, 50, classes=[0, 1, 2, 9]))
    assert bayes.classes_.tolist() == [0, 1, 2, 9]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("estimator", [GaussianNB(), MLPClassifier((4,), random_state=0)])
def test_batches_of_weight_0_are_not_passed_on(estimator):
    """GaussianNB refuses them, and an MLP divides by their sum."""
    rows, classes = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    weights, design = np.arange(1, 31) % 2 * 1.0, dmsgd.Uniform(30, 1)
    assert weights[design.sample(1, seed=0)] == 0  # the first batch
    learned = clone(estimator)
    assert len(list(train_sklearn(learned, rows, classes, design, 90, sample_weight=weights))) == 90
    assert np.isfinite(learned.predict_proba(rows)).all()
    nothing = train_sklearn(GaussianNB(), rows, classes, design, 1, sample_weight=0 * weights)
    with pytest.raises(ValueError, match="weight"):
        list(nothing)


@pytest.mark.parametrize("unbiased", [False, True])
def test_weights_of_items_reach_their_batches(unbiased):
    estimator, weights = Recorder(), 1 + np.arange(60.0)
    options = {"seed": 2, "unbiased": unbiased, "sample_weight": weights.tolist()}
    list(train_sklearn(estimator, X, Y, DESIGN, 9, **options))
    expected = weights * (4 * dmsgd.unbiased_weights(DESIGN) if unbiased else 1)
    for batch, (_, _, _, given) in zip(DESIGN.sample(9, seed=2), estimator.calls, strict=True):
        np.testing.assert_array_equal(given, expected[batch])


def test_other_arguments_reach_every_batch_those_per_item_in_parts():
    seen = []

    class Custom:
        def partial_fit(self, data, target, **options):
            seen.append(options)

    list(train_sklearn(Custom(), X, Y, DESIGN, 3, costs=list(range(60)), rate=0.5, note="a"))
    for batch, options in zip(DESIGN.sample(3, seed=0), seen, strict=True):
        assert options.pop("costs").tolist() == batch.tolist()
        assert options == {"rate": 0.5, "note": "a"}


def test_several_labels_per_item():
    several = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    network = MLPClassifier((8,), random_state=0)
    list(train_sklearn(network, X, several, DESIGN, 15))
    assert network.predict(X).shape == (60, 2)


def test_sklearn_training_goes_on_where_it_was():
    whole, parts = SGDClassifier(random_state=0), SGDClassifier(random_state=0)
    list(train_sklearn(whole, X, Y, DESIGN, 10))
    list(train_sklearn(parts, X, Y, DESIGN, 4))
    records = list(train_sklearn(parts, X, Y, DESIGN, 6, start=4))
    assert [r.step for r in records] == [4, 5, 6, 7, 8, 9]
    np.testing.assert_allclose(parts.coef_, whole.coef_)


def in_torch(data=TENSORS, design=DESIGN, steps=1, loss=CROSS_ENTROPY, model=None, **options):
    model = model or network(5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return lambda: train_torch(model, loss, optimizer, data, design, steps, **options)


def in_sklearn(estimator, data=X, y=Y, design=DESIGN, steps=1, **options):
    return lambda: train_sklearn(estimator, data, y, design, steps, **options)


NEVER = dmsgd.diversify(np.vstack([X[:-1], np.zeros(5)]), k=4)
BAD = {
    "other n": (in_torch((TENSORS[0][:9], TENSORS[1][:9])), ValueError, "9 items, the design 60"),
    "lengths": (in_torch((TENSORS[0], TENSORS[1][:9])), ValueError, r"lengths: \[60, 9\]"),
    "one tensor": (in_torch(TENSORS[:1]), TypeError, r"two or more tensors.*\['Tensor'\]"),
    "arrays": (in_torch((X, Y)), TypeError, r"tensors.*\['ndarray', 'ndarray'\]"),
    "no tensors": (in_torch(()), TypeError, "two or more tensors"),
    "dataset": (in_torch(TensorDataset(*TENSORS)), TypeError, "tensors.*got TensorDataset"),
    "iterator": (in_torch(iter([])), TypeError, "tensors.*got list_iterator"),
    "negative steps": (in_torch(steps=-1), ValueError, "steps must be at least 0, got -1"),
    "steps a float": (in_torch(steps=1.5), TypeError, "steps must be an integer"),
    "negative start": (in_torch(start=-1), ValueError, "start must be at least 0, got -1"),
    "seed": (in_torch(seed="x"), TypeError, "seed must be None"),
    "seed negative": (in_torch(seed=-1), ValueError, "negative"),
    "no fixed k": (in_torch(design=dmsgd.DPP(DESIGN.spectrum)), TypeError, "fixed k.*got DPP"),
    "schedule too short": (
        in_torch(design=dmsgd.presample(DESIGN, 70), steps=71), ValueError, "the schedule has 70"),
    "never drawn": (in_torch(design=NEVER, unbiased=True), ValueError, "never drawn.*item 59"),
    "sklearn other n": (in_sklearn(GaussianNB(), X[:9]), ValueError, "9 items, the design 60"),
    "sklearn y": (in_sklearn(GaussianNB(), y=Y[:9]), ValueError, "y has 9 items, the design 60"),
    "sklearn X None": (in_sklearn(GaussianNB(), None), TypeError, "X is None"),
    "sklearn X a number": (in_sklearn(GaussianNB(), 1.0), ValueError, "one row per item"),
    "sklearn steps": (in_sklearn(GaussianNB(), steps=-1), ValueError, "at least 0, got -1"),
    "no partial_fit": (in_sklearn(PCA()), TypeError, "PCA has no partial_fit"),
    "y needed": (in_sklearn(GaussianNB(), y=None), ValueError, "requires y"),
    "no sample_weight": (
        in_sklearn(IncrementalPCA(), unbiased=True), TypeError,
        "IncrementalPCA.partial_fit takes no sample_weight"),
    "unknown argument": (
        in_sklearn(GaussianNB(), sample_wieght=np.ones(60)), TypeError, "takes no sample_wieght;"),
    "too few weights": (
        in_sklearn(GaussianNB(), sample_weight=np.ones(59)), ValueError,
        "sample_weight must have one number per item"),
    "no classes": (in_sklearn(SGDRegressor(), classes=[0]), TypeError, "takes no classes"),
    "sklearn never drawn": (
        in_sklearn(GaussianNB(), design=NEVER, unbiased=True), ValueError, "never drawn.*item 59"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_before_any_work(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()


BAD_LATER = {
    "mean loss": (in_torch(loss=torch.nn.CrossEntropyLoss()), ValueError, r"\(4,\), got \(\)"),
    "loss of a column": (
        in_torch(loss=lambda a, b: (a - b[:, None]) ** 2), ValueError, r"\(4,\), got \(4, 3\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_LATER)
def test_what_only_a_batch_can_show_is_refused_at_the_first_step(name):
    call, error, message = BAD_LATER[name]
    with pytest.raises(error, match=message):
        next(call())
