"""`Diversified`: an estimator that fits another one on diverse batches."""

from __future__ import annotations

import math
from functools import wraps
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_array, check_random_state
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dmsgd.designs.build import make_design
from dmsgd.designs.contract import Design
from dmsgd.designs.options import Batches, DesignOptions, KernelName, TargetName
from dmsgd.designs.stream import as_indexable
from dmsgd.errors import RankError, warn_kernel
from dmsgd.inputs.alignment import by_position
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_count, as_flag, as_positive
from dmsgd.sgd import train_sklearn

#: Not those of the estimator: `partial_fit` would learn from batches that are not the design's.
OWN = frozenset({"estimator", "estimator_", "design_", "partial_fit"})


class Diversified(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that fits another batch by batch (`partial_fit`), with batches of a design.

    estimator: anything with partial_fit: SGDClassifier, MLPClassifier, MiniBatchKMeans, ...
    batches:   "k-DPP"; "weighted", its frequencies without repulsion; "stratified"; "uniform".
    k:         items per batch; fewer where X has fewer rows, or the kernel a lower rank (with a
               warning), so that no fold of a search fails.
    w, kernel, scale, standardize, normalize, target: as in `dmsgd.diversify`; labels are y.
    epochs:    how long to train: on ceil(epochs n / k) batches.
    unbiased:  weight items by k / (n b_i), if partial_fit takes sample_weight.
    random_state: int, RandomState or None, as in scikit-learn, for the batches, and for the
               estimator if its own is None.

    After `fit`: `estimator_`, `design_`, and all methods and attributes of the fitted estimator
    (predict, transform, score, coef_, classes_, feature_names_in_, ...).
    See also `dmsgd.sgd.train_sklearn`, `DiverseSelector`.

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
        batches: Batches = DesignOptions.batches,
        k: int = 32,
        w: float = DesignOptions.w,
        kernel: KernelName = DesignOptions.kernel,
        scale: float | None = DesignOptions.scale,
        standardize: bool = DesignOptions.standardize,
        normalize: bool | None = DesignOptions.normalize,
        target: TargetName | None = DesignOptions.target,
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

    def fit(self, X: Any, y: Any = None, **params: Any) -> Diversified:
        """Learn from ceil(epochs n / k) batches; y is None for estimators that need none.

        params: arguments of the estimator's `partial_fit`, such as sample_weight. Each batch gets
                the entries of its items.

        Rows are matched by position, as in scikit-learn; y or params that have another index than a
        frame X raise ValueError.
        """
        labels = by_position(y, X, "y")
        for name, value in params.items():
            by_position(value, X, name)
        epochs, unbiased = as_positive(self.epochs, "epochs"), as_flag(self.unbiased, "unbiased")
        given = self.get_params(deep=False)
        names = vars(DesignOptions()).keys() & given.keys()
        options = DesignOptions(**{name: given[name] for name in names})
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "fit", **params).estimator.partial_fit
        if options.batches == "stratified" and y is None:
            raise ValueError("batches='stratified' needs y")
        uses_features = options.batches not in ("stratified", "uniform")
        rows = check_array(X, accept_sparse="csr") if uses_features else as_indexable(X, "X")
        random = check_random_state(self.random_state)
        seed = int(random.randint(2**31 - 1))
        self.design_ = _fitting_design(options, rows, as_count(self.k, "k"), labels)
        self.estimator_ = _seeded(clone(self.estimator), random)
        steps = math.ceil(epochs * self.design_.n / self.design_.k)
        for _ in train_sklearn(
            self.estimator_, X, y, self.design_, steps, seed=seed, unbiased=unbiased, **params
        ):
            pass
        if hasattr(self.estimator_, "labels_"):  # of clusters: `partial_fit` keeps the last batch's
            self.estimator_.labels_ = self.estimator_.predict(X)
        return self

    def __getattr__(self, name: str) -> Any:
        """Return a method or attribute of the fitted estimator: predict, score, coef_, ..."""
        own = name.startswith(("_", "set_", "fit_")) or name in OWN
        if own or name in self.estimator.get_params(deep=False):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if "estimator_" in vars(self):
            return getattr(self.estimator_, name)
        method = getattr(self.estimator, name)  # raises AttributeError where there is none
        if name.endswith("_") or not callable(method):
            check_is_fitted(self, "estimator_")  # raises, with an error that is an AttributeError
        # With its signature: a search asks whether `score` takes sample_weight.
        return wraps(method)(lambda *_, **__: check_is_fitted(self, "estimator_"))

    @available_if(lambda self: hasattr(self.estimator, "transform"))  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Return what the estimator's `transform` makes of X after `fit`."""
        return self.fit(X, y, **params).transform(X)

    @available_if(lambda self: hasattr(self.estimator, "fit_predict"))  # type: ignore[untyped-decorator]
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Return what the estimator's `predict` makes of X after `fit`: the clusters."""
        return self.fit(X, y, **params).predict(X)

    @available_if(lambda self: hasattr(self.estimator, "set_output"))  # type: ignore[untyped-decorator]
    def set_output(self, *, transform: Any = None) -> Diversified:
        """Choose the container that the estimator's `transform` returns."""
        for estimator in (self.estimator, vars(self).get("estimator_", self.estimator)):
            estimator.set_output(transform=transform)
        return self

    def get_metadata_routing(self) -> Any:
        """Return which arguments the estimator gets: those of `fit` are for its `partial_fit`."""
        to = MethodMapping().add(caller="score", callee="score")
        for caller in ("fit", "fit_transform", "fit_predict"):
            to.add(caller=caller, callee="partial_fit")
        router = MetadataRouter(owner=type(self).__name__)
        return router.add(estimator=self.estimator, method_mapping=to)

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


def _fitting_design(options: DesignOptions, X: Any, k: int, y: Any) -> Design:
    """Return the design with batches of k items, or of as many as X has."""
    k = min(k, X.shape[0])
    try:
        return make_design(options, X, k, y)
    except RankError as error:
        if error.rank < 1:
            raise
        few = f"batches have {counted(error.rank, 'item')} instead of k={k}"
        warn_kernel(f"{few}, because the kernel's rank is no higher", **error.fixes)
        return make_design(options, X, error.rank, y)


def _seeded(estimator: Any, random: np.random.RandomState) -> Any:
    """Return the estimator; each random_state of it that is None becomes a number."""
    for name, value in sorted(estimator.get_params().items()):
        if name.split("__")[-1] == "random_state" and value is None:
            estimator.set_params(**{name: random.randint(2**31 - 1)})
    return estimator
