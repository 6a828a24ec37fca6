"""The data of the experiments: where it is looked for, how it is fetched, and what it is."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import files
from experiments.datasets.topics import GROUPS

#: Each has the name of a function of the package.
debian, mnist, r8 = (
    import_module(f"experiments.datasets.{name}") for name in ("debian", "mnist", "r8")
)

TABLE = (
    "Category\tText\nd\tstring\nclass\t\n\nearn\tnet of two mln\ngrain\ta \ntrade\tus to go up\n"
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder and no DMSGD_DATA."""
    monkeypatch.delenv("DMSGD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dmsgd"


def serve(monkeypatch: pytest.MonkeyPatch, module: object, path: Path, checksum: str = "") -> None:
    """Let the module's source be a local file."""
    import hashlib

    found = hashlib.sha256(path.read_bytes()).hexdigest()
    source = files.Archive(path.as_uri(), checksum or found, 1)
    monkeypatch.setattr(module, "SOURCE", source)


def r8_archive(folder: Path) -> Path:
    path = folder / "r8.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for part in ("train", "test"):
            entry = tarfile.TarInfo(r8.MEMBER.format(part=part))
            entry.size = len(TABLE.encode())
            archive.addfile(entry, io.BytesIO(TABLE.encode()))
    return path


def mnist_archive(folder: Path) -> Path:
    path = folder / "mnist.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for key, name in mnist.MEMBERS.items():
            shape = (2, 28, 28) if key[0] == "x" else (2,)
            head = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">i4").tobytes()
            body = np.arange(np.prod(shape), dtype=np.int64).astype(np.uint8).tobytes()
            archive.writestr(f"bob/db/mnist/{name}", gzip.compress(head + body))
    return path


