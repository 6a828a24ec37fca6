"""Features that are read block by block: larger than memory, or spread over a cluster.

    rows         what every such matrix offers, and how a pass over it works
    files        .npy, Zarr and Parquet
    cluster      Dask arrays and data frames
    transforms   normalize, anneal, concat, ... applied to each block as it is read
    recognise    which of these a value is, if any

Their spectra are in `dmsgd.spectra.streamed`; the sampler is `dmsgd.samplers.streamed`.
"""
