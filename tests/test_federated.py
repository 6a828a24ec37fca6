"""Clients of federated averaging, networks of many clients at once, and streams of sensors."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from experiments import datasets, federated
from experiments.federated import clients
from experiments.models import dense

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("hidden", [(), (5,)])
def test_clients_train_as_alone(hidden: tuple[int, ...]) -> None:
    """Each client's network is what torch makes of its batches."""
    torch = pytest.importorskip("torch")
    X = RNG.standard_normal((3, 4, 6, 8)).astype(np.float32)
    y = RNG.integers(3, size=(3, 4, 6))
    targets = np.eye(3, dtype=np.float32)[y]
    start = dense.initial((8, *hidden, 3), RNG)
    own = dense.train(start, X, targets, 0.5)
    for client in range(3):
        alone = [torch.tensor(layer, requires_grad=True) for layer in start]
        for x, right in zip(X[client], y[client], strict=True):
            out = torch.from_numpy(x)
            for number, layer in enumerate(alone):
                out = (out.relu() if number else out) @ layer[:-1] + layer[-1]
            loss = torch.nn.functional.cross_entropy(out, torch.from_numpy(right))
            with torch.no_grad():
                for layer, slope in zip(alone, torch.autograd.grad(loss, alone), strict=True):
                    layer -= 0.5 * slope
        for ours, theirs in zip(own, alone, strict=True):
            np.testing.assert_allclose(ours[client], theirs.detach(), atol=2e-6)
    assert dense.updates(start, own).shape == (3, sum(layer.size for layer in start))
    scores = dense.forward([layer[0] for layer in own], X[0, 0])[-1]
    right = 100 * np.mean(scores.argmax(axis=1) == y[0, 0])
    assert dense.accuracy([layer[0] for layer in own], X[0, 0], y[0, 0]) == pytest.approx(right)


@pytest.mark.parametrize("split", federated.SPLITS)
def test_clients_have_few_classes_and_no_image_twice(split: str) -> None:
    _, y = clients.images("digits")
    task = clients.make_task(clients.Size("digits", split), 3)
    used = np.concatenate([task.clients.ravel(), task.valid, task.test])
    assert np.unique(used).size == used.size
    classes = [np.unique(y[own]).size for own in task.clients]
    assert np.mean(classes) < 5
    counts = np.stack([np.bincount(y[own], minlength=10) for own in task.clients])
    assert np.allclose(14 * task.known["label histogram"], counts)
    assert np.array_equal(counts.max(axis=1), counts[np.arange(100), task.label])


@pytest.mark.parametrize("k", [5, 20])
def test_clustered_groups_are_of_equal_size_and_keep_clusters_whole(k: int) -> None:
    centre = np.repeat(np.arange(10.0), 10)
    X = np.column_stack([100 * np.cos(centre), 100 * np.sin(centre)]) + RNG.normal(size=(100, 2))
    group = clients.clustered(X, k).stratum
    assert np.bincount(group).tolist() == [100 // k] * k
    if k == 5:  # a group has room for two clusters
        assert all(np.unique(group[centre == each]).size == 1 for each in range(10))


def test_twins_do_not_stop_a_kdpp_of_uniform_frequency() -> None:
    X = np.repeat(np.eye(10), 10, axis=0)
    design = federated.make("k-DPP", 20, X)
    np.testing.assert_allclose(design.inclusion(), 0.2, rtol=1e-6)


def test_blocks_of_time_keep_recordings_whole() -> None:
    recording = np.repeat([0, 1], [300, 500])
    block = datasets.Stream(np.zeros((800, 1)), np.zeros(800), recording).blocks(40)
    assert np.unique(block).size == 40
    assert block[299] < block[300]
    assert np.all(np.diff(block) >= 0)


def test_streams_that_are_missing_unknown_or_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DMSGD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(FileNotFoundError, match="gzip"):
        datasets.stream("eeg")
    with pytest.raises(ValueError, match="unknown stream"):
        datasets.stream("tide")
    path = tmp_path / "streams" / "robot-sonar24.csv.gz"
    path.parent.mkdir()
    for content in (b"", gzip.compress(b"S1,OUTPUT\n0.4,Move-Forward\n")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"robot-sonar24.csv.gz is damaged"):
            datasets.stream("sonar", tmp_path)


@pytest.mark.skipif("DMSGD_DATA" not in os.environ, reason="DMSGD_DATA is not set")
def test_the_real_streams() -> None:
    assert np.bincount(datasets.stream("eeg").y).tolist() == [8257, 6723]
    room = datasets.stream("occupancy")
    assert room.X.shape == (17895, 5)
    assert np.bincount(room.recording).tolist() == [8143, 9752]
    assert np.bincount(datasets.stream("sonar").y).tolist() == [2205, 2097, 328, 826]
