"""Documents: generated ones, of which few have a topic of their own, and help pages."""

from __future__ import annotations

import inspect
import warnings
from importlib import import_module

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.rare.result import Config

#: A page that two packages have belongs to the first.
PACKAGES = (
    "numpy", "numpy.fft", "numpy.linalg", "numpy.ma", "numpy.random",
    "scipy.cluster.hierarchy", "scipy.constants", "scipy.fft", "scipy.integrate",
    "scipy.interpolate", "scipy.io", "scipy.linalg", "scipy.ndimage", "scipy.optimize",
    "scipy.signal", "scipy.sparse", "scipy.sparse.csgraph", "scipy.sparse.linalg",
    "scipy.spatial", "scipy.spatial.distance", "scipy.special", "scipy.stats",
)  # fmt: skip

#: Shorter ones only say where to look instead.
SHORTEST = 30


def generated(config: Config, seed: int) -> tuple[FloatArray, IntArray]:
    """Return counts (documents, words), and the topic of each document; the last is rare."""
    rng = np.random.default_rng(seed)
    sizes = np.append(np.full(config.topics, config.per_topic), config.rare)
    topics = rng.dirichlet(np.full(config.words, 0.05), size=sizes.size)
    topic = np.repeat(np.arange(sizes.size), sizes)
    foreign = rng.dirichlet(config.topics * sizes / sizes.sum(), size=topic.size)
    mixture = config.own * np.eye(sizes.size)[topic] + (1 - config.own) * foreign
    counts = rng.multinomial(config.length, mixture @ topics)
    return counts.astype(np.float64), topic.astype(np.int64)


def help_pages() -> tuple[list[str], list[str]]:
    """Return what `help` says about NumPy's and SciPy's functions, and the package of each page."""
    found: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # names that will go
        for package in PACKAGES:
            module = import_module(package)
            for name in sorted(getattr(module, "__all__", dir(module))):
                page = _page(getattr(module, name, None))
                if len(page.split()) >= SHORTEST:
                    found.setdefault(page, package)
    return list(found), list(found.values())


def _page(thing: object) -> str:
    if thing is None or inspect.ismodule(thing):
        return ""
    return inspect.getdoc(thing) or ""


def directions(pages: list[str], count: int) -> FloatArray:
    """Return tf-idf of the pages in their `count` principal directions."""
    from scipy.sparse.linalg import svds
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        sublinear_tf=True, min_df=3, max_df=0.5, stop_words="english", token_pattern=r"[a-z]{3,}"
    )
    left, values, _ = svds(vectorizer.fit_transform(pages), k=count, random_state=0)
    return np.asarray(left * values)
