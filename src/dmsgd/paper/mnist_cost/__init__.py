"""The paper's Table 5: seconds to sample a batch and to make one CNN step on it, MNIST.

CPU seconds on one thread, so that a busy machine changes little; the median over repetitions.
"""
