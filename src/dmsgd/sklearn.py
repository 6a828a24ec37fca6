"""A scikit-learn estimator that learns from diverse batches; its settings can be searched.

model = dmsgd.sklearn.Diversified(SGDClassifier(), k=32, w=0.7)
GridSearchCV(model, {"k": [16, 64], "w": [0, 0.5, 0.9], "batches": ["uniform", "k-DPP"]}).fit(X, y)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from dmsgd.inputs.messages import require

require("sklearn", "dmsgd.sklearn")

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dmsgd.designs import Design, DesignOptions
from dmsgd.designs.build import make_design
from dmsgd.designs.options import Batches, KernelName, TargetName
from dmsgd.designs.stream import as_indexable
from dmsgd.inputs.scalars import as_flag, as_positive
from dmsgd.sgd import train_sklearn


def _has(method: str) -> Callable[[Any], bool]:
    """Return whether the estimator behind a `Diversified` has this method."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class Diversified(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fits an estimator batch by batch (`partial_fit`), batches being drawn from a design.

    estimator: anything with partial_fit: SGDClassifier, MLPClassifier, MiniBatchKMeans, ...
    batches:   "k-DPP"; "weighted", which sees items as often and lets all of them meet;
               "partition", every item once an epoch in diverse batches; "stratified"; "uniform".
    k, w, kernel, scale, standardize, normalize, target: as in `dmsgd.diversify`; labels are y.
    epochs:    passes over as many items as there are: ceil(epochs n / k) batches.
    unbiased:  weigh items by k / (n b_i), where partial_fit takes sample_weight.
    random_state: int, RandomState or None, as in scikit-learn, for the batches.

    After `fit`: `estimator_`, `design_`, and what the estimator itself has learned (classes_, ...).

    >>> import numpy as np
    >>> from sklearn.linear_model import SGDClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 8))
    >>> model = Diversified(SGDClassifier(random_state=0), k=8, w=0.5, random_state=0)
    >>> bool(model.fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.85)
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        batches: Batches = "k-DPP",
        k: int = 32,
        w: float = 0.0,
        kernel: KernelName = "linear",
        scale: float | None = None,
        standardize: bool = False,
        normalize: bool = False,
        target: TargetName | None = None,
        epochs: float = 10.0,
        unbiased: bool = False,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.batches = batches
        self.k = k
        self.w = w
        self.kernel = kernel
        self.scale = scale
        self.standardize = standardize
        self.normalize = normalize
        self.target = target
        self.epochs = epochs
        self.unbiased = unbiased
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Diversified:
        """Learn from ceil(epochs n / k) batches; y is None for estimators that need none."""
        epochs = as_positive(self.epochs, "epochs")
        as_flag(self.unbiased, "unbiased")
        rows = as_indexable(X, "X")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.design_ = self._design(rows, y)
        self.estimator_ = clone(self.estimator)
        steps = math.ceil(epochs * self.design_.n / self.design_.k)
        for _ in train_sklearn(
            self.estimator_, X, y, self.design_, steps, seed=seed, unbiased=self.unbiased
        ):
            pass
        return self

    def _design(self, X: Any, y: Any) -> Design:
        if self.batches == "stratified" and y is None:
            raise ValueError("batches='stratified' needs y")
        given, names = self.get_params(deep=False), {each.name for each in fields(DesignOptions)}
        options = DesignOptions(**{name: given[name] for name in given if name in names})
        return make_design(options, X, self.k, y)

    def _fitted(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    @available_if(_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Return what the estimator predicts."""
        return self._fitted().predict(X)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the estimator's probabilities of the classes."""
        return self._fitted().predict_proba(X)

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Return the estimator's decision function."""
        return self._fitted().decision_function(X)

    @available_if(_has("transform"))  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Any:
        """Return what the estimator makes of X."""
        return self._fitted().transform(X)

    @available_if(_has("transform"))  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Return what the estimator makes of X once it has learned from it."""
        return self.fit(X, y).transform(X)

    @available_if(_has("get_feature_names_out"))  # type: ignore[untyped-decorator]
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the estimator's names of what `transform` returns."""
        return self._fitted().get_feature_names_out(input_features)

    @available_if(_has("set_output"))  # type: ignore[untyped-decorator]
    def set_output(self, *, transform: Any = None) -> Diversified:
        """Choose the container that the estimator's `transform` returns."""
        for estimator in (self.estimator, getattr(self, "estimator_", self.estimator)):
            estimator.set_output(transform=transform)
        return self

    @available_if(_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None) -> Any:
        """Return the estimator's own score."""
        return self._fitted().score(X) if y is None else self._fitted().score(X, y)

    @property
    def classes_(self) -> Any:
        """The classes that the estimator knows."""
        return self._fitted().classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in `fit`."""
        return int(self._fitted().n_features_in_)

    def __sklearn_tags__(self) -> Any:
        """Return what kind of estimator this is: the kind of the one that it fits."""
        from sklearn.utils import get_tags

        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.transformer_tags, tags.target_tags = inner.transformer_tags, inner.target_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    @property
    def _estimator_type(self) -> Any:
        """The same for scikit-learn before 1.6."""
        return getattr(self.estimator, "_estimator_type", None)
