"""Features: an (n, d) matrix wherever it lives; made by `as_features`."""

from dmsgd.features.convert import as_features
from dmsgd.features.features import Features, RowMap
from dmsgd.features.maps import anneal, concat, normalize, one_hot, standardize

__all__ = [
    "Features",
    "RowMap",
    "anneal",
    "as_features",
    "concat",
    "normalize",
    "one_hot",
    "standardize",
]
