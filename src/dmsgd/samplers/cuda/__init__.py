"""The default sampler on a GPU: the algorithm of `dmsgd.compiled.kdpp`, by the same random numbers.

A thread block draws a batch in `small_batches.cu`; in `large_batches.cu` many go in lockstep.
"""
