"""`DiverseSelector`: `dmsgd.select` as an estimator of scikit-learn, which importing this loads."""

from __future__ import annotations

from typing import Any

from dmsgd.inputs.messages import require

require("sklearn", "dmsgd.sklearn")

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from dmsgd.inputs.alignment import aligned, as_named_items
from dmsgd.inputs.scalars import as_count, as_fraction, as_positive
from dmsgd.selection.result import Selection
from dmsgd.selection.rules import Metric
from dmsgd.selection.select import How, select


class DiverseSelector(BaseEstimator):  # type: ignore[misc]
    """A selector of diverse rows, by `dmsgd.select`; names are those of scikit-matter.

    n_to_select:  how many rows, or their share, a float up to 1. None is half of the rows, and no
                  limit if there is `until` or `budget`.
    how, diversity, metric, until, budget, at_most, at_least, duplicates, m: as in
                  `dmsgd.select`.

    After `fit`: `selected_idx_`, the chosen rows, best first; `support_`, True for these. With
    how="cover" or "medoids" there are also `gains_`, `coverage_`, `stands_for_` and `m_`, which are
    fields of `dmsgd.Selection`. There is no `transform`, which may not change the number of rows:
    use `X[selector.selected_idx_]`. See also `dmsgd.select`, `dmsgd.Selection`.

    >>> X = [[0.0, 0.0], [0.0, 0.1], [5.0, 5.0], [5.0, 5.1], [9.0, 0.0]]
    >>> DiverseSelector(n_to_select=3, how="greedy").fit(X).selected_idx_
    array([0, 4, 3])
    >>> selector = DiverseSelector(until=0.9).fit(X)
    >>> selector.selected_idx_, selector.stands_for_
    (array([2, 0, 4]), array([2., 2., 1.]))
    """

    def __init__(
        self,
        n_to_select: float | None = None,
        *,
        how: How = "cover",
        diversity: float = 0.5,
        metric: Metric = "euclidean",
        until: float | None = None,
        budget: float | None = None,
        at_most: Any = None,
        at_least: Any = None,
        duplicates: float | None = None,
        m: float | None = None,
    ) -> None:
        self.n_to_select = n_to_select
        self.how = how
        self.diversity = diversity
        self.metric = metric
        self.until = until
        self.budget = budget
        self.at_most = at_most
        self.at_least = at_least
        self.duplicates = duplicates
        self.m = m

    def fit(
        self,
        X: Any,
        y: Any = None,
        quality: Any = None,
        given: Any = (),
        exclude: Any = (),
        groups: Any = None,
        costs: Any = None,
        cover: Any = None,
    ) -> DiverseSelector:
        """Choose rows of X by `dmsgd.select`, which has the same arguments; y is ignored."""
        rows = check_array(X, accept_sparse="csr")
        n, self.n_features_in_ = rows.shape
        options = self.get_params(deep=False)
        size = options.pop("n_to_select")
        if size is None and self.until is None and self.budget is None:
            size = 0.5
        if isinstance(size, float | np.floating):
            size = max(int(n * as_positive(as_fraction(size, "n_to_select"), "n_to_select")), 1)
        details: Any = str(self.how) in ("cover", "medoids")  # of arrays `in` may raise
        found = select(
            rows,
            size if size is None else as_count(size, "n_to_select"),
            quality=aligned(quality, X, "quality"),
            given=as_named_items(given, X, n, "given"),
            exclude=as_named_items(exclude, X, n, "exclude"),
            groups=aligned(groups, X, "groups"),
            costs=aligned(costs, X, "costs"),
            cover=cover,
            details=details,
            **options,
        )
        for name in ("gains", "coverage", "stands_for", "m"):
            self.__dict__.pop(f"{name}_", None)  # of an earlier fit
            if isinstance(found, Selection):
                setattr(self, f"{name}_", getattr(found, name))
        self.selected_idx_ = found.items if isinstance(found, Selection) else found
        self.support_ = np.isin(np.arange(n), self.selected_idx_)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn asks of estimators: sparse matrices, or similarities."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags
