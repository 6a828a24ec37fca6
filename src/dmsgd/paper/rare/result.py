"""What is counted in batches of documents, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from dmsgd.inputs.arrays import FloatArray

#: The ways to draw batches, in the order in which they are shown.
DESIGNS = ("uniform", "clustered", "weighted", "k-DPP")


@dataclass(frozen=True)
class Config:
    """What is run: `draws` batches of k from every design, for every one of `seeds`.

    Every seed has generated documents of its own; the help pages are the same for all, and k-means
    starts anew. A package is small with less than `small` of the pages.
    """

    k: int = 20
    seeds: int = 10
    draws: int = 1000
    topics: int = 5
    per_topic: int = 198
    rare: int = 10
    words: int = 200
    length: int = 150
    own: float = 0.8
    directions: int = 40
    small: float = 0.02


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one way of drawing batches did.

    found:       (seeds,) share of batches that hold a document of the rare generated topic.
    expected:    (seeds,) how many of them a batch holds on average; a closed form.
    pages_found: (seeds, packages) share of batches that hold a page of the package.
    times:       (seeds, packages) how often its pages are drawn, uniform batches = 1; closed form.
    """

    name: str
    found: FloatArray
    expected: FloatArray
    pages_found: FloatArray
    times: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All designs; `pages` help pages, and how many of them each small package has."""

    config: Config
    pages: int
    packages: dict[str, int]
    outcomes: tuple[Outcome, ...]

    def __getitem__(self, name: str) -> Outcome:
        return next(outcome for outcome in self.outcomes if outcome.name == name)
