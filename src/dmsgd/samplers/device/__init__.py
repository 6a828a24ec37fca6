"""Draws on a graphics card: the algorithm of `dmsgd.samplers.compiled`, by the same random numbers.

`few.cu` makes small batches, a thread block each; `many.cu` large ones, many in lockstep.
"""
