"""A query strategy for scikit-activeml; importing this module loads scikit-activeml."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from dmsgd.inputs.messages import require

require("activeml", "dmsgd.activeml")

import numpy as np
from skactiveml.base import SingleAnnotatorPoolQueryStrategy, SkactivemlClassifier
from skactiveml.utils import MISSING_LABEL, check_equal_missing_label, check_type, is_labeled
from sklearn.base import clone

from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.scalars import as_choice
from dmsgd.selection.result import Selection
from dmsgd.selection.select import How, Uncertainty, select, uncertainty


class DiverseQuery(SingleAnnotatorPoolQueryStrategy):  # type: ignore[misc]
    """A query strategy for samples that are uncertain, diverse and unlike the labelled ones.

    how:       as in `dmsgd.select`; "cover" queries samples that stand for many uncertain ones.
    method:    of `dmsgd.uncertainty`: "margin", "entropy" or "least confidence".
    metric:    "euclidean" or "cosine".
    diversity: weight of diversity against uncertainty, as in `dmsgd.select`.
    missing_label, random_state: as in scikit-activeml.

    Utilities of how="cover" are gains, one row for each sample of the batch: the uncertainty of a
    candidate, as a share of the largest, times the share of all uncertainty that it would cover
    beside the labelled samples and those chosen before it. Each sample has the largest of its row;
    from 8,192 samples on, one close to it. They take O(n² d) operations, only if they are asked
    for. Utilities of other sets are uncertainties, whose order is not that of the samples.

    Samples that are neither labelled nor candidates are covered, too.
    See also `select`, `uncertainty`.
    """

    def __init__(
        self,
        how: How = "cover",
        method: Uncertainty = "margin",
        metric: Literal["euclidean", "cosine"] = "euclidean",
        diversity: float = 0.5,
        missing_label: Any = MISSING_LABEL,
        random_state: Any = None,
    ) -> None:
        super().__init__(missing_label=missing_label, random_state=random_state)
        self.how = how
        self.method = method
        self.metric = metric
        self.diversity = diversity

    def query(
        self,
        X: Any,
        y: Any,
        clf: Any,
        fit_clf: bool = True,
        sample_weight: Any = None,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Any:
        """Return `batch_size` samples of X to label and, on request, their utilities.

        The arguments are those of scikit-activeml's strategies. `candidates` are numbers of samples
        of X, by default those that are not labelled.
        """
        X, y, candidates, batch_size, return_utilities = self._validate_data(
            X, y, candidates, batch_size, return_utilities, reset=True
        )
        mapping = self._transform_candidates(candidates, X, y, enforce_mapping=True)[1]
        check_type(clf, "clf", SkactivemlClassifier)
        check_type(fit_clf, "fit_clf", bool)
        as_choice(self.metric, "metric", ("euclidean", "cosine"))
        check_equal_missing_label(clf.missing_label, self.missing_label_)
        if fit_clf:
            weights = () if sample_weight is None else (sample_weight,)
            clf = clone(clf).fit(X, y, *weights)
        others = np.setdiff1d(np.arange(len(X)), mapping)
        known = is_labeled(y[others], self.missing_label_)
        given, exclude = others[known], others[~known]
        open_, quality = np.concatenate([mapping, exclude]), np.zeros(len(X))
        quality[open_] = uncertainty(clf.predict_proba(X[open_]), self.method)
        if not quality[mapping].any():
            quality[open_] = 1.0
        details: Any = self.how == "cover" and return_utilities
        chosen = select(
            X,
            batch_size,
            quality=quality,
            diversity=self.diversity,
            given=given,
            exclude=exclude,
            how=self.how,
            metric=self.metric,
            details=details,
        )
        if not return_utilities:
            return chosen
        utilities = np.full((batch_size, len(X)), np.nan)
        if isinstance(chosen, Selection):
            for step, gains in enumerate(_utilities(chosen)):
                utilities[step, mapping] = gains[mapping]
            chosen = chosen.items
        else:
            utilities[:, mapping] = quality[mapping]
        for step, item in enumerate(chosen[:-1]):
            utilities[step + 1 :, item] = np.nan
        return chosen, utilities


def _utilities(chosen: Selection) -> Iterator[FloatArray]:
    """Yield each item's quality times what it would add to coverage, before each choice.

    What a choice covers lowers the gains of all, so that those before the first one are the only
    ones that are computed from all pairs.
    """
    pool: Any = chosen._pool
    quality = chosen._demand
    similarity, weights = pool.similarity(chosen.scale), quality / quality.sum()
    weights = weights.astype(np.float32)
    covered = np.exp(pool.nearest(chosen._known) / -chosen.scale).astype(np.float32)
    gains = similarity.gained(None, None, covered, 1.0, weights)
    for item in chosen.items.tolist():
        yield quality * np.maximum(gains, 0.0)
        S = similarity.row(item)
        new = np.flatnonzero(covered < S)
        gains = gains - similarity.gained(None, new, covered[new], S[new], weights[new])
        covered = np.maximum(covered, S)