def test_r8_is_fetched_once_and_both_variants_are_made(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = r8_archive(tmp_path)
    serve(monkeypatch, r8, archive)
    found = datasets.r8()
    assert found.train == found.test == ("net two mln", "", "")
    archive.unlink()  # from now on there is nothing to fetch
    assert datasets.r8(variant="all-terms").test == ("net of two mln", "a", "us to go up")
    assert datasets.r8().y_train.tolist() == [0, 7, 3]
    assert [found.names[label] for label in found.y_test] == ["earn", "grain", "trade"]


def test_mnist_is_fetched_in_its_own_format(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, mnist, mnist_archive(tmp_path))
    found = datasets.mnist()
    assert found.x_train.shape == (2, 28, 28)
    assert found.x_train.dtype == np.uint8
    assert found.x_train[0, 1, 2] == 30
    assert found.y_test.tolist() == [0, 1]
    assert (cache / "mnist" / "mnist.npz").is_file()


def test_a_wrong_checksum_leaves_nothing_behind(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, mnist, mnist_archive(tmp_path), checksum="0" * 64)
    with pytest.raises(OSError, match="checksum"):
        datasets.mnist()
    assert not cache.exists()


def test_no_network_is_one_clear_message(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = files.Archive((tmp_path / "gone.zip").as_uri(), "", 1)
    monkeypatch.setattr(mnist, "SOURCE", gone)
    with pytest.raises(OSError, match="could not fetch"):
        datasets.mnist()


def test_a_given_folder_must_hold_the_data(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="data folder"):
        datasets.r8(tmp_path)


def test_the_folder_of_the_variable_comes_before_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DMSGD_DATA", str(tmp_path))
    (tmp_path / "flowers102").mkdir()
    arrays = {"X": np.ones((2, 3)), "y": [0, 1], "split": ["train", "test"], "class_names": ["a"]}
    np.savez(
        tmp_path / "flowers102" / "features.npz", **{k: np.array(v) for k, v in arrays.items()}
    )
    found = datasets.flowers()
    assert found.X.dtype == np.float32
    assert found.part("test")[1].tolist() == [1]
    (tmp_path / "flowers102" / "features.npz").unlink()
    with pytest.raises(FileNotFoundError, match="compute them"):
        datasets.flowers()


@pytest.mark.parametrize("kept", [0, 20, -40])
@pytest.mark.parametrize("name", ["r8", "mnist", "flowers", "debian"])
def test_a_damaged_file_is_one_message_that_names_it(
    name: str, kept: int, cache: Path, tmp_path: Path
) -> None:
    names = {
        "r8": "r8/train.txt.gz",
        "mnist": mnist.NAME,
        "flowers": "flowers102/features.npz",
        "debian": debian.NAME,
    }
    path = tmp_path / names[name]
    path.parent.mkdir()
    if path.suffix == ".gz":
        content = gzip.compress(b"earn\tnet two mln\n" * 99)
    else:
        np.savez(whole := io.BytesIO(), X=np.ones((50, 3)), y=np.ones(50))
        content = whole.getvalue()
    path.write_bytes(content[:kept])
    with pytest.raises(ValueError, match=rf"{path.name} is damaged"):
        getattr(datasets, name)(tmp_path)


def test_synthetic_topics_follow_the_papers_groups() -> None:
    made = datasets.synthetic_topics(seed=1)
    assert np.bincount(made.group).tolist() == [300, 50, 10] == [size for size, _ in GROUPS]
    np.testing.assert_allclose(made.topics.sum(axis=1), 1)
    assert (made.counts.sum(axis=1) == 100).all()
    # Group 0 uses topics 0 and 1, the words 0..19; group 2 topics 3 and 4, the words 30..49.
    common, rare = made.counts[made.group == 0], made.counts[made.group == 2]
    assert common[:, :20].sum() > 0.9 * common.sum()
    assert rare[:, 30:].sum() > 0.85 * rare.sum()
    assert (datasets.synthetic_topics(seed=1).counts == made.counts).all()
    assert (datasets.synthetic_topics(seed=2).counts != made.counts).any()


@pytest.mark.skipif("DMSGD_DATA" not in os.environ, reason="DMSGD_DATA is not set")
def test_the_real_data_has_the_papers_sizes() -> None:
    news = datasets.r8()
    assert np.bincount(news.y_train).tolist() == [2840, 1596, 253, 251, 206, 190, 108, 41]
    assert len(news.test) == 2189
    images = datasets.mnist()
    assert images.x_train.shape == (60000, 28, 28)
    plants = datasets.flowers()
    assert plants.part("test")[0].shape == (6149, 1280)
    assert np.bincount(plants.part("train")[1]).tolist() == [10] * 102


def products_folder(folder: Path, matches: str = '"a1",7\n"a2",8\n"a2",7\n') -> Path:
    """Return a folder with two small catalogues."""
    texts = {
        "Abt": '"id","name","price"\n"a1","Sony Caf\xe9","$1"\n"a2","Bose, 5",\n',
        "Buy": '"id","name","manufacturer"\n7,"bose","BOSE"\n8,"sony",\n9,"lg","LG"\n',
        "abt_buy_perfectMapping": '"idAbt","idBuy"\n' + matches,
        "DBLP2": '"id","title","authors","venue"\n1,"Joins","A. B.","VLDB"\n2,"Logs","C.","TODS"\n',
    }
    (folder / "products").mkdir()
    for name, text in texts.items():
        path = folder / "products" / f"{name}.csv.gz"
        path.write_bytes(gzip.compress(text.encode("latin-1")))
    return folder


def test_records_of_two_catalogues_have_matches(cache: Path, tmp_path: Path) -> None:
    found = datasets.products("Abt-Buy", products_folder(tmp_path))
    assert found.texts == ("sony caf\xe9", "bose, 5", "bose bose", "sony ", "lg lg")
    assert found.catalogue.tolist() == [0, 0, 1, 1, 1]
    assert found.matches.tolist() == [[0, 2], [1, 3], [1, 2]]


def test_papers_have_venues(cache: Path, tmp_path: Path) -> None:
    texts, y = datasets.venues(products_folder(tmp_path))
    assert texts == ("joins a. b.", "logs c.")
    assert y.tolist() == [1, 0]


def test_catalogues_that_are_missing_or_damaged_are_named(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="entity resolution"):
        datasets.products("DBLP-ACM")
    with pytest.raises(ValueError, match="Amazon-Google"):
        datasets.products("Abt")
    with pytest.raises(ValueError, match="abt_buy"):
        datasets.products("Abt-Buy", products_folder(tmp_path, '"a3",7\n'))
