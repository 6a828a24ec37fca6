"""The k-DPP by accept_reject has exactly its law, and says where it cannot be had."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from contracts import check_determinism, check_draws, kdpp_law
from dmsgd.designs import accept_reject
from test_swap_chain import KERNELS, Opaque, matrix

RNG = np.random.default_rng(3)
X = RNG.normal(size=(500, 40)) * np.linspace(0.5, 2, 500)[:, None]


@pytest.mark.parametrize(
    ("name", "k"),
    [
        ("linear, full rank", 2), ("linear, k = 1", 1), ("rbf", 3), ("rank deficient", 2),
        ("duplicated rows", 2), ("a zero row", 3), ("strata, sparse", 2),
    ],
)  # fmt: skip
def test_draws_follow_the_law(name, k):
    kernel, _ = KERNELS[name]
    check_draws(dmsgd.designs.AcceptReject(kernel, k), kdpp_law(matrix(kernel), k), size=1500)


def test_all_items_that_there_are():
    kernel = dmsgd.kernels.Linear(np.vstack([np.eye(3) + 0.3, np.zeros((2, 3))]))
    draws = dmsgd.designs.AcceptReject(kernel, 3).sample(20, seed=0)
    assert {tuple(sorted(row)) for row in draws.tolist()} == {(0, 1, 2)}


def test_draws_are_functions_of_seed_and_number():
    design = dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(X), 6)
    check_determinism(design)
    again = pickle.loads(pickle.dumps(design))
    np.testing.assert_array_equal(again.sample(20, seed=1), design.sample(20, seed=1))


def test_any_kernel_will_do_and_sparse_is_the_same():
    one = dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(X), 6).sample(20, seed=0)
    for kernel in (dmsgd.kernels.Linear(sparse.csr_array(X)), Opaque(dmsgd.kernels.Linear(X))):
        np.testing.assert_array_equal(dmsgd.designs.AcceptReject(kernel, 6).sample(20, seed=0), one)


def test_items_are_seen_as_often_as_by_the_kdpp():
    design, size = dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(X), 4), 1000
    b = dmsgd.diversify(X, 4, kernel="linear", normalize=False).inclusion()
    error = (dmsgd.diagnostics.estimate_inclusion(design, size, seed=0) - b) / np.sqrt(
        b * (1 - b) / size
    )
    assert abs(np.mean(error**2) - 1) < 5 * np.sqrt(2 / b.size)


def test_the_first_place_carries_nothing():
    draws = dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(X), 4).sample(1000, seed=0)
    heavy = [np.isin(draws[:, place], np.arange(250, 500)).mean() for place in range(4)]
    assert np.ptp(heavy) < 5 * np.sqrt(0.5 / 1000)


def test_how_many_proposals_a_draw_takes():
    kernel = dmsgd.kernels.Linear(X)
    design = dmsgd.designs.AcceptReject(kernel, 6)
    values, diagonal = dmsgd.kernels.exact(kernel).values, np.sort(kernel.diag())[::-1]
    polynomials = [np.poly(-roots)[6] for roots in (values, diagonal)]
    assert design.proposals == pytest.approx(polynomials[1] / polynomials[0], rel=0.2)


@pytest.mark.parametrize("scale", [1e-120, 1e-60, 1e8, 1e140])
def test_the_scale_of_a_kernel_does_not_matter(scale):
    one = dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(X), 6).sample(20, seed=0)
    np.testing.assert_array_equal(
        dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(scale * X), 6).sample(20, seed=0), one
    )


def test_too_much_repulsion_is_refused():
    with pytest.raises(ValueError, match=r"too much for AcceptReject at k=30: .*SwapChain"):
        dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(X), 30)
    with pytest.raises(ValueError, match="too much for AcceptReject at k=41"):  # the rank is 40
        dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(X), 41)
    near = np.ones((90, 5)) + 3e-3 * RNG.normal(size=(90, 5))  # 10,000 proposals for each batch
    with pytest.raises(ValueError, match="proposals"):
        dmsgd.designs.AcceptReject(dmsgd.kernels.RBF(near, 1.0), 2)
    with pytest.raises(dmsgd.RankError, match="length 0"):
        dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(np.eye(5, 3)), 4)
    with pytest.raises(ValueError, match="L must be square"):
        dmsgd.designs.AcceptReject(X, 3)


def test_a_draw_that_is_never_kept_is_an_error(monkeypatch):
    design = dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(X), 6)
    monkeypatch.setattr(accept_reject, "MAX_PROPOSALS", 1)
    monkeypatch.setattr(type(design), "_acceptance_probability", lambda *_: 0.0)
    with pytest.raises(dmsgd.SamplingError, match=r"draw 0 .* none of 100 proposals was accepted"):
        design.sample(1, seed=0)


def test_it_goes_where_designs_go(tmp_path):
    design = dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(X), 6)
    schedule = dmsgd.presample(design, 20, seed=2, path=tmp_path / "batches.npy")
    np.testing.assert_array_equal(schedule.batches, design.sample(20, seed=2))
    with pytest.raises(TypeError, match="AcceptReject has no closed form"):
        dmsgd.unbiased_weights(design)
    assert (
        design.fingerprint() != dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(X), 5).fingerprint()
    )
    assert (
        design.fingerprint()
        != dmsgd.designs.AcceptReject(dmsgd.kernels.Linear(2 * X), 6).fingerprint()
    )
