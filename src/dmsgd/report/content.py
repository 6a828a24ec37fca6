"""All that the report page shows, as plain numbers and text that go into it as JSON.

Every (w, k) of the sliders is computed ahead: one spectrum for each w, from which the inclusion
probabilities of every k follow in O(n r).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from dmsgd.designs import KDPP, Stratified, Uniform
from dmsgd.designs.options import DesignOptions, as_design_options
from dmsgd.designs.stream import fixed_seed
from dmsgd.diagnostics import (
    Examination,
    GradientVariance,
    advise,
    concerns,
    examine,
)
from dmsgd.diagnostics.bench import Made, unasked
from dmsgd.diagnostics.examination import WS
from dmsgd.errors import RankError
from dmsgd.features import as_features
from dmsgd.features.convert import split_label_column
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.scalars import OF_A_FRACTION, Seed, as_batch_size, as_function, seed_key
from dmsgd.polynomials import eigenvector_inclusion
from dmsgd.report.choices import baseline, choice, for_page, mentioned
from dmsgd.report.curation import copies, curate, named
from dmsgd.report.data import Data, as_csv, look_at, rows_of
from dmsgd.report.items import map_rows, packed, positions, thumbnails
from dmsgd.report.targets import with_targets
from dmsgd.report.variance import split, variance_section
from dmsgd.spectra import Spectrum, effective_rank

#: Batch sizes on the slider, as multiples of the one asked for.
SIZES = (0.25, 0.5, 1.0, 2.0)
#: Points of a curve.
POINTS = 200


def build(
    X: Any,
    k: int,
    labels: Any = None,
    settings: DesignOptions | None = None,
    *,
    texts: Any = None,
    images: Any = None,
    gradients: Any = None,
    seed: Seed = 0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> dict[str, Any]:
    """Return the content of the page for features X and batches of k.

    X, labels: (n, d) features and (n,) classes, as `diversify` takes them.
    settings:  of the k-DPP that the page begins with, by default those of `diversify`; it is the
               design that `diversify` gives with the same arguments. Sliders show other w and k,
               but for a target, which is prescribed for one design.
    texts, images, gradients: (n,), (n, height, width[, 3]) and (n, p), each optional.

    The table of all items that were looked at, as text, is its "csv", which is not on the page.
    As many eigendecompositions as `examine` makes, and a target prescribed for some items.

    >>> content = build(np.random.default_rng(0).normal(size=(60, 12)), k=4)
    >>> content["ks"], content["kernel"]
    ([2, 4, 8], 'linear kernel, rows as they are')
    """
    from threadpoolctl import threadpool_limits

    X, labels = split_label_column(X, labels)
    X = as_features(X)
    n, d = X.shape
    k = as_batch_size(k, n)
    if k < 2 or n < 4:
        raise ValueError(f"a report needs batches of 2 or more and 4 items, got k={k} of {n}")
    settings = as_design_options(settings)
    as_function(progress, "progress", OF_A_FRACTION)
    if settings.w > 0 and labels is None:
        raise ValueError(f"w={settings.w:g} mixes in labels, but there are none; pass labels")
    seed = fixed_seed(seed)
    data = look_at(X, labels, texts, images, k, settings, seed)
    gradients = None if gradients is None else rows_of(gradients, n, data.rows)
    spectra, ks = _spectra(data, k, settings, progress)
    made = {replace(settings, w=w): each for w, each in spectra.items()}
    found = examine(X, k, labels, settings, ws=tuple(spectra), made=made, seed=seed)
    progress(0.8)
    # Draws are timed on one thread, and small matrices want no more.
    with threadpool_limits(1), unasked():
        table = [
            [choice(KDPP(each, size), data, seed, seconds) for size in ks]
            for each, seconds in spectra.values()
        ]
        uniform = [baseline(Uniform(data.rows.size, size), data, seed) for size in ks]
        strata = [] if data.codes is None else [_strata(data, size, seed) for size in ks]
        targets = with_targets(data, k, settings, seed)
    progress(0.9)
    rng, plain = np.random.default_rng(seed_key(seed)), spectra[min(spectra)][0]
    curation = curate(plain, rng)
    oddities = curation.for_page(data.codes)
    listed = np.union1d(mentioned(table), named(oddities))
    shown = map_rows(data.rows.size, listed, rng)
    listed = np.unique(np.concatenate([listed, *(np.ravel(each["batches"]) for each in uniform)]))
    plane = positions(plain)[shown]
    beginning = table[list(spectra).index(settings.w)][ks.index(k)]["ratio"]
    content = {
        "n": n,
        "d": d,
        "sampled": int(data.rows.size),
        "k": k,
        "w": settings.w,
        "target": settings.target,
        "ks": ks,
        "ws": list(spectra),
        "kernel": settings.describe(),
        "classes": data.classes(),
        "all_classes": len(found.classes),
        "listed": data.listed.tolist(),
        "choices": [[for_page(each) for each in row] for row in table],
        "uniform": uniform,
        "strata": strata,
        "targets": targets,
        "curation": oddities,
        "spectra": [_curve(spectrum, ks) for spectrum, _ in spectra.values()],
        "advice": _advice(found, _split(found, data, gradients, made, seed)),
        "points": {
            "row": packed(shown, "u4"),
            "x": packed(65535 * plane[:, 0], "u2"),
            "y": packed(65535 * plane[:, 1], "u2"),
        },
        "ids": None if data.rows.size == n else packed(data.rows, "u4"),
        "copies": copies(curation.first),
        "codes": None if data.codes is None else packed(data.codes, "u2"),
        "texts": None if data.texts is None else _texts(data.texts, np.union1d(shown, listed)),
        "images": None if data.images is None else thumbnails(data.images, listed, shown),
        "variance": None,
        "csv": as_csv(data, beginning, curation.first),
    }
    if gradients is not None:
        design = KDPP(spectra[settings.w][0], k)
        content["variance"] = variance_section(design, gradients, seed)
    progress(1.0)
    return content


def _strata(data: Data, k: int, seed: Seed) -> dict[str, Any]:
    return baseline(Stratified(data.codes, k), data, seed)


def _split(
    found: Examination, data: Data, gradients: FloatArray | None, made: Made, seed: Seed
) -> GradientVariance | None:
    """Return what the two halves of the advised k-DPP do to the gradients, if there are any.

    An RBF kernel is looked at on fewer items than the page; then the features are left to say it.
    """
    if gradients is None or found.candidate is None or found.sampled != data.rows.size:
        return None
    settings = found.candidate.settings
    assert settings is not None
    with unasked():
        if settings in made:
            design = KDPP(made[settings][0], found.k)
        else:
            design = data.design(settings, found.k)
    return split(design, gradients, seed)[0]


def _advice(found: Examination, variance: GradientVariance | None) -> dict[str, Any]:
    """Return the recommendation of `dmsgd inspect`, which gradients may change."""
    advice = advise(found, variance)
    code = advice.code(found.k)
    return {"kind": advice.kind, "reason": advice.reason, "code": code, "concerns": concerns(found)}


def _spectra(
    data: Data, k: int, settings: DesignOptions, progress: Callable[[float], None]
) -> tuple[dict[float, tuple[Spectrum, float]], list[int]]:
    """Return the spectrum of each w with the seconds it took, and the batch sizes that fit all."""
    tried = [settings.w]
    if data.codes is not None and settings.target is None:
        tried = sorted({*WS, settings.w})
    found: dict[float, tuple[Spectrum, float]] = {}
    for number, w in enumerate(tried):
        began = time.perf_counter()
        try:
            with nullcontext() if w == settings.w else unasked():
                spectrum = data.design(replace(settings, w=w), k).spectrum
            found[w] = (spectrum, time.perf_counter() - began)
        except RankError:
            if w == settings.w:
                raise
        progress(0.5 * (number + 1) / len(tried))
    if settings.target is not None:
        return found, [k]
    largest = min(min(spectrum.rank for spectrum, _ in found.values()), max(data.rows.size // 2, k))
    sizes = {min(max(round(factor * k), 2), largest) for factor in SIZES}
    return found, sorted(sizes | {k})


def _curve(spectrum: Spectrum, ks: list[int]) -> dict[str, Any]:
    """Return the eigenvalues and how likely each is used, thinned to a few hundred points."""
    rank = spectrum.rank
    at = np.unique(np.geomspace(1, rank, min(rank, POINTS)).round().astype(np.int64))
    used = [eigenvector_inclusion(spectrum.values, k)[at - 1].round(4).tolist() for k in ks]
    return {
        "rank": rank,
        "effective": effective_rank(spectrum),
        "index": at.tolist(),
        "share": (spectrum.values[at - 1] / spectrum.values.sum()).tolist(),
        "used": used,
        "trace_error": spectrum.trace_error,
    }


def _texts(texts: list[str], rows: IntArray) -> dict[str, Any]:
    return {"of": packed(rows, "u4"), "text": [texts[i] for i in rows]}
