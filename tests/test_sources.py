import doctest

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import dmsgd
from dmsgd import sources

X = np.random.default_rng(0).normal(size=(60, 5))
DESIGN = dmsgd.diversify(X, k=4)


def test_at_most_a_chunk_is_drawn_ahead():
    class Counting:
        n, k = 60, 4

        def sample(self, size, seed=None, *, start=0, workers=1):
            sizes.append(size)
            return DESIGN.sample(size, seed, start=start)

    sizes = []
    batches = sources.draws(Counting(), 10**9, seed=0, start=0)
    for _ in range(sources.CHUNK):
        next(batches)
    assert sizes == [0, sources.CHUNK]


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_gives_one_stream_of_draws(make):
    steps = 3 * sources.CHUNK
    once = [b.tolist() for _, b in sources.draws(DESIGN, steps, make(1), 0)]
    assert once == [b.tolist() for _, b in sources.draws(DESIGN, steps, make(1), 0)]
    assert len({tuple(batch) for batch in once}) > steps / 2
    fresh = [b.tolist() for _, b in sources.draws(DESIGN, steps, None, 0)]
    assert fresh != [b.tolist() for _, b in sources.draws(DESIGN, steps, None, 0)]


@pytest.mark.parametrize("seed", [7, np.int64(7), np.random.SeedSequence(7)])
def test_a_fixed_seed_gives_the_draws_of_the_design(seed):
    batches = [b for _, b in sources.draws(DESIGN, 5, seed, 0)]
    np.testing.assert_array_equal(batches, DESIGN.sample(5, seed=7))


def test_rows_by_position_in_the_same_container():
    batch = np.array([7, 3])
    frame = pd.DataFrame(X, index=range(60, 0, -1))
    for data in (X, frame, pl.DataFrame(X), sparse.csr_array(X), sparse.coo_array(X)):
        rows = sources.take(sources.as_rows(data, "X"), batch)
        dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
        np.testing.assert_array_equal(dense, X[batch])
        assert sparse.issparse(data) or type(rows) is type(data)


def test_examples():
    result = doctest.testmod(sources)
    assert result.attempted > 0
    assert result.failed == 0
