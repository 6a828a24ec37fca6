"""A query strategy for scikit-activeml; importing this module loads scikit-activeml."""

from __future__ import annotations

from typing import Any, Literal

from dmsgd.inputs.messages import require

require("activeml", "dmsgd.activeml")

import numpy as np
from skactiveml.base import SingleAnnotatorPoolQueryStrategy, SkactivemlClassifier
from skactiveml.utils import MISSING_LABEL, check_equal_missing_label, check_type, is_labeled
from sklearn.base import clone

from dmsgd.inputs.scalars import as_choice
from dmsgd.selection.select import How, select
from dmsgd.selection.uncertainty import Uncertainty, uncertainty


class DiverseQuery(SingleAnnotatorPoolQueryStrategy):  # type: ignore[misc]
    """A query strategy for samples that are uncertain, diverse and unlike the labelled ones.

    how:       as in `dmsgd.select`; "cover" queries samples that stand for many uncertain ones.
    method:    of `dmsgd.uncertainty`: "margin", "entropy" or "least confidence".
    metric:    "euclidean" or "cosine".
    diversity: weight of diversity against uncertainty, as in `dmsgd.select`.
    missing_label, random_state: as in scikit-activeml.

    Utilities are uncertainties, whose order is not that of the samples: a batch is chosen as a
    whole. What each sample adds is in `gains` of `dmsgd.select(..., details=True)`. Samples that
    are neither labelled nor candidates are covered, too.
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
        chosen = select(
            X,
            batch_size,
            quality=quality,
            diversity=self.diversity,
            given=given,
            exclude=exclude,
            how=self.how,
            metric=self.metric,
        )
        if not return_utilities:
            return chosen
        utilities = np.full((batch_size, len(X)), np.nan)
        utilities[:, mapping] = quality[mapping]
        for step, item in enumerate(chosen[:-1]):
            utilities[step + 1 :, item] = np.nan
        return chosen, utilities
