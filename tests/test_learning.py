"""`log_prob` has the values of KDPP and DPP and the gradients of differences; on a GPU, too."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import dmsgd
from dmsgd.kernels import Linear
from dmsgd.torch import log_prob

DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]
RAGGED = [[0, 1, 2], [3], [], [2, 1]]


@pytest.fixture(params=DEVICES)
def normal(request):
    """Return the function that makes random parameters, on each device."""

    def make(*shape, dtype=torch.float64, scale=1.0):
        numbers = scale * torch.randn(*shape, dtype=torch.float64)
        return numbers.to(request.param, dtype).requires_grad_()

    return make


def check_gradient(function, parameter):
    """The gradient is that of finite differences; a GPU may add in any order."""
    assert gradcheck(function, parameter, nondet_tol=1e-10)


def gradient(logs, parameter):
    return torch.autograd.grad(logs.sum(), parameter)[0]


def host(tensor):
    return tensor.detach().cpu().numpy()


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize(("n", "d"), [(8, 5), (8, 3), (4, 9), (6, 6)])
def test_gradients_of_features(normal, n, d, k):
    """Tall, d = k, wide and square."""
    check_gradient(
        lambda B: log_prob([[0, 1, 2], [3, 1, 2]] if k else RAGGED, k, features=B), normal(n, d)
    )


@pytest.mark.parametrize("k", [2, None])
def test_gradients_of_kernels(normal, k):
    sets = [[0, 1], [3, 5]] if k else RAGGED
    check_gradient(lambda A: log_prob(sets, k, L=A @ A.mT), normal(6, 6))
    check_gradient(lambda A: log_prob(sets, k, L=torch.exp(-torch.cdist(A, A))), normal(6, 2))


@pytest.mark.parametrize("k", [3, None])
def test_many_ground_sets(normal, k):
    """They are as one by one, and rows of zeros change nothing."""
    B = normal(4, 7, 5)
    one = torch.arange(12).reshape(4, 3) % 7
    more = torch.stack([one, (one + 3) % 7], 1)
    each = torch.stack([log_prob(more[q], k, features=B[q]) for q in range(4)])
    longer = torch.cat([B, torch.zeros_like(B[:, :2])], 1)
    for found in (
        log_prob(more, k, features=B),
        log_prob(more, k, features=longer),
        log_prob(more, k, L=B @ B.mT),
    ):
        torch.testing.assert_close(found, each, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(log_prob(one, k, features=B), each[:, 0], rtol=1e-10, atol=1e-10)
    check_gradient(lambda B: log_prob(one, k, features=B), B)
    check_gradient(lambda B: log_prob(more, k, features=B), B)
    check_gradient(lambda B: log_prob(more, k, L=B @ B.mT + torch.eye(7).to(B)), B)


def test_ground_sets_with_sets_of_different_sizes(normal):
    B = normal(4, 7, 5)
    each = torch.stack([log_prob([Y], features=B[q])[0] for q, Y in enumerate(RAGGED)])
    torch.testing.assert_close(log_prob(RAGGED, features=B), each, rtol=1e-10, atol=1e-10)
    check_gradient(lambda B: log_prob(RAGGED, features=B), B)


@pytest.mark.parametrize(("n", "d", "k"), [(9, 4, 3), (9, 4, 4), (7, 12, 5), (9, 4, None)])
def test_probabilities_are_those_of_the_designs(normal, n, d, k):
    B = normal(n, d)
    sizes = range(d + 1) if k is None else [k]
    every = [list(Y) for size in sizes for Y in combinations(range(n), size)]
    kernel = Linear(host(B))
    design = dmsgd.DPP(kernel) if k is None else dmsgd.KDPP(kernel, k)
    for found in (log_prob(every, k, features=B), log_prob(every, k, L=B @ B.mT)):
        assert found.dtype == torch.float64
        assert found.device == B.device
        assert found.exp().sum().item() == pytest.approx(1, abs=1e-11)
        np.testing.assert_allclose(host(found), design.log_prob(every), rtol=1e-9, atol=1e-9)


def test_large_features_have_the_values_of_the_design(normal):
    B = normal(2000, 100)
    design = dmsgd.KDPP(Linear(host(B)), 20)
    Y = design.sample(20, seed=0)
    np.testing.assert_allclose(
        host(log_prob(Y, 20, features=B)), design.log_prob(Y), rtol=1e-9, atol=0
    )


@pytest.mark.parametrize("k", [3, None])
def test_gradients_are_those_of_autograd_through_eigenvalues(normal, k):
    """Where no two eigenvalues are close, so that plain polynomials do."""
    B, Y = normal(9, 5), [0, 3, 6]
    values = torch.linalg.eigvalsh(B.mT @ B)
    sums = [values[list(part)].prod() for part in combinations(range(5), 3)]
    log_z = torch.stack(sums).sum().log() if k else values.log1p().sum()
    expected = torch.logdet(B[Y] @ B[Y].mT) - log_z
    found = log_prob([Y], k, features=B)
    assert found.item() == pytest.approx(expected.item(), abs=1e-10)
    torch.testing.assert_close(gradient(found, B), gradient(expected, B), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("k", [3, None])
def test_equal_eigenvalues(normal, k):
    Q = torch.linalg.qr(normal(12, 6).detach())[0].requires_grad_()
    check_gradient(lambda B: log_prob([[0, 1, 2], [5, 6, 7]], k, features=B), Q)
    L = torch.eye(6, dtype=torch.float64, device=Q.device, requires_grad=True)
    share = 3 / 6 if k else 1 / 2  # P(i in Y), by symmetry
    expected = torch.eye(6).to(L) * ((torch.arange(6) < 3).to(L) - share)
    torch.testing.assert_close(gradient(log_prob([[0, 1, 2]], k, L=L), L), expected)


def test_a_rank_of_k(normal):
    """Directions that B has not are left alone: the gradient is that of the pseudo-inverse."""
    B = (normal(9, 3) @ normal(3, 8)).detach().requires_grad_()
    expected = -2 * torch.linalg.pinv(B.detach()).mT
    expected[:3] += 2 * torch.linalg.pinv(B.detach()[:3]).mT
    found = gradient(log_prob([[0, 1, 2]], 3, features=B), B)
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scales_and_types_of_parameters(normal, scale, dtype):
    B = normal(50, 10, dtype=dtype, scale=scale)
    exact = host(B).astype(float) / scale
    sets = torch.arange(20).reshape(5, 4)
    logs = log_prob(sets, 4, features=B)
    expected = dmsgd.KDPP(Linear(exact), 4).log_prob(sets)
    np.testing.assert_allclose(host(logs), expected, rtol=1e-9)
    unscaled = torch.tensor(exact, requires_grad=True)
    wanted = gradient(log_prob(sets, 4, features=unscaled), unscaled)
    found = gradient(logs, B)
    assert found.dtype == dtype
    np.testing.assert_allclose(host(found.double()) * scale, wanted, rtol=1e-6, atol=1e-6)


def test_kernels_in_float32_may_be_rounded(normal):
    """Their smallest eigenvalues are below zero."""
    B = normal(40, 3, dtype=torch.float32)
    found = log_prob([[0, 1, 2], [3, 4, 5]], 3, L=B @ B.mT)
    expected = log_prob([[0, 1, 2], [3, 4, 5]], 3, features=B)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
    assert gradient(found, B).isfinite().all()


def test_sets_of_dependent_items(normal):
    B = normal(6, 3)
    B.data[1] = B.data[0]
    sets = [[0, 1], [2, 3], [4, 4]]
    logs = log_prob(sets, 2, features=B)
    assert host(logs == -torch.inf).tolist() == [True, False, True]
    with pytest.raises(ValueError, match="set 0 has probability zero"):
        logs.sum().backward()
    with pytest.raises(ValueError, match="set 2 has"):
        log_prob(sets, 2, features=B)[1:].sum().backward()
    logs = log_prob(sets, 2, features=B)
    kept = gradient(logs[logs.isfinite()], B)
    torch.testing.assert_close(kept, gradient(log_prob([[2, 3]], 2, features=B), B))
    assert log_prob([[0, 2, 3, 4]], features=B).item() == -torch.inf  # more items than features
    with pytest.raises(ValueError, match=r"set \(1, 0\) has"):
        log_prob([[[2, 3]], [[0, 1]]], 2, features=torch.stack([B, B])).sum().backward()


@pytest.mark.parametrize("k", [2, None])
def test_near_duplicates_among_many_items_are_possible(normal, k):
    B = normal(20_000, 5)
    B.data[1] = B.data[0] + 3e-6 * B.data[2]
    design = dmsgd.KDPP(Linear(host(B)), k) if k else dmsgd.DPP(Linear(host(B)))
    found = log_prob([[0, 1]], k, features=B)
    np.testing.assert_allclose(host(found), design.log_prob([[0, 1]]), atol=1e-3)
    assert gradient(found, B).isfinite().all()


def test_no_probability_is_above_one(normal):
    """Items beside one that is so much longer that rounding hides them cannot be in a set."""
    B = normal(6, 3)
    B.data[0] *= 1e9
    assert host(log_prob([[0], [1], [0, 1], [2, 3]], features=B)).max() <= 1e-9
    assert log_prob([[2, 3]], features=B).item() == -torch.inf


@pytest.mark.parametrize("k", [2, None])
def test_second_derivatives_raise(normal, k):
    """Of a plain sum, `once_differentiable` would return wrong ones in silence."""
    B = normal(6, 3)
    for logs in (log_prob([[0, 2]], k, features=B), log_prob([[0, 2]], k, L=B @ B.mT)):
        with pytest.raises(NotImplementedError, match="second"):
            torch.autograd.grad(logs.sum(), B, create_graph=True)


def test_no_sets_and_one_set(normal):
    B = normal(6, 3)
    assert log_prob(np.zeros((0, 2), int), 2, features=B).shape == (0,)
    assert log_prob([], features=B).shape == (0,)
    assert log_prob([2, 3], 2, features=B).shape == ()
    nothing = log_prob([[]], features=B)
    assert nothing.item() == pytest.approx(-torch.logdet(torch.eye(6).to(B) + B @ B.mT).item())


def test_arrays_and_item_numbers_of_any_kind(normal):
    B, sets = normal(6, 3), [[0, 2], [1, 5]]
    expected = host(log_prob(sets, 2, features=B))
    for given in (np.array(sets, np.uint8), torch.tensor(sets).to(B.device), tuple(sets)):
        np.testing.assert_array_equal(host(log_prob(given, 2, features=B)), expected)
    for rows in (host(B), host(B).tolist()):
        np.testing.assert_allclose(log_prob(sets, 2, features=rows), expected)


SQUARE = torch.eye(4)
BAD = {
    "neither": ({}, TypeError, "either"),
    "both": ({"features": SQUARE, "L": SQUARE}, TypeError, "either"),
    "a vector": ({"features": SQUARE[0]}, ValueError, "shape"),
    "no features": ({"features": SQUARE[:, :0]}, ValueError, "shape"),
    "features as L": ({"L": SQUARE[:, :3]}, ValueError, "L must"),
    "complex": ({"features": SQUARE * 1j}, TypeError, "real"),
    "sparse": ({"features": SQUARE.to_sparse()}, TypeError, "real"),
    "NaN": ({"features": SQUARE * torch.nan}, ValueError, "NaN"),
    "too large": ({"features": SQUARE.double() * 1e200}, ValueError, "overflow"),
    "too small": ({"features": SQUARE.double() * 1e-200}, ValueError, "vanish"),
    "zeros": ({"features": SQUARE * 0}, ValueError, "zero"),
    "asymmetric": ({"L": SQUARE.triu() + SQUARE.roll(1, 0)}, ValueError, "not supported"),
    "indefinite": ({"L": SQUARE - 1}, ValueError, "semi-definite"),
    "negative": ({"L": -SQUARE}, ValueError, "semi-definite"),
    "rank": ({"features": SQUARE[:, :1]}, dmsgd.RankError, "1 independent direction;"),
    "a rank of many": (
        {"features": torch.stack([SQUARE, SQUARE * 0]), "sets": [[0, 1], [0, 1]]},
        dmsgd.RankError, "0 independent directions in ground set 1"),
    "k above n": ({"features": SQUARE, "k": 5}, ValueError, "k=5"),
    "another k": ({"features": SQUARE, "k": 3}, ValueError, "k=3"),
    "items": ({"features": SQUARE, "sets": [[0, 4]]}, ValueError, "sets"),
    "negative items": ({"features": SQUARE, "sets": [[0, -1]]}, ValueError, "sets"),
    "floats": ({"features": SQUARE, "sets": [[0.0, 1.0]]}, TypeError, "sets"),
    "ragged": ({"features": SQUARE, "sets": [[0], [0, 1]]}, ValueError, "sets"),
    "a number": ({"features": SQUARE, "sets": 1, "k": None}, ValueError, "sets"),
    "3-D sets": ({"features": SQUARE, "sets": [[[0, 1]]]}, ValueError, "sets"),
    "other groups": ({"features": SQUARE[None], "sets": [[0, 1]] * 2}, ValueError, r"\(1, k\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    given, error, words = BAD[name]
    with pytest.raises(error, match=words):
        log_prob(**{"sets": [[0, 1], [1, 2]], "k": 2, **given})


@pytest.mark.parametrize("k", [3, None])
def test_a_planted_kernel_is_recovered(normal, k):
    """From 1,000 sets: held-out log P, and inclusion probabilities of the learned design."""
    planted = host(normal(8, 4))
    make = (lambda F: dmsgd.KDPP(Linear(F), k)) if k else (lambda F: dmsgd.DPP(Linear(F)))
    truth = make(planted)
    sets, held_out = truth.sample(1000, seed=1), truth.sample(1000, seed=2)
    B = normal(8, 8)
    before = log_prob(held_out, k, features=B).mean().item()
    optimizer = torch.optim.Adam([B], lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        (-log_prob(sets, k, features=B).mean()).backward()
        optimizer.step()
    learned = make(host(B))
    best = truth.log_prob(held_out).mean()
    after = log_prob(held_out, k, features=B).mean().item()
    assert before < best - 0.5
    assert best - 0.2 < after < best + 0.02
    assert learned.log_prob(held_out).mean() == pytest.approx(after, abs=1e-8)
    np.testing.assert_allclose(learned.inclusion(), truth.inclusion(), atol=0.04)
