"""`inspect`: what is in the data, what batches would hold, and which to use, before training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dmsgd.designs.build import NEARLY_UNIFORM, kdpp_of
from dmsgd.designs.contract import ClosedForm
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import DesignOptions
from dmsgd.designs.stratified import Stratified, Uniform
from dmsgd.designs.stream import fixed_seed
from dmsgd.diagnostics.facts import NUMBERS, DataFacts, find_facts, take_rows
from dmsgd.diagnostics.inspection import EVEN, Advice, BatchFigures, Inspection
from dmsgd.diagnostics.measures import LARGEST, class_shares, gradient_variance
from dmsgd.errors import RankError
from dmsgd.features import Features, as_features
from dmsgd.features.convert import split_label_column
from dmsgd.inputs.arrays import FloatArray, IntArray, as_array, random_rows
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.messages import counted, kind_of, number, visible
from dmsgd.inputs.scalars import Seed, as_part, seed_key
from dmsgd.runtime.threads import one_blas_thread

#: The eigendecomposition of a requested k-DPP takes about this many floating point operations. It
#: is of FEWEST items with an RBF kernel or a target, and never of more than MOST.
OPERATIONS, FEWEST, MOST = 2.5e10, 1500, 100_000
#: Operations that the exact variance of a k-DPP may take; beyond, it is estimated from draws.
EXACT, DRAWS = 1e10, 2000
#: Warn if squared norms of the longest tenth are this many times those of the shortest, and if k is
#: this many times the effective rank of the kernel.
NORMS, CROWDED = 3.0, 5.0
#: Repulsion that removes this share of the variance halves the batch size that is needed.
STRONG = 0.5
#: Shares below this are not worth a word; characters of a class's name in a sentence.
FEW, NAME = 0.01, 30


def inspect(
    X: Any,
    k: int,
    labels: Any = None,
    options: DesignOptions | None = None,
    *,
    gradients: Any = None,
    seed: Seed = 0,
) -> Inspection:
    """Return facts about the data, what batches of k hold, and which batches to use.

    X, labels: (n, d) features and (n,) classes, as `diversify` takes them.
    options:   of a k-DPP to show beside the recommended batches. By default there is none, and no
               kernel is decomposed.
    gradients: (n, p), the gradient of each item's loss: noise is then that of the gradients, and a
               k-DPP is shown, too.

    It recommends `Stratified` for uneven classes and otherwise shuffled epochs, which did best when
    models were trained on real data; a requested target is kept. Near-duplicates are searched for
    among 200,000 items at most. Facts about more than 100,000 items that are not in memory, and a
    k-DPP of many, are those of a random sample. See also `near_duplicates`, `gradient_variance`.

    >>> X = np.random.default_rng(0).normal(size=(200, 20))
    >>> found = inspect(X, k=8, labels=np.repeat(["common", "rare"], [190, 10]))
    >>> found.advice.code
    'design = dmsgd.Stratified(y, k=8)'
    >>> [{c: round(count, 2) for c, count in each.items.items()} for each in found.batches]
    [{'common': 7.6, 'rare': 0.4}, {'common': 4.0, 'rare': 4.0}]
    """
    options = DesignOptions() if options is None else options
    if not isinstance(options, DesignOptions):
        raise TypeError(f"options must be dmsgd.designs.DesignOptions, got {kind_of(options)}")
    X, labels = split_label_column(X, labels)
    given, X = X, as_features(X, takes_labels=True)
    k = as_part(k, "k", X.n)
    seed = fixed_seed(seed)
    y: Any = None if labels is None else as_labels(labels, X.n)
    if options.w > 0 and y is None:
        raise ValueError(f"w={options.w:g} mixes in labels, but there are none; pass labels")
    g = None if gradients is None else as_features(gradients, "gradients")
    if g is not None and g.n != X.n:
        raise ValueError(f"gradients has {g.n} items, the features {X.n}")
    facts = find_facts(X, y, options.standardize, seed)
    noted, batches = list(_warnings(facts, k, options)), [_shuffled(facts, k)]

    def add(name: str, design: ClosedForm, rows: IntArray, part: ClosedForm, of: IntArray) -> None:
        numbers = _columns(X, of, facts) if g is None else as_array(take_rows(g, of).matrix)
        batches.append(_figures(name, design, rows, y, facts, part, numbers, seed))

    # What to recommend: strata for uneven classes, or shuffled epochs; a target is kept.
    uneven = facts.classes and facts.evenness < EVEN
    kind = DesignOptions(batches="stratified" if uneven else "uniform")
    kind = kind if options.target is None else options
    if kind.batches == "stratified":
        whole, part = Stratified(y, k), Stratified(y[facts.rows], k)  # only noise needs features
        add("Stratified", whole, np.arange(X.n), part, facts.rows)
    if options.changed() or g is not None:
        try:
            kdpp, rows = _make_kdpp(X, k, y, options, facts, seed)
        except RankError as error:
            noted.append(f"no k-DPP is shown, as its rank is too small: {error}")
        else:
            options = kdpp.options or options
            noted += _kdpp_warnings(kdpp, facts, options)
            add("k-DPP", kdpp, rows, kdpp, rows)
    what = "a batch's columns" if g is None else "these gradients"
    advice = _advise(kind, facts, k, batches, what)
    return Inspection(k, facts, tuple(batches), advice, tuple(noted), options, what, given, X, y)


def _shuffled(facts: DataFacts, k: int) -> BatchFigures:
    """Return the figures of shuffled epochs, which are known."""
    seen = facts.n // k * k / facts.n
    items = {c: k * size / facts.n for c, size in facts.classes.items()}
    design, often = Uniform(facts.rows.size, k), dict.fromkeys(items, seen)
    return BatchFigures("shuffle", design, facts.rows, items, often, seen)


def _figures(
    name: str, design: ClosedForm, rows: IntArray, y: Any, facts: DataFacts, part: ClosedForm,
    numbers: FloatArray, seed: Seed,
) -> BatchFigures:  # fmt: skip
    """Return the figures of a design of these rows; its noise is that of `part`, over numbers."""
    shares = {} if y is None else class_shares(design, y[rows])
    items = {c: design.k * share for c, share in shares.items()}
    often = {c: share * facts.n / facts.classes[c] for c, share in shares.items()}
    missed = np.maximum(1 - design.inclusion(), 0.0) ** -(-design.n // design.k)  # in an epoch
    draws = None
    if isinstance(part, KDPP):
        work = part.n * float(part.spectrum.rank) ** 2 * min(numbers.shape)
        draws = None if work <= EXACT else DRAWS
    found = gradient_variance(part, numbers, draws=draws, seed=seed)
    control, seen = found.frequency_matched, 1 - float(missed.mean())
    noise, error = (found.variance / control, found.error / control) if control else (None, 0.0)
    return BatchFigures(name, design, rows, items, often, seen, noise, error, found)


def _columns(X: Features, rows: IntArray, facts: DataFacts) -> FloatArray:
    """Return the columns that the noise is measured on: those that vary most."""
    deviations = facts.deviations
    kept = np.sort(np.argsort(-deviations, kind="stable")[: max(1, NUMBERS // rows.size)])
    found = as_array(take_rows(X, rows).matrix[:, kept])
    if facts.standardized:
        found = found / np.where(deviations[kept] > 0, deviations[kept], 1.0)
    largest = float(np.abs(found).max())
    return found / largest if largest > LARGEST else found


def _make_kdpp(
    X: Features, k: int, y: Any, options: DesignOptions, facts: DataFacts, seed: Seed
) -> tuple[KDPP, IntArray]:
    """Return the k-DPP of all items, or of a random sample, and the numbers of these."""
    rbf = options.kernel == "rbf" or not (options.kernel == "linear" or X.d >= k)
    directions = X.d + len(facts.classes) * (options.w > 0)  # each class adds one
    linear = 0 if rbf or options.target else min(MOST, int(OPERATIONS / directions**2))
    rows = random_rows(X.n, max(FEWEST, 5 * k, linear), np.random.default_rng(seed_key(seed)))
    with one_blas_thread:  # more would spin between short products
        part, labels = take_rows(X, rows), None if y is None else y[rows]
        return kdpp_of(options, part, k, labels, options.quality, options.target), rows


def _warnings(facts: DataFacts, k: int, options: DesignOptions) -> Iterator[str]:
    """Yield sentences about the data that the lines about it do not have."""
    if facts.different_units and not options.standardize:
        yield "columns in different units: standardize them, or drop those that are no features"
    if facts.empty:
        yield f"{counted(facts.empty, 'item')} with only zeros as features"
    if 1 in facts.classes.values():
        yield "at least one class has a single item, which balanced batches often repeat"
    if len(facts.classes) > k:
        yield f"{len(facts.classes):,} classes and k = {k}: no batch can hold them all"


def _kdpp_warnings(design: KDPP, facts: DataFacts, options: DesignOptions) -> Iterator[str]:
    """Yield sentences about a k-DPP."""
    k, rank, linear = design.k, design.spectrum.effective_rank(), options.kernel == "linear"
    if options.w == 0 and k > CROWDED * rank:
        yield f"k = {k} is {k / rank:.0f} times the kernel's effective rank {rank:.1f}: choose less"
    if linear and not options.unit_rows and options.target is None and facts.norm_ratio > NORMS:
        fold = f"norms dominate: of the longest tenth they are {facts.norm_ratio**0.5:.3g} times as"
        yield f"{fold} long, and a linear kernel favours these; normalize, unless it is importance"
    if linear and facts.empty:
        yield "items with only zeros are never drawn by a linear kernel"
    if k > 1 and design.spectrum.repulsion(k) < NEARLY_UNIFORM:
        yield "near-uniform kernel: no two items are similar, so batches are nearly uniform"


def _advise(
    kind: DesignOptions, facts: DataFacts, k: int, batches: Sequence[BatchFigures], what: str
) -> Advice:
    """Return the recommendation, from figures of batches; what: has their variance."""
    if kind.target is not None:
        reason = f"target {kind.target} fixes how often items are drawn, as requested."
        return Advice(kind, k, reason, "an eigendecomposition first, and more time per batch.")
    if kind.batches == "stratified":
        first, *_, last = sorted(facts.classes, key=lambda each: -facts.classes[each])
        common, rare = (visible(each, NAME) for each in (first, last))
        ratio, without = facts.classes[first] / facts.classes[last], facts.missed(k)[last]
        often = batches[1].per_epoch  # of `Stratified`
        reason = f"class {common} has {number(ratio, 3)} times the items of class {rare}"
        if without >= FEW:
            reason += f", and {without:.0%} of shuffled batches hold no {rare}"
        price = f"in one epoch each item of class {rare} is seen {number(often[last])} times"
        unseen = (1 - k * often[first] / facts.n) ** (facts.n / k)
        if unseen >= FEW:
            price += f", and {unseen:.0%} of class {common} not at all"
        price += ". Shuffle if all items are to count the same."
        return Advice(kind, k, f"{reason}.", price)
    why = "the classes are even" if facts.classes else "there are no labels"
    reason = f"{why}, and nothing else was better when models were trained on real data."
    drawn = batches[-1]
    if drawn.name == "k-DPP" and drawn.noise is not None:
        removed = 1 - drawn.noise
        margin = f" (± {2 * drawn.error:.0%})" if drawn.error else ""
        reason += f" A k-DPP would remove {max(removed, 0.0):.0%}{margin} of the variance of {what}"
        X = "dmsgd.features.standardize(X)" if facts.different_units else "X"
        cells = f": dmsgd.Partition(dmsgd.cells({X}, {k})) is worth a try early on."
        reason += cells if removed - 2 * drawn.error >= STRONG else "."
    return Advice(kind, k, reason, "none, every loader shuffles.")
