"""`build`: the page that shows a `Comparison`, with the items that it is about.

Every (w, k) of the page's sliders is computed beforehand, and goes into the page as JSON.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any, final

from dmsgd import __version__
from dmsgd.designs.build import make_kdpp, rows_for
from dmsgd.designs.design import unbiased_weights
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import DesignOptions, TargetName, as_design_options
from dmsgd.designs.stream import fixed_seed
from dmsgd.diagnostics import compare, gradient_variance, recommend
from dmsgd.diagnostics.compare import quiet_kernel_warnings
from dmsgd.diagnostics.comparison import Comparison
from dmsgd.diagnostics.data import take_rows
from dmsgd.diagnostics.gradients import GradientVariance
from dmsgd.features import as_features
from dmsgd.features.convert import split_label_column
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.arrays import FloatArray, as_array, to_numpy
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.messages import cell, visible
from dmsgd.inputs.scalars import OF_A_FRACTION, Seed, as_batch_size, as_function
from dmsgd.report.content import PageContent
from dmsgd.report.items import checked_images, inclusion_ratio
from dmsgd.selection.duplicates import NearDuplicates, near_duplicates

#: Batch sizes on the slider, as multiples of the requested one.
SIZES = (0.25, 0.5, 1.0, 2.0)
TARGETS: tuple[TargetName | None, ...] = ("uniform", "balanced", "density", None)
#: Operations that an exact variance may take; beyond, it is estimated from this many draws.
OPERATIONS, DRAWS = 1e11, 2000
#: Characters of a title that are shown.
TITLE = 200
#: Properties of a `GradientVariance` that the page shows beside its fields.
FACTORS = ("frequency_factor", "repulsion_factor", "equivalent_batch_size")


@final
@dataclass(frozen=True, eq=False)
class Report:
    """The report that `build` returns: its figures as an HTML page and as a table of items."""

    comparison: Comparison
    content: dict[str, Any] = field(repr=False)
    duplicates: NearDuplicates = field(repr=False)

    def html(self, title: str = "Diverse batches") -> str:
        """Return the HTML page, one file that loads no others.

        >>> import numpy as np
        >>> page = build(np.random.default_rng(0).normal(size=(60, 12)), k=4).html("My data")
        >>> "<title>My data</title>" in page
        True
        """
        return render("report.html", title, self.content)

    def csv(self) -> str:
        """Return a CSV table of the items that were compared.

        item, class (with labels), times_uniform: how often it is drawn, over uniform batches;
        near_duplicate_of: the first item of its group, if that is another.
        """
        found, first = self.comparison, self.duplicates.representative
        assert found.requested is not None
        columns: dict[str, list[Any]] = {"item": found.rows.tolist()}
        if found.codes is not None:
            names = [cell(name) for name in found.names]
            columns["class"] = [names[code] for code in found.codes]
        columns["times_uniform"] = [f"{each:.6g}" for each in inclusion_ratio(found.requested)]
        columns["near_duplicate_of"] = [
            "" if j == i else int(found.rows[j]) for i, j in enumerate(first.tolist())
        ]
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return file.getvalue()


def build(
    X: Any,
    k: int,
    labels: Any = None,
    options: DesignOptions | None = None,
    *,
    texts: Any = None,
    images: Any = None,
    gradients: Any = None,
    seed: Seed = 0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Report:
    """Return a report on what batches of k items would hold, as a page and a table.

    X, labels: (n, d) features and (n,) classes, as `diversify` takes them.
    options:   of the k-DPP that the page begins with, by default those of `diversify`. Sliders show
               other w and k; with a target, none.
    texts, images, gradients: (n,), (n, height, width[, 3]) and (n, p), each optional.

    The figures are those of `compare`, and take as long. Raises `RankError` if there is no k-DPP
    with these options. See also `compare`, `recommend`.

    >>> import numpy as np
    >>> report = build(np.random.default_rng(0).normal(size=(60, 12)), k=4)
    >>> report.content["ks"], report.content["kernel"]
    ([2, 4, 8], 'linear kernel, rows of length 1')
    """
    X, labels = split_label_column(X, labels)
    texts = aligned(texts, X, "texts")
    X = as_features(X, takes_labels=True)
    n = X.n
    k = as_batch_size(k, n)
    if k < 2 or n < 4:
        raise ValueError(f"a report needs batches of 2 or more and 4 items, got k={k} of {n}")
    options = as_design_options(options)
    as_function(progress, "progress", OF_A_FRACTION)
    if options.w > 0 and labels is None:
        raise ValueError(f"w={options.w:g} mixes in labels, but there are none; pass labels")
    seed, y = fixed_seed(seed), None if labels is None else as_labels(labels, n)
    texts = None if texts is None else to_numpy(texts, "texts")
    if texts is not None and texts.shape != (n,):
        raise ValueError(f"texts must be one per item ({n}), got shape {texts.shape}")
    images = None if images is None else checked_images(images, n)
    g = None if gradients is None else as_features(gradients, "gradients")
    if g is not None and g.n != n:
        raise ValueError(f"gradients has {g.n} items, the features {n}")
    ks = sorted({min(max(round(each * k), 2), max(n // 2, k)) for each in SIZES} | {k})
    found = compare(
        X,
        k,
        y,
        options,
        ks=() if options.target else tuple(ks),
        targets=tuple(each for each in TARGETS if each != options.target),
        seed=seed,
        progress=lambda fraction: progress(0.9 * fraction),
    )
    if found.requested is None or found.design is None:
        raise found.unavailable[found.options]
    duplicates = near_duplicates(rows_for(found.options, take_rows(X, found.rows)))
    content = PageContent(found, duplicates, texts, images, seed).as_dict()
    variance = None
    if g is not None:
        sampled = as_array(take_rows(g, found.rows).matrix)
        content["variance"] = _variance_section(found.design, sampled, seed)
        if found.candidate is not None:
            design = found.design
            if found.candidate.options != found.options:
                with quiet_kernel_warnings():
                    design = make_kdpp(found.candidate.options, take_rows(X, found.rows), k)
            variance = _variance(design, sampled, None, seed)
    advice = recommend(found, variance)
    content["advice"] = {
        "name": advice.name,
        "reason": advice.reason,
        "code": advice.code(k),
        "warnings": found.warnings(),
    }
    progress(1.0)
    return Report(found, content, duplicates)


def _variance(
    design: KDPP, gradients: FloatArray, coefficients: FloatArray | None, seed: Seed
) -> GradientVariance:
    """Return the variance, exact where that is quick."""
    n, p = gradients.shape
    exact = n * design.spectrum.rank**2 * min(n, p) <= OPERATIONS
    draws = None if exact else DRAWS
    return gradient_variance(design, gradients, coefficients, draws=draws, seed=seed)


def _variance_section(design: KDPP, gradients: FloatArray, seed: Seed) -> dict[str, Any]:
    """Return the variances of biased and unbiased training with this design."""
    coefficients: dict[str, Any] = {"biased": None}
    if (design.inclusion() > 0).all():
        coefficients["unbiased"] = unbiased_weights(design)
    rows = []
    for name, a in coefficients.items():
        found = _variance(design, gradients, a, seed)
        shown = asdict(found) | {each: getattr(found, each) for each in FACTORS}
        rows.append({"name": name} | shown)
    parameters = int(gradients.shape[1])
    return {"rows": rows, "draws": DRAWS, "k": design.k, "parameters": parameters}


def render(template: str, title: str, content: dict[str, Any]) -> str:
    """Return the page that `templates/{template}` makes of `content`.

    Jinja2 escapes text in the markup, `tojson` in the data, and the page's script inserts text as
    text; text of users has been made `visible`. A Content-Security-Policy forbids every request.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    environment.globals["static"] = _read
    page = environment.get_template(f"templates/{template}")
    return page.render(title=visible(title, TITLE), version=__version__, content=content)


def _read(name: str) -> str:
    """Return a file of this folder."""
    return files("dmsgd.report").joinpath(*name.split("/")).read_text(encoding="utf-8")
