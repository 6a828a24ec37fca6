"""A scikit-learn estimator that learns from diverse batches; its parameters can be searched."""

from __future__ import annotations

import math
from typing import Any

from dmsgd.inputs.messages import require

require("sklearn", "dmsgd.sklearn")

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dmsgd.designs.build import make_design
from dmsgd.designs.options import CHECKS, Batches, DesignOptions, KernelName, TargetName
from dmsgd.designs.stream import as_indexable
from dmsgd.inputs.scalars import as_flag, as_positive
from dmsgd.sgd import train_sklearn


class Diversified(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fits an estimator batch by batch (`partial_fit`), with batches of a design.

    estimator: anything with partial_fit: SGDClassifier, MLPClassifier, MiniBatchKMeans, ...
    batches:   "k-DPP"; "weighted", as often without repulsion; "partition", every item once per
               epoch in diverse batches; "stratified"; "uniform".
    k, w, kernel, scale, standardize, normalize, target: as in `dmsgd.diversify`; labels are y.
    epochs:    passes over as many items as there are: ceil(epochs n / k) batches.
    unbiased:  weight items by k / (n b_i), if partial_fit takes sample_weight.
    random_state: int, RandomState or None, as in scikit-learn, for the batches.

    After `fit`: `estimator_`, `design_`, and all methods and attributes of the fitted estimator
    (predict, transform, score, classes_, ...).

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
        epochs, unbiased = as_positive(self.epochs, "epochs"), as_flag(self.unbiased, "unbiased")
        given = self.get_params(deep=False)
        options = DesignOptions(**{name: given[name] for name in CHECKS if name in given})
        rows = as_indexable(X, "X")
        if options.batches == "stratified" and y is None:
            raise ValueError("batches='stratified' needs y")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.design_ = make_design(options, rows, self.k, y)
        self.estimator_ = clone(self.estimator)
        steps = math.ceil(epochs * self.design_.n / self.design_.k)
        for _ in train_sklearn(
            self.estimator_, X, y, self.design_, steps, seed=seed, unbiased=unbiased
        ):
            pass
        return self

    def __getattr__(self, name: str) -> Any:
        """Return a method or attribute of the fitted estimator: predict, score, classes_, ..."""
        own = name.startswith("_") or name in ("estimator", "estimator_", "design_")
        if not own and "estimator_" in vars(self):
            return getattr(self.estimator_, name)
        if own or name.endswith("_") or not hasattr(self.estimator, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return lambda *_, **__: check_is_fitted(self, "estimator_")  # raises NotFittedError

    @available_if(lambda self: hasattr(self.estimator, "transform"))  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Return what the estimator's `transform` makes of X after `fit`."""
        return self.fit(X, y).transform(X)

    @available_if(lambda self: hasattr(self.estimator, "set_output"))  # type: ignore[untyped-decorator]
    def set_output(self, *, transform: Any = None) -> Diversified:
        """Choose the container that the estimator's `transform` returns."""
        for estimator in (self.estimator, vars(self).get("estimator_", self.estimator)):
            estimator.set_output(transform=transform)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return the kind of estimator, which is that of the estimator that it fits."""
        from sklearn.utils import get_tags

        tags = get_tags(self.estimator)
        tags.input_tags.allow_nan = tags.array_api_support = False
        return tags

    @property
    def _estimator_type(self) -> Any:
        """The same for scikit-learn before 1.6."""
        return getattr(self.estimator, "_estimator_type", None)
