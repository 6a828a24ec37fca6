"""Feature maps for kernels made by hand; `as_features` makes the (n, d) matrix of any input."""

from dmsgd.features.contract import Features as Features
from dmsgd.features.contract import RowMap as RowMap
from dmsgd.features.convert import as_features as as_features
from dmsgd.features.maps import anneal, concat, normalize, one_hot, standardize

__all__ = ["anneal", "concat", "normalize", "one_hot", "standardize"]
