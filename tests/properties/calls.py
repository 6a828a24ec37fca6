"""Every public function and method that takes arguments, with what each of them may be.

A new public name without a line here fails `test_every_public_name_has_a_property`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import given
import kinds
import numpy as np
import results
from kinds import Kind

import dmsgd
from dmsgd import diagnostics
from dmsgd.inputs.alignment import as_named_items


@dataclass(frozen=True)
class Call:
    """run(size, **arguments), the kinds of these, and holds(result, size, arguments).

    frameworks: whose own checks may come first, and raise in their own words.
    """

    run: Callable[..., Any]
    arguments: dict[str, Kind]
    holds: Callable[..., None]
    frameworks: tuple[str, ...] = ()


def plain(function):
    """Return the call of a function that needs nothing but its arguments."""
    return lambda s, **arguments: function(**arguments)


def method(make, name):
    """Return the call of a method of what `make` gives."""
    return lambda s, **arguments: getattr(make(s), name)(**arguments)


class _Words:
    """Stands for the package where only the grammar of a line of code is looked at."""

    def __getattr__(self, name):
        return self

    def __call__(self, *given, **more):
        return self


def is_code(code, s, arguments):
    eval(code, {"dmsgd": _Words(), "X": [0], "y": [0]})


def loaded_schedule(s, **given):
    with TemporaryDirectory() as folder:
        dmsgd.presample(s.design, 3, path=f"{folder}/draws")
        return dmsgd.Schedule.load(f"{folder}/draws", **given)


def is_selection(items, s, arguments):
    results.is_items(items, s.n)
    assert len(set(items.tolist())) == items.size == arguments["k"]
    for name in ("given", "exclude"):
        closed = as_named_items(arguments[name], arguments["X"], s.n, name)
        assert not set(items.tolist()) & set(closed.tolist())


def is_covering(found, s, arguments):
    items = found.items if arguments["details"] else found
    results.is_items(items, s.n)
    assert len(set(items.tolist())) == items.size <= arguments["k"]
    if arguments["details"]:
        assert len(found.gains) == len(found.stands_for) == len(found.coverage) - 1 == items.size
        assert found.head(1).items.tolist() == items[:1].tolist()


def is_duplicates(found, s, arguments):
    assert (found.similarities >= arguments["above"]).all()
    first = found.representative
    assert (first[first] == first).all()
    assert (first <= np.arange(first.size)).all()
    assert (first[found.pairs[:, 0]] == first[found.pairs[:, 1]]).all()
    assert min(2, first.size) <= found.searched <= first.size
    repr(found)


def is_uncertainty(found, s, arguments):
    assert found.shape == (s.n,)
    assert ((found >= 0) & (found <= 1)).all()


#: Of two classes or more; logits may be any numbers.
PROBABILITIES = Kind(
    {"array": lambda s: np.full((s.n, 4), 0.25), "list": lambda s: [[0.0, 1.0]] * s.n},
    given.FEATURES_BAD,
    {"one class": lambda s: np.ones((s.n, 1)), "sum 2": lambda s: np.ones((s.n, 2))},
)
#: How much diversity counts: more than 0.
POSITIVE_SHARE = Kind(
    kinds.FRACTION.good,
    {**kinds.FRACTION.bad, "0": lambda s: 0},
    {"1": lambda s: 1, "1e-300": lambda s: 1e-300},
)
FEW_ITEMS = Kind(
    {"none": lambda s: (), "one": lambda s: [0], "uint8": lambda s: np.uint8([1])},
    {name: make for name, make in kinds.ITEMS.bad.items() if name not in ("None", "set")},
    {
        "twice": lambda s: [0, 0], "all": lambda s: range(s.n), "None": lambda s: None,
        "set": lambda s: {1, 2}, "mask": lambda s: np.arange(s.n) == 1,
    },
)  # fmt: skip

X, K, LABELS, SEED = kinds.X, kinds.BATCH_SIZE, kinds.LABELS, kinds.SEED
WIDE = {"X": X, "k": K}
NINE = np.random.default_rng(0).normal(size=(9, 2))
DRAWS = {"size": kinds.COUNT_OR_ZERO, "seed": SEED, "start": kinds.START, "workers": kinds.WORKERS}
PAIRS = {"i": kinds.ITEMS_OF_ANY_SHAPE, "j": kinds.ITEMS_OF_ANY_SHAPE}
ONLY_KDPP = Kind({"KDPP": lambda s: s.design}, kinds.CLOSED.bad, kinds.CLOSED.odd)

DESIGN_FUNCTIONS = {
    "diversify": Call(
        plain(dmsgd.diversify),
        {
            **WIDE,
            "labels": LABELS,
            "w": kinds.FRACTION,
            "kernel": kinds.KERNEL_NAME,
            "standardize": kinds.FLAG,
            "normalize": kinds.OPTIONAL_FLAG,
            "target": kinds.TARGET.optional(),
            "rho": Kind({"1": lambda s: 1}, kinds.POSITIVE.bad).optional(),
            "spectrum": kinds.named("auto", "exact", "nystrom", "pivoted_cholesky"),
        },
        results.is_design,
    ),
    "diversify (scale)": Call(
        lambda s, **given: dmsgd.diversify(kernel="rbf", **given),
        {**WIDE, "scale": kinds.POSITIVE.optional()},
        results.is_design,
    ),
    "clustered": Call(
        plain(dmsgd.designs.clustered),
        {**WIDE, "clusters": kinds.COUNT.optional(), "seed": SEED},
        results.is_design,
    ),
    "cells": Call(plain(dmsgd.cells), WIDE, results.is_design),
    "near_duplicates": Call(
        plain(dmsgd.near_duplicates),
        {
            "X": X,
            "above": POSITIVE_SHARE,
            "metric": kinds.named("cosine", "euclidean"),
        },
        is_duplicates,
    ),
    "select": Call(
        lambda s, **given: dmsgd.select(at_most=s.n, budget=1e300, **given),
        {
            "X": X,
            "k": K.without("None"),
            "quality": kinds.WEIGHTS.optional(),
            "groups": LABELS.without("None"),
            "costs": kinds.WEIGHTS,
            "until": POSITIVE_SHARE.optional(),
            "duplicates": POSITIVE_SHARE.optional(),
            "details": kinds.FLAG,
            "workers": kinds.WORKERS,
        },
        is_covering,
    ),
    "Selection.head": Call(
        lambda s, **given: dmsgd.select(NINE, 4, details=True).head(**given),
        {"k": kinds.COUNT},
        lambda found, s, given: results.is_items(found.items, 9),
    ),
    "select (how)": Call(
        plain(dmsgd.select),
        {
            **WIDE,
            "quality": kinds.WEIGHTS.optional(),
            "diversity": POSITIVE_SHARE,
            "given": FEW_ITEMS,
            "exclude": FEW_ITEMS,
            "how": kinds.named("greedy", "cover", "medoids"),
        },
        is_selection,
    ),
    "uncertainty": Call(
        plain(dmsgd.uncertainty),
        {
            "probabilities": PROBABILITIES,
            "how": kinds.named("margin", "entropy", "least confidence"),
            "logits": kinds.FLAG,
        },
        is_uncertainty,
    ),
    "with_quality": Call(
        plain(dmsgd.kernels.with_quality),
        {"kernel": kinds.KERNEL, "quality": kinds.WEIGHTS, "diversity": POSITIVE_SHARE},
        results.is_kernel,
    ),
    "suggest_scale": Call(
        plain(dmsgd.designs.suggest_scale), {**WIDE, "seed": SEED}, results.is_positive
    ),
    "unbiased_weights": Call(
        plain(dmsgd.unbiased_weights), {"design": kinds.CLOSED}, results.is_finite
    ),
}

DESIGNS = {
    "Uniform": Call(
        plain(dmsgd.Uniform),
        {"n": kinds.COUNT, "k": Kind({"1": lambda s: 1}, K.bad)},
        results.is_design,
    ),
    "Stratified": Call(
        plain(dmsgd.Stratified), {"labels": kinds.ALL_LABELS, "k": K}, results.is_design
    ),
    "Weighted": Call(plain(dmsgd.Weighted), {"b": kinds.INCLUSION, "k": K}, results.is_design),
    "Weighted (weights)": Call(
        plain(dmsgd.Weighted),
        {"weights": kinds.WEIGHTS.without("too short", "too long"), "k": K},
        results.is_design,
    ),
    "Weighted.like": Call(plain(dmsgd.Weighted.like), {"design": kinds.CLOSED}, results.is_design),
    "KDPP": Call(
        plain(dmsgd.KDPP),
        {"L": kinds.L, "k": K, "sampler": kinds.SAMPLER},
        results.is_design,
    ),
    "DPP": Call(plain(dmsgd.DPP), {"L": kinds.L}, results.is_dpp),
    "DPP.from_marginal": Call(
        plain(dmsgd.DPP.from_marginal),
        {
            "K": Kind(
                {
                    "matrix": lambda s: dmsgd.DPP(s.kernel).marginal_kernel(),
                    "projection": lambda s: np.full((s.n, s.n), 1 / s.n).tolist(),
                    "kernel": lambda s: dmsgd.kernels.Linear(np.eye(s.n)),
                    "Spectrum": lambda s: dmsgd.spectra.Spectrum([1.0, 0.5], np.eye(s.n)[:, :2]),
                },
                kinds.L.bad,
                {**kinds.L.good, **kinds.L.odd},
            )
        },
        results.is_dpp,
    ),
    "Partition": Call(
        plain(dmsgd.Partition),
        {
            "design": Kind(
                {name: given.DESIGN_GOOD[name] for name in ("Uniform", "Stratified")},
                kinds.CLOSED.bad,
                ONLY_KDPP.good | kinds.CLOSED.odd,
            )
        },
        results.is_design,
    ),
    "OnePerGroup": Call(
        plain(dmsgd.designs.OnePerGroup),
        {
            "groups": Kind(
                {"apart": lambda s: np.arange(s.n), "text": lambda s: list(map(str, range(s.n)))},
                {**kinds.ALL_LABELS.bad, "one": lambda s: np.zeros(s.n)},
                kinds.LABELS.good | kinds.LABELS.odd,
            ).without("one class"),
            "k": K,
        },
        results.is_design,
    ),
    "SwapChain": Call(
        plain(dmsgd.designs.SwapChain),
        {
            "L": kinds.KERNEL,
            "k": K,
            "burn_in": kinds.COUNT_OR_ZERO.optional(),
            "thin": kinds.COUNT.optional(),
            "chain_length": kinds.COUNT,
        },
        results.is_design,
    ),
}

SOME_OF = {
    **given.DESIGN_GOOD,
    **{name: given.DESIGN_ODD[name] for name in ("Partition", "OnePerGroup", "SwapChain")},
}
#: Designs with closed forms.
KNOWN = {**given.DESIGN_GOOD, **given.DESIGN_EDGE}
SOME_KERNELS = {
    "Linear": lambda s: s.kernel,
    "RBF": lambda s: dmsgd.kernels.RBF(s.X),
    "Precomputed": lambda s: dmsgd.kernels.Precomputed(s.X @ s.X.T),
}

METHODS = {
    **{
        f"{name}.sample": Call(method(make, "sample"), DRAWS, results.is_sample)
        for name, make in SOME_OF.items()
    },
    **{
        f"{name}.joint": Call(method(make, "joint"), PAIRS, results.is_probability)
        for name, make in {**KNOWN, "DPP": given.DESIGN_ODD["DPP"]}.items()
    },
    **{
        f"{name}.log_prob": Call(
            method(make, "log_prob"), {"batches": kinds.BATCHES}, results.is_log_probability
        )
        for name, make in KNOWN.items()
    },
    **{
        f"{name}.{what}": Call(method(make, what), arguments, results.is_finite)
        for name, make in SOME_KERNELS.items()
        for what, arguments in {
            "block": {"I": kinds.ITEMS, "J": kinds.ITEMS},
            "columns": {"J": kinds.ITEMS},
        }.items()
    },
    **{
        f"{name}.subset": Call(method(make, "subset"), {"items": kinds.ITEMS}, results.is_kernel)
        for name, make in SOME_KERNELS.items()
    },
    **{
        f"KDPP.given{which}": Call(
            method(make, "given"),
            {"items": kinds.GIVEN_ITEMS},
            results.is_design,
        )
        for which, make in {
            "": lambda s: s.design,
            " (near-deficient)": given.DESIGN_EDGE["KDPP (near-deficient)"],
        }.items()
    },
    **{
        f"DPP.given{which}": Call(
            method(make, "given"),
            {"items": kinds.GIVEN_ITEMS.without("too many")},
            results.is_dpp,
        )
        for which, make in {
            "": given.DESIGN_ODD["DPP"],
            " (marginal)": lambda s: dmsgd.DPP.from_marginal(
                dmsgd.spectra.Spectrum([1.0, 1.0, 0.5], np.linalg.qr(s.X)[0][:, :3])
            ),
        }.items()
    },
    "DPP.sample": Call(
        method(given.DESIGN_ODD["DPP"], "sample"), DRAWS, results.is_sample_of_any_size
    ),
    "DPP.log_prob": Call(
        method(given.DESIGN_ODD["DPP"], "log_prob"),
        {"batches": kinds.BATCHES_OF_ANY_SIZE},
        results.is_log_probability,
    ),
    "Schedule.sample": Call(
        method(given.DESIGN_ODD["Schedule"], "sample"),
        {
            "size": kinds.COUNT_OR_ZERO,
            "seed": Kind({"0": lambda s: 0, "None": lambda s: None}, SEED.bad),
            "start": kinds.COUNT_OR_ZERO,
            "workers": kinds.WORKERS,
        },
        results.is_sample,
    ),
    **{
        f"Spectrum.{what}": Call(method(lambda s: s.spectrum, what), {"k": K}, lambda *given: None)
        for what in ("batch_error", "require_rank", "repulsion")
    },
}

KERNELS = {
    "Linear": Call(plain(dmsgd.kernels.Linear), {"B": X}, results.is_kernel),
    "RBF": Call(
        plain(dmsgd.kernels.RBF),
        {"X": X.without("rows from 1e-100 to 1e100"), "scale": kinds.POSITIVE.optional()},
        results.is_kernel,
    ),
    "Precomputed": Call(
        plain(dmsgd.kernels.Precomputed),
        {
            "L": Kind(
                {name: lambda s, make=make: make(given.Gram(s)) for name, make in X.good.items()},
                given.FEATURES_BAD,
                given.FEATURES_ODD,
            ).without("features")
        },
        results.is_kernel,
    ),
}

FEATURES = {
    "one_hot": Call(plain(dmsgd.features.one_hot), {"labels": kinds.ALL_LABELS}, results.is_matrix),
    "anneal": Call(
        plain(dmsgd.features.anneal),
        {"X": kinds.POSITIVE_X, "rho": kinds.POSITIVE},
        results.is_matrix,
    ),
    "standardize": Call(plain(dmsgd.features.standardize), {"X": X}, results.is_matrix),
    "normalize": Call(plain(dmsgd.features.normalize), {"X": X}, results.is_matrix),
    "concat": Call(
        plain(dmsgd.features.concat),
        {"X": X, "labels": LABELS, "w": kinds.FRACTION},
        results.is_matrix,
    ),
}

SHARE = Kind({"0": lambda s: 0, "0.5": lambda s: 0.5}, {**kinds.FRACTION.bad, "1": lambda s: 1})

SPECTRA = {
    "exact": Call(
        plain(dmsgd.kernels.exact),
        {"kernel": kinds.KERNEL, "tol": kinds.FRACTION},
        results.is_spectrum,
    ),
    "nystrom": Call(
        plain(dmsgd.kernels.nystrom),
        {
            "kernel": kinds.KERNEL,
            "landmarks": kinds.LANDMARKS,
            "how": kinds.named("uniform", "pivots", "kmeans"),
            "seed": SEED,
        },
        results.is_spectrum,
    ),
    "pivoted_cholesky": Call(
        plain(dmsgd.kernels.pivoted_cholesky),
        {
            "kernel": kinds.KERNEL,
            "rank": kinds.COUNT.optional(),
            "tol": kinds.FRACTION.optional(),
            "seed": SEED,
            "oversampling": kinds.POSITIVE.without("np.float32"),
        },
        results.is_spectrum,
    ),
    "coreset": Call(
        plain(dmsgd.kernels.coreset),
        {"kernel": kinds.KERNEL, "cores": kinds.COUNT, "seed": SEED},
        results.is_coreset,
    ),
    "Spectrum": Call(
        plain(dmsgd.spectra.Spectrum),
        {
            "values": Kind(
                {"array": lambda s: np.array([3.0, 2.0]), "list": lambda s: [2, 1]},
                given.WEIGHTS_BAD,
                {
                    "rising": lambda s: [1.0, 2.0],
                    "equal": lambda s: [1.0, 1.0],
                    "far apart": lambda s: [3.8e111, 2e-9],
                    "overflow": lambda s: [1e308, 1e308],
                    "vanishing": lambda s: [1e-310, 5e-324],
                    **given.WEIGHTS_ODD,
                },
            ).without("too short", "too long"),
            "vectors": Kind(
                {
                    "array": lambda s: np.eye(s.n)[:, :2],
                    "list": lambda s: np.eye(s.n)[:, :2].tolist(),
                },
                {**given.FEATURES_BAD, "too few": lambda s: np.eye(s.n)[:, :1]},
                given.FEATURES_ODD,
            ),
            "tol": SHARE,
            "trace_error": SHARE,
            **dict.fromkeys(("route", "kernel", "data", "method"), kinds.TEXT),
        },
        results.is_spectrum,
    ),
}

PRESCRIPTION = {
    "prescribe": Call(
        plain(dmsgd.targets.prescribe),
        {
            "kernel": Kind(
                given.KERNEL_GOOD
                | {k: v for k, v in given.SPECTRUM_GOOD.items() if k != "by hand"},
                given.KERNEL_BAD,
                {
                    **given.KERNEL_ODD,
                    **given.SPECTRUM_ODD,
                    "by hand": given.SPECTRUM_GOOD["by hand"],
                },
            ),
            "k": Kind({"1": lambda s: 1}, K.bad, K.good),
            "target": kinds.TARGET,
            "tol": Kind({"1e-3": lambda s: 1e-3}, kinds.POSITIVE.bad, kinds.POSITIVE.odd),
        },
        results.is_kernel,
    ),
}

SCHEDULES = {
    "presample": Call(
        plain(dmsgd.presample),
        {
            "design": kinds.DRAWN.without("Schedule"),
            "steps": kinds.COUNT,
            "seed": SEED,
            "path": kinds.PATH,
            "workers": kinds.WORKERS,
            "progress": kinds.FLAG,
            "overwrite": kinds.FLAG,
        },
        results.is_schedule,
    ),
    "Schedule.load": Call(
        loaded_schedule,
        {},
        lambda schedule, s, given: results.is_schedule(schedule, s, {"steps": 3}),
    ),
    "Schedule.load (path)": Call(
        plain(dmsgd.Schedule.load),
        {"path": Kind({}, {**given.PATH_BAD, "nothing": lambda s: "no-such-schedule"})},
        results.is_anything,
    ),
}

NO_RESULT = {k: v for k, v in given.NOTHING_LIKE_IT.items() if k != "None"}
SETTINGS = Kind(
    {
        "None": lambda s: None,
        "normalize": lambda s: dmsgd.designs.DesignOptions(normalize=True),
        "standardize": lambda s: dmsgd.designs.DesignOptions(standardize=True),
        "w": lambda s: dmsgd.designs.DesignOptions(w=0.5),
    },
    NO_RESULT,
)
DIAGNOSTICS = {
    "class_shares": Call(
        plain(diagnostics.class_shares),
        {"design": kinds.CLOSED, "labels": LABELS},
        lambda shares, s, given: results.is_share(list(shares.values())),
    ),
    "gradient_variance": Call(
        plain(diagnostics.gradient_variance),
        {
            "design": kinds.CLOSED,
            "gradients": X,
            "coefficients": kinds.NUMBERS.optional(),
            "draws": kinds.COUNT.optional(),
            "seed": SEED,
        },
        results.is_anything,
    ),
    "inspect": Call(
        plain(diagnostics.inspect),
        {
            **WIDE,
            "labels": LABELS.optional(),
            "options": SETTINGS.without("w"),
            "gradients": Kind(
                {"None": lambda s: None, "array": lambda s: s.X},
                {k: v for k, v in given.FEATURES_BAD.items() if k != "None"}, given.FEATURES_ODD,
            ),
            "seed": SEED,
        },
        lambda found, s, given: found.html() and found.csv() and str(found),
    ),
    "Inspection.html": Call(
        method(lambda s: diagnostics.inspect(s.X, s.k), "html"),
        {
            "title": Kind({"text": lambda s: "My data"}, {}),
            "texts": Kind(
                {"None": lambda s: None, "list": lambda s: ["a"] * s.n},
                {"too short": lambda s: ["a"], "number": lambda s: 3},
            ),
            "images": Kind(
                {"None": lambda s: None, "grey": lambda s: np.ones((s.n, 3, 3))},
                {**NO_RESULT, "2-D": lambda s: s.X, "text": lambda s: np.full((s.n, 2, 2), "a"),
                 "NaN": lambda s: np.full((s.n, 2, 2), np.nan),
                 "empty": lambda s: np.ones((s.n, 0, 3)),
                 "complex": lambda s: np.full((s.n, 2, 2), 1j)},
            ),
        },
        results.is_anything,
    ),
    "DesignOptions": Call(
        plain(dmsgd.designs.DesignOptions),
        {
            "spectrum": kinds.named("auto", "exact"),
            "rank": Kind({"None": lambda s: None}, {"text": lambda s: "3", "0": lambda s: 0}),
            "batches": kinds.named("k-DPP", "weighted", "stratified", "uniform"),
            "w": kinds.FRACTION,
            "kernel": Kind({"rbf": lambda s: "rbf"}, kinds.KERNEL_NAME.bad),
            "standardize": kinds.FLAG,
            "normalize": kinds.OPTIONAL_FLAG,
            "scale": kinds.POSITIVE.optional(),
            "rho": kinds.POSITIVE.optional(),
            "target": kinds.named("uniform").optional(),
        },
        lambda settings, s, given: is_code(settings.code(s.k), s, given),
    ),
    "DesignOptions.code": Call(
        method(lambda s: dmsgd.designs.DesignOptions(w=0.5), "code"), {"k": kinds.COUNT}, is_code
    ),
}  # fmt: skip

#: Where names that are not those of dmsgd itself are public.
MODULES = (
    "designs", "kernels", "spectra", "features", "targets", "diagnostics",
)  # fmt: skip
HOMES = {name: module for module in MODULES for name in getattr(dmsgd, module).__all__}


def homed(name):
    """Return the name of a call with the module that it is public in: kernels.RBF."""
    home = HOMES.get(name.partition(" (")[0])
    return name if home is None else f"{home}.{name}"


GROUPS = (
    DESIGN_FUNCTIONS, DESIGNS, METHODS, KERNELS, FEATURES, SPECTRA, PRESCRIPTION, SCHEDULES,
    DIAGNOSTICS,
)  # fmt: skip
CALLS = {homed(name): call for group in GROUPS for name, call in group.items()}
