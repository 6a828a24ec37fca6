"""Debian's packages: making the texts from apt's indexes, the parts, the scores, a tiny run."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd import datasets
from dmsgd.commands.reproduce import experiment
from dmsgd.datasets import descriptions as source
from dmsgd.paper import storage
from dmsgd.paper.debian import search
from dmsgd.paper.debian.claims import kernels, summary
from dmsgd.paper.debian.corpus import DESIGNS, KERNELS, Part, cut, inclusion, make_corpus
from dmsgd.paper.debian.result import ARMS, LENGTH, PAIRS, STRATIFIED, UNIFORM, Result
from dmsgd.paper.debian.scores import perplexity

debian = experiment("debian")

SMALL = replace(
    debian.Config(), seeds=2, k=10, words=120, budgets=(3, 12), topics=6, directions=15,
    iterations=10, classified=200,
)  # fmt: skip

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


def small_descriptions(seed: int = 0) -> datasets.Descriptions:
    """Four sections of 200, 60, 20 and 8 texts with words of their own and common ones."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{i}" for i in range(120)])
    y = np.repeat(np.arange(4), (200, 60, 20, 8))
    texts = []
    for section in y:
        own = rng.integers(20 * section, 20 * section + 20, size=rng.integers(5, 25))
        common = rng.integers(80, 120, size=10)
        texts.append(" ".join(words[np.concatenate([own, common])]))
    return datasets.Descriptions(tuple(texts), y.astype(np.int64), ("a", "b", "c", "d"))


@pytest.fixture(scope="module")
def small() -> Result:
    return debian.run(SMALL, small_descriptions())


# the data


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
    found = datasets.debian()
    assert found.names == ("games", "libs")
    assert [found.names[y] for y in found.y] == ["libs", "games"]
    assert found.texts[0] == TEXT
    assert (cache / source.NAME).is_file()
    monkeypatch.setattr(source, "LISTS", tmp_path / "gone")
    assert datasets.debian().texts == found.texts


def test_without_indexes_the_message_says_what_to_run(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        monkeypatch.setattr(source, "LISTS", folder)
        with pytest.raises(FileNotFoundError, match=r"apt-get update -o Acquire::Languages=en"):
            datasets.debian()
    assert not cache.exists()


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "debian").mkdir()
    whole = gzip.compress(b"libs\tsome words\n" * 100)
    damaged = (b"no gzip", whole[:-9], whole[:20] + b"x" + whole[21:], gzip.compress(b"a\t\xff\n"))
    for content in (gzip.compress(b""), gzip.compress(b"no tab\n"), *damaged):
        (tmp_path / source.NAME).write_bytes(content)
        with pytest.raises(ValueError, match="a section, a tab and words"):
            datasets.debian(tmp_path)


def test_thinned_texts_keep_their_sections() -> None:
    data = small_descriptions()
    some = data.thinned(50)
    assert len(some.texts) == some.y.size == 50
    assert data.thinned(None) is data
    section = {text: data.names[y] for text, y in zip(data.texts, data.y, strict=True)}
    assert all(section[text] == some.names[y] for text, y in zip(some.texts, some.y, strict=True))
    assert np.all(np.diff(np.bincount(some.y)) <= 0)  # the largest first


# the parts and the scores


def test_every_section_is_cut_in_the_same_shares() -> None:
    y = np.repeat(np.arange(3), (100, 20, 10))
    parts = cut(debian.Config(), y)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(130))
    assert [np.bincount(y[part]).tolist() for part in parts] == [
        [70, 14, 7],
        [10, 2, 1],
        [20, 4, 2],
    ]


def test_means_by_section_are_none_where_there_are_no_documents() -> None:
    part = Part(None, np.array([0, 0, 2]), 3)
    np.testing.assert_array_equal(part.mean([1.0, 2.0, 5.0]), [1.5, np.nan, 5.0])


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


def test_same_b_is_the_inclusion_of_its_kdpp() -> None:
    corpus = make_corpus(SMALL, small_descriptions())
    for kdpp, same_b in PAIRS.items():
        both = [DESIGNS[arm](SMALL, corpus) for arm in (kdpp, same_b)]
        np.testing.assert_allclose(*(design.inclusion() for design in both), rtol=1e-6)
        assert isinstance(both[1], dmsgd.Weighted)


