"""What results must be: shapes, types, probabilities, and the same again."""

from __future__ import annotations

import pickle

import numpy as np
from scipy import sparse

import dmsgd


def is_batches(rows, size, k, n):
    assert rows.shape == (size, k), rows.shape
    assert rows.dtype == np.int64
    assert all(len(set(row)) == k for row in rows.tolist())
    assert rows.size == 0 or (rows.min() >= 0 and rows.max() < n)


def is_design(design, s=None, arguments=None):
    """Draws, probabilities, fingerprint and pickle are what they are promised to be."""
    is_batches(design.sample(3, seed=0), 3, design.k, design.n)
    assert design.sample(2, seed=1, start=1).tolist() == design.sample(3, seed=1)[1:].tolist()
    assert len(design.fingerprint()) == 64
    again = pickle.loads(pickle.dumps(design))
    assert again.fingerprint() == design.fingerprint()
    if isinstance(design, dmsgd.designs.ClosedForm):
        is_inclusion(design.inclusion(), design.k, design.n)
        everyone = np.arange(design.n)
        joint = design.joint(everyone[:, None], everyone)
        np.testing.assert_allclose(joint, joint.T, atol=1e-9)
        own = design.log_prob(design.sample(3, seed=0))
        assert np.isfinite(own).all()
        assert (own <= 1e-9).all()
        b = design.inclusion()
        if b.min() > 1e-290:
            np.testing.assert_allclose(dmsgd.unbiased_weights(design) * b * design.n, 1.0)


def is_inclusion(b, k, n, tolerance=1e-6):
    assert b.shape == (n,)
    assert b.dtype == np.float64
    assert b.min() >= 0
    assert b.max() <= 1 + tolerance
    assert abs(b.sum() - k) <= tolerance * k


def is_matrix(matrix, s, arguments):
    values = matrix.data if sparse.issparse(matrix) else matrix
    assert values.dtype == np.float64
    assert matrix.ndim == 2
    assert np.isfinite(np.asarray(values, dtype=float)).all()


def is_kernel(kernel, s, arguments):
    everyone = np.arange(kernel.n)
    L = kernel.block(everyone, everyone)
    assert np.isfinite(L).all()
    np.testing.assert_allclose(L.diagonal(), kernel.diag(), rtol=1e-9, atol=1e-9 * abs(L).max())
    np.testing.assert_allclose(kernel.columns([0]), L[:, [0]], rtol=1e-7, atol=1e-9 * abs(L).max())
    assert len(kernel.fingerprint()) == 64
    repr(kernel)


def is_spectrum(spectrum, s, arguments):
    is_coreset(spectrum, s, arguments)
    assert spectrum.trace_error <= 1


def is_coreset(spectrum, s, arguments):
    """The same, but what items are moved by may be more than the trace."""
    assert (spectrum.values > 0).all()
    V = np.asarray(spectrum.vectors)
    assert V.shape == (spectrum.n, spectrum.rank)
    np.testing.assert_allclose(V.T @ V, np.eye(spectrum.rank), atol=1e-7)
    assert spectrum.trace_error >= 0
    assert len(spectrum.fingerprint()) == 64


def is_number(result, s, arguments, least=-np.inf, most=np.inf):
    assert isinstance(result, float)
    assert least <= result <= most


def is_positive(result, s, arguments):
    is_number(result, s, arguments, 0.0)


def is_finite(result, s, arguments):
    assert np.isfinite(np.asarray(result, dtype=float)).all()


def is_anything(result, s, arguments):
    """The result is checked elsewhere; here it is there."""
    assert result is not None


def is_sample(result, s, arguments):
    is_batches(result, int(arguments["size"]), s.k, s.n)


def is_sample_of_any_size(result, s, arguments):
    assert len(result) == int(arguments["size"])
    for batch in result:
        is_batches(batch[None], 1, batch.size, s.n)


def is_items(items, n):
    assert items.dtype == np.int64
    assert items.size == 0 or (items.min() >= 0 and items.max() < n)


def is_dpp(design, s, arguments):
    is_sample_of_any_size(design.sample(3, seed=0), s, {"size": 3})
    assert (design.inclusion() >= 0).all()
    assert abs(design.inclusion().sum() - design.expected_size) < 1e-6 * design.n
    sizes = design.size_distribution()
    assert abs(sizes @ np.arange(sizes.size) - design.expected_size) < 1e-9 * design.n
    np.testing.assert_allclose(design.marginal_kernel().diagonal(), design.inclusion(), atol=1e-9)
    greedy = design.greedy_map()
    is_batches(greedy[None], 1, greedy.size, s.n)
    likely = design.log_prob([*design.sample(3, seed=0), greedy])
    assert np.isfinite(likely).all()
    assert (likely <= 1e-9).all()


def is_probability(result, s, arguments):
    assert result.dtype == np.float64
    assert (result >= 0).all()
    assert (result <= 1 + 1e-9).all()


def is_log_probability(result, s, arguments):
    assert not np.isnan(result).any()
    assert (result <= 1e-9).all()


def is_share(shares):
    assert min(shares) >= 0
    assert abs(sum(shares) - 1) < 1e-9


def is_schedule(schedule, s, arguments):
    assert len(schedule) == int(arguments["steps"])
    is_batches(np.array(schedule.batches), len(schedule), s.k, s.n)
