"""Long work is announced before it is done, and short work is not."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.inputs import effort
from dmsgd.spectra import pivoted_cholesky


class Stopped(Exception):
    """Where the work would begin."""


@pytest.fixture
def nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise Stopped

    monkeypatch.setattr("dmsgd.features.resident.gram", stop)
    monkeypatch.setattr(effort, "product_seconds", lambda: 3e-11)
    monkeypatch.setenv("DMSGD_MEMORY", "1TB")


@pytest.mark.usefixtures("nothing_is_done")
def test_texts_with_many_words_are_announced(caplog: pytest.LogCaptureFixture) -> None:
    X = sparse.random_array((20_000, 30_000), density=1e-4, rng=np.random.default_rng(0))
    with caplog.at_level(logging.WARNING, "dmsgd"), pytest.raises(Stopped):
        dmsgd.diversify(X, 64)
    (line,) = caplog.messages
    assert (
        "20,000 items takes about 24 minutes and 8.94 GB; shorter would be fewer features" in line
    )
    assert "max_features" in line


@pytest.mark.usefixtures("nothing_is_done")
def test_short_work_is_not(caplog: pytest.LogCaptureFixture) -> None:
    X = sparse.random_array((3000, 2000), density=1e-3, rng=np.random.default_rng(0))
    with caplog.at_level(logging.WARNING, "dmsgd"), pytest.raises(Stopped):
        dmsgd.diversify(X, 64)
    assert caplog.messages == []


def test_it_is_printed_where_nobody_has_asked_for_anything_else() -> None:
    code = (
        "from dmsgd.inputs.effort import announce, product_seconds\n"
        "assert 1e-13 < product_seconds() < 1e-7\n"
        "announce(1e18, 2**27, 'this', 'do that')\nannounce(1e3, 9, 'another', 'do that')"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert re.fullmatch(r"this takes about \d+ (minutes|hours) and 1 GB; do that\n", run.stderr)


@pytest.mark.parametrize(
    ("seconds", "words"), [(61, "61 seconds"), (200, "3 minutes"), (7200, "2 hours")]
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert effort.in_words(seconds) == words


def test_what_is_advised_works() -> None:
    X = np.random.default_rng(0).normal(size=(60, 30))
    design = dmsgd.diversify(X, 4, spectrum=partial(pivoted_cholesky, rank=30))
    assert design.sample(2, seed=0).shape == (2, 4)
