"""Models that are trained many at once, and the experiments that do so."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dmsgd import Uniform
from experiments import negatives
from experiments.models import contrastive, equations, many


def train(seeds: list[int], rates: list[float]) -> list[torch.Tensor]:
    """Return weights after some steps towards a line."""
    networks = many.initial((2, 5, 1), seeds, 2.0, "cpu")
    adam, x = many.Adam(networks, rates), torch.linspace(-1, 1, 14).reshape(1, 7, 2)
    for _ in range(10):
        found = many.outputs(networks, x.expand(len(seeds), -1, -1))
        adam.step((found - x[..., :1]).square().mean(dim=(1, 2)))
    return networks


def test_each_network_learns_as_if_it_were_alone() -> None:
    together = train([0, 1, 0], [0.01, 0.02, 0.03])
    for job, (seed, rate) in enumerate([(0, 0.01), (1, 0.02), (0, 0.03)]):
        alone = train([seed], [rate])
        for ours, theirs in zip(together, alone, strict=True):
            torch.testing.assert_close(ours[job], theirs[0])
    assert not torch.equal(together[0][0], together[0][2])


def test_adam_is_that_of_torch() -> None:
    ours, rate = torch.ones(1, 3, 2, requires_grad=True), 0.1
    theirs = torch.ones(1, 3, 2, requires_grad=True)
    scale, adam = torch.arange(6.0).reshape(1, 3, 2), many.Adam([ours], [rate])
    reference = torch.optim.Adam([theirs], lr=rate)
    for _ in range(5):
        adam.step((scale * ours.square()).sum(dim=(1, 2)))
        reference.zero_grad()
        (scale * theirs.square()).sum().backward()
        reference.step()
    torch.testing.assert_close(ours, theirs)


def test_jobs_with_one_design_and_seed_share_their_batches() -> None:
    design = Uniform(20, 4)
    found = many.draw([design, design, design], [0, 1, 0], 3, 2, "cpu").numpy()
    np.testing.assert_array_equal(found[0], design.sample(3, 0, start=2))
    np.testing.assert_array_equal(found[2], found[0])
    np.testing.assert_array_equal(found[1], design.sample(3, 1, start=2))


@pytest.mark.parametrize("equation", equations.EQUATIONS)
def test_derivatives_are_those_of_autograd(equation: str) -> None:
    network = [each.detach().double() for each in many.initial((2, 7, 7, 1), [0, 1], 1.0, "cpu")]
    x = torch.rand(2, 5, 2, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    x.requires_grad_()
    value, first, second = equations.solution(equation, network, x)
    slopes = torch.autograd.grad(value.sum(), x, create_graph=True)[0]
    for axis in (0, 1):
        torch.testing.assert_close(slopes[..., axis], first[axis][..., 0])
        twice = torch.autograd.grad(slopes[..., axis].sum(), x, retain_graph=True)[0]
        torch.testing.assert_close(twice[..., axis], second[axis][..., 0])


def test_the_reference_solves_burgers_equation() -> None:
    """By differences of second order on a grid, up to t = 0.12, where it is still smooth."""
    side = 80
    u = equations.exact("Burgers", side)[1].reshape(side, side)
    h = 1 / side
    in_time = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * h)
    slope = (u[1:-1, 2:] - u[1:-1, :-2]) / (4 * h)
    bend = (u[1:-1, 2:] - 2 * u[1:-1, 1:-1] + u[1:-1, :-2]) / (4 * h * h)
    missed = (in_time + u[1:-1, 1:-1] * slope - equations.NU * bend)[: side // 8]
    assert np.abs(missed).max() < 0.02 * np.abs(in_time[: side // 8]).max()


def test_a_network_that_is_the_solution_has_no_residual() -> None:
    """Poisson: the residual is linear in the network, and that of 0 is the source."""
    network = [torch.zeros_like(each) for each in many.initial((2, 3, 1), [0], 1.0, "cpu")]
    points, truth = equations.exact("Poisson", 6)
    missed = equations.residual("Poisson", network, torch.from_numpy(points).float()[None])
    np.testing.assert_allclose(missed[0, :, 0].numpy(), truth, atol=1e-6)


def test_the_loss_is_that_of_pairs_among_the_others_of_the_batch() -> None:
    encoders = [torch.eye(2)[None], torch.zeros(1, 1, 2)]
    first = torch.tensor([[[3.0, 0.0], [0.0, 2.0]]])
    found = contrastive.losses(encoders, first, first.half())
    expected = 2 * np.log1p(np.exp(-1 / contrastive.TEMPERATURE))
    assert found.shape == (1,)
    assert float(found[0]) == pytest.approx(expected, abs=1e-6)
    near = contrastive.nearest(encoders, 0, first[0].repeat(3, 1), np.array([1]), np.arange(6))
    assert set(near[0, :3].tolist()) == {1, 3, 5}


def test_no_thing_is_trained_on_and_asked_about() -> None:
    case = next(case for case in negatives.tiny() if case.name.endswith("pairs"))
    task = case.task(0)
    group = task.items.records.group
    parts = [set(task.items.group), set(group[task.valid]), set(group[task.test])]
    assert all(parts)
    assert sum(map(len, parts)) == len(set.union(*parts)) == 60


def test_groups_apart_have_no_false_negative_and_neighbours_most() -> None:
    case = negatives.tiny()[0]
    task, shares = case.task(0), {}
    for arm, make in case.arms.items():
        groups = np.sort(task.items.group[make(task, 0).sample(200, 0)], axis=1)
        shares[arm] = np.any(groups[:, 1:] == groups[:, :-1], axis=1).mean()
    assert shares[negatives.GROUPS] == 0.0 < shares["shuffled"]
    assert max(shares, key=lambda arm: shares[arm]) == negatives.NEIGHBOURS
