"""Features: an (n, d) matrix, wherever it lives; made by `as_features`.

as_features    what users pass becomes `Features`
features       what features offer to everyone else
resident       arrays and CSR arrays in memory
sliced         the same under maps that make no copy of them
blocks         read block by block: a pass computes something from every block
files          .npy, Zarr and Parquet, as blocks
cluster        Dask arrays and frames, as blocks on a cluster
maps           normalize, standardize, anneal, concat, ...: maps wrap features and never change them
"""

from dmsgd.features.convert import as_features
from dmsgd.features.interface import Features, Map
from dmsgd.features.maps import anneal, concat, normalize, one_hot, standardize

__all__ = [
    "Features",
    "Map",
    "anneal",
    "as_features",
    "concat",
    "normalize",
    "one_hot",
    "standardize",
]  # fmt: skip