def test_every_kernel_says_who_is_seen() -> None:
    corpus = make_corpus(SMALL, small_descriptions())
    for kernel in KERNELS:
        b = inclusion(SMALL, corpus, kernel)
        assert b.shape == corpus.train.y.shape, kernel
        assert b.sum() == pytest.approx(SMALL.k), kernel


# the experiment


def test_scores_of_every_design_and_clock(small: Result) -> None:
    assert list(small.updates) == list(small.words) == list(ARMS)
    assert list(small.seen) == [*ARMS, *KERNELS]
    assert small.sizes.tolist() == [140, 42, 14, 5]
    for outcome in (*small.updates.values(), *small.words.values()):
        for values in (outcome.average, outcome.weighted, outcome.total, outcome.perplexity):
            assert values.shape == (2, 2)
        np.testing.assert_allclose(outcome.sections.mean(axis=1), outcome.average[:, -1])
    learnt = small.of(UNIFORM, "updates")
    assert np.all((learnt.total > 0.6) & (learnt.total <= 1))
    assert np.all(learnt.perplexity[:, -1] < learnt.perplexity[:, 0])  # 12 updates against 3
    assert np.all(learnt.perplexity < 120)  # the number of words: all equally likely


def test_who_is_seen(small: Result) -> None:
    uniform, length, stratified = (small.seen[arm] for arm in (UNIFORM, LENGTH, STRATIFIED))
    assert uniform.sections == pytest.approx(np.ones(4))
    assert (uniform.average, uniform.length, uniform.words) == pytest.approx((1, 0, 1))
    assert length.length == pytest.approx(1)
    assert length.words > 1.05
    assert np.all(np.diff(stratified.sections) > 0)  # the smaller, the more often
    share = stratified.sections * small.sizes / small.sizes.sum()
    assert stratified.small(small.sizes) == pytest.approx(share[2:].sum() / (19 / 201))


def test_claims_tables_and_pictures(small: Result, tmp_path: Path) -> None:
    storage.save(small, tmp_path / "result.json")
    result = storage.load(debian.Result, tmp_path / "result.json")
    found = debian.claims(result)
    assert all(claim.where == "beyond" for claim in found)
    ours, theirs = (100 * result.of(arm, "words").total[:, -1] for arm in (LENGTH, UNIFORM))
    claim = next(
        each
        for each in found
        if each.statement == "total accuracy after the words of 12 uniform batches, points: "
        "by length minus uniform"
    )
    assert claim.ours.startswith(f"{(ours - theirs).mean():+.2f} ± ")
    for each in debian.halves(result):
        whole, seen, meets = each.differences.values()
        assert seen[0] + meets[0] == pytest.approx(whole[0])
    for table, rows in ((summary(result), len(ARMS)), (kernels(result), len(result.seen))):
        assert {len(row) for row in table} == {len(table[0])}
        assert len(table) == rows + 1
    paths = debian.plot(result, tmp_path)
    assert {path.name for path in paths if path.suffix == ".png"} == {
        "debian-gains.png",
        "debian-seen.png",
    }
    assert all(path.stat().st_size > 2000 for path in paths)


def test_settings_are_chosen_on_the_validation_part() -> None:
    data = small_descriptions()
    corpus = make_corpus(SMALL, data)
    blind = replace(corpus, test=replace(corpus.test, counts=None))  # the test part is not read
    configs = [SMALL, replace(SMALL, penalty=1e-9)]
    found = search.search(blind, configs, seeds=2)
    assert found.shape == (2, 2, 2, 4)
    assert search.best(configs, found) is SMALL
    assert len(set(search.candidates())) == len(search.candidates())


def test_the_real_texts_have_58_sections() -> None:
    folder = os.environ.get("DMSGD_DATA")
    if folder is None or not (Path(folder) / source.NAME).exists():
        pytest.skip(f"DMSGD_DATA names no folder with {source.NAME}")
    found = datasets.debian(folder)
    assert (len(found.texts), len(found.names)) == (60086, 58)
    assert np.bincount(found.y)[[0, 1, -1]].tolist() == [6271, 4844, 15]
