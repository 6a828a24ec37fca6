import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import dmsgd
from dmsgd.designs import stream
from dmsgd.runtime.threads import draw_in_parallel

X = np.random.default_rng(0).normal(size=(60, 5))
DESIGN = dmsgd.diversify(X, k=4)
#: Ways to batches other than the default, each to be had by one line.
CHOICES = {
    "coreset": dmsgd.KDPP(dmsgd.kernels.coreset(dmsgd.kernels.Linear(X), cores=30), 4),
    "coreset, RBF": dmsgd.KDPP(dmsgd.kernels.coreset(dmsgd.kernels.RBF(X), cores=50), 4),
    "pivoted Cholesky": dmsgd.KDPP(dmsgd.kernels.pivoted_cholesky(dmsgd.kernels.RBF(X), 40), 4),
    "swap chain": dmsgd.designs.SwapChain(
        dmsgd.kernels.RBF(X), 4, burn_in=30, thin=5, chain_length=20
    ),
    "schedule of a swap chain": dmsgd.presample(
        dmsgd.designs.SwapChain(dmsgd.kernels.Linear(X), 4), 40, seed=7
    ),
}


class Counting(dmsgd.Uniform):
    """Notes how many batches each call asks for."""

    def __init__(self):
        super().__init__(60, 4)
        self.sizes = []

    def sample(self, size, seed=None, *, start=0, workers=1):
        self.sizes.append(size)
        return super().sample(size, seed, start=start)


class Reading(Counting):
    chunk = 1000


@pytest.mark.parametrize(("design", "size"), [(Counting(), stream.CHUNK), (Reading(), 1000)])
def test_at_most_a_chunk_is_drawn_ahead(design, size):
    batches = design.stream(0).batches(start=0, steps=10**9)
    for _ in range(size):
        next(batches)
    assert design.sizes == [0, size]


def test_a_schedule_that_is_too_short_raises_at_once():
    with pytest.raises(ValueError, match="40"):
        CHOICES["schedule of a swap chain"].stream(0).batches(start=11, steps=30)


@pytest.mark.parametrize("name", ["coreset", "schedule of a swap chain"])
def test_a_stream_knows_its_design_seed_and_end(name):
    design = CHOICES[name]
    batches = design.stream(7)
    assert (batches.n, batches.k, batches.seed) == (60, 4, 7)
    assert batches.steps == (40 if name.startswith("schedule") else None)
    assert batches.fingerprint == design.fingerprint()
    np.testing.assert_array_equal(batches.sample(5, start=3), design.sample(5, 7, start=3))


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_gives_one_stream_of_draws(make):
    def drawn(seed):
        return [batch.tolist() for _, batch in DESIGN.stream(seed).batches(0, steps)]

    steps = 3 * stream.CHUNK
    once = drawn(make(1))
    assert once == drawn(make(1))
    assert len({tuple(batch) for batch in once}) > steps / 2
    assert drawn(None) != drawn(None)


@pytest.mark.parametrize("seed", [7, np.int64(7), np.random.SeedSequence(7)])
def test_a_fixed_seed_gives_the_draws_of_the_design(seed):
    batches = [batch for _, batch in DESIGN.stream(seed).batches(0, 5)]
    np.testing.assert_array_equal(batches, DESIGN.sample(5, seed=7))


def in_torch(design, steps):
    import torch

    from dmsgd.sgd import train_torch

    model, loss = torch.nn.Linear(5, 3), torch.nn.CrossEntropyLoss(reduction="none")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.tensor(X, dtype=torch.float32), torch.arange(60) % 3
    return [step.batch for step in train_torch(model, loss, optimizer, data, design, steps, seed=7)]


def in_sklearn(design, steps):
    from sklearn.linear_model import SGDClassifier

    from dmsgd.sgd import train_sklearn

    trained = train_sklearn(SGDClassifier(), X, np.arange(60) % 2, design, steps, seed=7)
    return [step.batch for step in trained]


def in_lda(design, steps):
    from sklearn.decomposition import LatentDirichletAllocation

    from dmsgd import lda

    model = LatentDirichletAllocation(2, batch_size=design.k, total_samples=design.n)
    counts = np.abs(X).round().astype(int) + 1
    return [update.batch for update in lda.train(model, counts, design, steps, seed=7)]


def in_a_loader(design, steps):
    import torch
    from torch.utils.data import DataLoader

    from dmsgd.torch import DiverseSampler

    sampler = DiverseSampler(design, steps=steps, seed=7)
    batches = DataLoader(torch.arange(60), batch_size=4, sampler=sampler)
    return [batch.numpy() for batch in batches]


@pytest.mark.parametrize("loop", [in_torch, in_sklearn, in_lda, in_a_loader])
@pytest.mark.parametrize("name", CHOICES)
def test_every_way_to_batches_is_a_drop_in(name, loop):
    design = CHOICES[name]
    np.testing.assert_array_equal(loop(design, 30), design.sample(30, seed=7))


@pytest.mark.parametrize("name", ["swap chain", "schedule of a swap chain"])
def test_unbiased_weights_of_a_drop_in_without_closed_forms_are_refused(name):
    with pytest.raises((TypeError, ValueError), match=r"no closed form.*np.bincount"):
        dmsgd.unbiased_weights(CHOICES[name])


def test_what_has_no_fixed_k_is_refused():
    with pytest.raises(TypeError, match="Schedule, got DPP"):
        stream.check_design(dmsgd.DPP(DESIGN.spectrum), 60, "X")
    with pytest.raises(ValueError, match="X has 61 items, the design 60"):
        stream.check_design(CHOICES["swap chain"], 61, "X")


def test_a_draw_that_fails_blames_the_spectrum_only_if_it_is_at_fault():
    def gives_up(first, out):
        return 1

    with pytest.raises(dmsgd.SamplingError, match=r"draw 6 was not completed: its sampler"):
        draw_in_parallel(gives_up, start=5, size=3, k=2, workers=1)


def test_rows_by_position_in_the_same_container():
    batch = np.array([7, 3])
    frame = pd.DataFrame(X, index=range(60, 0, -1))
    for data in (X, frame, pl.DataFrame(X), sparse.csr_array(X), sparse.coo_array(X)):
        rows = stream.take(stream.as_indexable(data, "X"), batch)
        dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
        np.testing.assert_array_equal(dense, X[batch])
        assert sparse.issparse(data) or type(rows) is type(data)
