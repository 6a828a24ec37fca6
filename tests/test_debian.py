"""Debian's packages: making the texts from apt's indexes, the vocabulary, the parts, the scores."""

from __future__ import annotations

import gzip
import os
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from experiments.debian import generated
from experiments.models.sections import by_section, perplexity

source = import_module("experiments.datasets.debian")

PACKAGES = """\
Package: bee
Section: games
Description: short one
Description-md5: b1

Package: ant
Section: non-free/libs
Description-md5: a1

Package: cat
Section: games
Description-md5: c1

Package: dog
Section: doc
Description-md5: d1

Package: elk
Section: doc
Description-md5: none
"""

LONG = (
    "The 2nd Bee's library: it is fast,\n .\n and makes honey-like sounds out of every flower seen"
)

DESCRIPTIONS = f"""\
Package: ant
Description-md5: a1
Description-en: {LONG}

Package: bee
Description-md5: b1
Description-en: A game of bees
 In which bees chase other bees around a tree until the evening comes.

Package: cat
Description-md5: c1
Description-en: too short

Package: dog
Description-md5: d1
Description-en: {LONG}
"""

TEXT = "the bee library fast and makes honey like sounds out every flower seen"


def test_texts_are_made_from_the_indexes_of_apt() -> None:
    made = source.made_from(PACKAGES, DESCRIPTIONS)
    second = "game bees which bees chase other bees around tree until the evening comes"
    assert made == f"libs\t{TEXT}\ngames\t{second}\n"  # by name, no short ones, no repetitions


def lists(folder: Path) -> Path:
    """Write the indexes as apt keeps them, beside those of updates, which are not read."""
    start = "deb.example.org_debian_dists_"
    (folder / f"{start}stable_main_binary-amd64_Packages").write_text(PACKAGES)
    (folder / f"{start}stable_main_i18n_Translation-en").write_text(DESCRIPTIONS)
    (folder / f"{start}stable-updates_main_binary-amd64_Packages").write_text("Package: x")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DMSGD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dmsgd"


def test_a_debian_machine_makes_the_file_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path(source.READER).is_file():
        pytest.skip("there is no apt on this machine")
    monkeypatch.setattr(source, "LISTS", lists(tmp_path))
    found = source.debian()
    assert found.names == ("games", "libs")
    assert [found.names[y] for y in found.y] == ["libs", "games"]
    assert found.texts[0] == TEXT
    assert (cache / source.NAME).is_file()
    monkeypatch.setattr(source, "LISTS", tmp_path / "gone")
    assert source.debian().texts == found.texts


def test_without_indexes_the_message_says_what_to_run(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        monkeypatch.setattr(source, "LISTS", folder)
        with pytest.raises(FileNotFoundError, match="apt-get"):
            source.debian()
    assert not cache.exists()


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "debian").mkdir()
    whole = gzip.compress(b"libs\tsome words\n" * 100)
    damaged = (b"no gzip", whole[:-9], whole[:20] + b"x" + whole[21:], gzip.compress(b"a\t\xff\n"))
    for content in (gzip.compress(b""), gzip.compress(b"no tab\n"), *damaged):
        (tmp_path / source.NAME).write_bytes(content)
        with pytest.raises(ValueError, match="section"):
            source.debian(tmp_path)


def test_thinned_texts_keep_their_sections() -> None:
    data = generated()
    some = data.thinned(50)
    assert len(some.texts) == some.y.size == 50
    assert data.thinned(None) is data
    section = {text: data.names[y] for text, y in zip(data.texts, data.y, strict=True)}
    assert all(section[text] == some.names[y] for text, y in zip(some.texts, some.y, strict=True))
    assert np.all(np.diff(np.bincount(some.y)) <= 0)  # the largest first


def test_every_section_is_cut_in_the_same_shares() -> None:
    y = np.repeat(np.arange(3), (100, 20, 10))
    train, test = source.parts(y)
    assert np.bincount(y[train]).tolist() == [70, 14, 7]
    assert np.bincount(y[test]).tolist() == [20, 4, 2]
    assert not np.intersect1d(train, test).size


def test_words_that_are_equally_frequent_are_chosen_alike_on_every_machine() -> None:
    texts = ["the plays and bee", "bee plays ant ant"]
    assert source.vocabulary(texts, 3) == ["ant", "bee", "plays"]
    assert source.vocabulary(texts, 1) == ["plays"]  # the stored results have it
    assert source.vocabulary(texts, 2) == ["ant", "plays"]


def test_means_over_sections_leave_out_those_without_texts() -> None:
    assert by_section(np.array([1.0, 2.0, 5.0]), np.array([0, 0, 2])) == (1.5 + 5) / 2


def test_perplexity_of_a_known_model() -> None:
    """Topics of ten equally likely words each: a text of one topic has the perplexity ten."""
    from sklearn.decomposition import LatentDirichletAllocation

    counts = np.zeros((2, 20))
    counts[0, :10], counts[1, 10:] = 100, 100
    model = LatentDirichletAllocation(2, doc_topic_prior=1e-3, random_state=0)
    model.fit(counts)
    model.components_ = np.kron(np.eye(2), np.ones(10)) + 1e-9
    model.exp_dirichlet_component_ = model.components_ / 10
    assert perplexity(model, sparse.csr_array(counts)) == pytest.approx(10, rel=1e-3)


def test_the_real_texts_have_58_sections() -> None:
    folder = os.environ.get("DMSGD_DATA")
    if folder is None or not (Path(folder) / source.NAME).exists():
        pytest.skip(f"DMSGD_DATA names no folder with {source.NAME}")
    found = source.debian(folder)
    assert (len(found.texts), len(found.names)) == (60086, 58)
    assert np.bincount(found.y)[[0, 1, -1]].tolist() == [6271, 4844, 15]
