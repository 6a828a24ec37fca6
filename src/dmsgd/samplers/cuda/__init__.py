"""The default sampler on a GPU: the algorithm of `dmsgd.compiled.kdpp`, by the same numbers."""
