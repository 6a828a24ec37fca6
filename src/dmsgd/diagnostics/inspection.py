"""What `inspect` returns: facts, what batches hold, one recommendation; as text, page and table."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from dmsgd.designs.build import make_design
from dmsgd.designs.contract import ClosedForm, Design
from dmsgd.designs.options import DesignOptions
from dmsgd.designs.partition import Partition
from dmsgd.designs.stratified import Uniform
from dmsgd.diagnostics.facts import DataFacts
from dmsgd.diagnostics.measures import GradientVariance
from dmsgd.diagnostics.page import page_of
from dmsgd.features import Features
from dmsgd.files.contract import Column
from dmsgd.files.tables import write_rows
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.labels import commonest_and_rarest
from dmsgd.inputs.messages import counted, number, visible

#: Classes in a table; of more, the commonest and the rarest. With this evenness they are even.
CLASSES, EVEN = 24, 0.95
#: Characters of names, of the five cells beside them at most, and of lines.
NAME, CELL, WIDTH = 24, 11, 79


@final
@dataclass(frozen=True, eq=False)
class BatchFigures:
    """What batches of one kind hold and do, in closed form but for `noise` where it has an error.

    Noise is the variance of a batch's mean over that of independent draws with the same
    frequencies, and None where nothing varies.
    """

    name: str  # "shuffle", "Stratified" or "k-DPP"
    design: ClosedForm = field(repr=False)  # of the items `rows`; of shuffled epochs `Uniform`
    rows: IntArray = field(repr=False)
    items: dict[Any, float] = field(repr=False)  # expected items in a batch by class
    per_epoch: dict[Any, float] = field(repr=False)  # how often an item is seen, by class
    seen: float  # expected share of the items that occur in an epoch
    noise: float | None = 1.0
    error: float = 0.0  # standard error of the noise
    variance: GradientVariance | None = field(default=None, repr=False)  # what the noise is from

    def texts(self) -> tuple[str, str, str]:
        """Return what is seen, the noise, and which random batch is as steady, as text."""
        if self.noise is None:
            return f"{self.seen:.0%}", "-", "-"
        error = f" ± {2 * self.error:.0%}" if self.error else ""
        size = f"{self.design.k / self.noise:,.0f}" if self.noise > 0.001 else "-"
        return f"{self.seen:.0%}", f"{self.noise:.0%}{error}", size


@final
@dataclass(frozen=True)
class Advice:
    """The batches to use, why, and the price, in sentences."""

    options: DesignOptions  # batches="uniform" means shuffled epochs
    k: int
    reason: str
    price: str

    @property
    def name(self) -> str:
        """The kind of batches: "shuffled epochs", "Stratified" or "k-DPP"."""
        kinds = {"uniform": "shuffled epochs", "stratified": "Stratified"}
        return kinds.get(self.options.batches, self.options.batches)

    @property
    def code(self) -> str:
        """The line of Python that makes these batches."""
        if self.options.batches == "uniform":
            return f"loader = torch.utils.data.DataLoader(data, batch_size={self.k}, shuffle=True)"
        return f"design = {self.options.code(self.k)}"

    def design(self, X: Any, labels: Any = None) -> Design:
        """Return the recommended design of this data; shuffled epochs are a `Partition`."""
        design = make_design(self.options, X, self.k, labels)
        return Partition(design) if isinstance(design, Uniform) else design


class Fact(NamedTuple):
    """A figure and the rest of its line, and whether it deserves attention."""

    figure: str
    text: str
    alarming: bool = False


@final
@dataclass(frozen=True, eq=False, repr=False)
class Inspection:
    """What `inspect` has found; `print` shows it as `dmsgd inspect` does.

    data:     facts about the data, whatever batches are drawn: `classes`, `duplicates`,
              `deviations` of columns, `dimension`.
    batches:  what batches hold: shuffled, as recommended, and of a k-DPP that was asked for. Each
              has `name`, `items` and `per_epoch` (by class), `seen`, `noise` and `design`.
    advice:   the recommendation: `name`, `reason`, `price`, `code`, and `design(X, labels)`.
    warnings: sentences about properties of the data that deserve one.
    options:  as given, with the kernel that "auto" chose for a k-DPP.
    what:     whose variance `noise` is: "a batch's columns" or "these gradients".
    """

    k: int
    data: DataFacts
    batches: tuple[BatchFigures, ...]
    advice: Advice
    warnings: tuple[str, ...]
    options: DesignOptions
    what: str
    _given: Any = field(repr=False)
    _X: Features = field(repr=False)
    _labels: Any = field(repr=False)

    def html(self, title: str = "Your data", *, texts: Any = None, images: Any = None) -> str:
        """Return one HTML page that loads nothing; images: (n, height, width[, 3]).

        >>> import dmsgd, numpy as np
        >>> X = np.random.default_rng(0).normal(size=(60, 12))
        >>> "<title>My data</title>" in dmsgd.diagnostics.inspect(X, k=4).html("My data")
        True
        """
        return page_of(self, title, texts, images)

    def csv(self) -> str:
        """Return a CSV table of the items.

        item, class (with labels), times_uniform: how often it is drawn, over uniform batches, by
        the k-DPP that was asked for or else as recommended; near_duplicate_of: the first item of
        its group, if that is another.
        """
        shown, rows = self.batches[-1], self.data.rows
        items = rows if shown.rows.size == self.data.n else shown.rows
        columns: list[Column] = [("item", items)]
        if self._labels is not None:
            columns.append(("class", self._labels[items]))
        ratio = shown.design.inclusion()[np.searchsorted(shown.rows, items)]
        ratio *= shown.rows.size / self.k
        columns.append(("times_uniform", [f"{each:.6g}" for each in ratio]))
        leaders = rows[self.data.duplicates.representative].tolist()
        others = {item: first for item, first in zip(rows, leaders, strict=True) if item != first}
        columns.append(("near_duplicate_of", [others.get(item) for item in items]))
        file = io.BytesIO()
        write_rows(file, ".csv", columns)
        return file.getvalue().decode()

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, source: str = "") -> Iterator[str]:
        """Yield the lines of `dmsgd inspect`; source: where the data is from."""
        for name, fact in self.facts(source).items():
            line = f"{name:11}{'!' if fact.alarming else ' '} {fact.figure}{fact.text}"
            yield from textwrap.wrap(line, WIDTH, subsequent_indent=13 * " ")
        yield ""
        if self.data.classes or len(self.batches) > 1:
            yield from self._table()
            yield ""
        for sentence in self.warnings:
            yield from textwrap.wrap(f"! {sentence}", WIDTH)
        advice = f"Use {self.advice.name}: {self.advice.reason} The price: {self.advice.price}"
        yield from textwrap.wrap(advice, WIDTH, break_on_hyphens=False)
        yield f"  {self.advice.code}"

    def facts(self, source: str = "") -> dict[str, Fact]:
        """Return what is known about the data in words, by name."""
        data, near, sizes = self.data, self.data.duplicates, sorted(self.data.classes.values())
        named, units = f"{source}: " if source else "", ", columns standardized" * data.standardized
        classes = sizes and f", {counted(len(sizes), 'class')} of {sizes[0]:,} to {sizes[-1]:,}"
        found = {"data": Fact(f"{named}{counted(data.n, 'item')} x {data.d:,}", classes or "")}
        if sizes:
            uneven, equal = data.evenness < EVEN, data.evenness * len(sizes)
            text = f", as uneven as {number(equal)} equal classes" if uneven else ", nearly even"
            found["classes"] = Fact(f"{number(sizes[-1] / sizes[0], 3)} : 1", text, uneven)
        if data.rows.size < data.n:
            found["sample"] = Fact(f"{data.rows.size:,} items", ", for all that follows", True)
        kind = "cosine" if near.metric == "cosine" else "similarity"
        part = "all" if near.searched == data.rows.size else f"only {near.searched:,} items"
        text = f" above {kind} {near.above:g} ({part} searched{units}"
        if count := len({*near.pairs.ravel().tolist()}):
            text += f"; {data.equal:,} equal to another" if data.equal else ""
        elif near.closest is not None:
            text += f"; closest pair seen {near.closest.similarity:.3f}"
        figure = counted(count, "item") if count else "none"
        found["duplicates"] = Fact(figure, f"{text})", count > 0)
        differ = data.different_units and not self.options.standardize
        figure = "in different units" if differ else "standardized" * data.standardized or "even"
        text = f" (largest deviation {number(data.column_ratio)} medians)"
        text += f"; {data.constant:,} constant" if data.constant else ""
        found["columns"] = Fact(figure, text, differ)
        held = f"{counted(d := data.directions(), 'direction')} hold{'s' * (d == 1)}"
        part = f" of {data.measured:,} items" if data.measured < data.n else ""
        text = f" effective; {held} 90 % of the variance{part}{units}"
        found["dimension"] = Fact(number(data.dimension), text)
        if (drawn := self.batches[-1]).name == "k-DPP":
            part = f"of a sample of {drawn.rows.size:,}: " if drawn.rows.size < data.n else ""
            found["k-DPP"] = Fact(part, self.options.code(self.k))
        return found

    def listed(self) -> list[Any]:
        """Return the classes that tables show, commonest first."""
        names = list(self.data.classes)
        return [names[c] for c in commonest_and_rarest([*self.data.classes.values()], CLASSES)]

    def _table(self) -> Iterator[str]:
        """Yield what batches hold, how often items are seen, and how noisy batches are."""

        def row(name: str, cells: Iterable[str]) -> str:
            return f"{name:{NAME}}" + "".join(f"{each:>{CELL}}" for each in cells)

        others, title = self.batches[1:], f"A batch of {self.k:,}"
        names, classes = [each.name for each in self.batches], self.data.classes
        if classes:
            seen = "   an item is seen per epoch" if others else ""
            yield f"{title:{NAME}}{'holds items':>{CELL * len(names)}}{seen}"
        yield row("class (items)" if classes else title, names + names[1:] * bool(classes))
        for label in self.listed():
            count = f" ({classes[label]:,})"
            held = [number(each.items.get(label, 0.0)) for each in self.batches]
            often = [number(each.per_epoch.get(label, 0.0)) for each in others]
            yield row(visible(label, NAME - 1 - len(count)) + count, held + often)
        if len(classes) > CLASSES:
            yield f"(of {len(classes):,} classes the commonest and the rarest)"
        if others:
            texts = zip(*(each.texts() for each in self.batches), strict=True)
            heads = "items seen per epoch", "noise", "equivalent random batch"
            yield from map(row, heads, texts)
