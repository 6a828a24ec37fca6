"""The paper's Tables 1 and 4: what a batch costs beside the LDA update that uses it.

CPU seconds on one thread, medians over repeats: one draw of k of R8's 5,485 training documents, and
one update of scikit-learn's LDA with k documents, with the priors and rates of the experiment `r8`.
Most of an update is local inference, so its cost depends on when that stops: at convergence, as is
usual (at most 100 iterations, scikit-learn's default), or as early as `r8` does, which is better
for its features. The paper does not say; both are here. Set-up (the spectrum, clusters, a chain's
burn-in, one draw to compile and warm up) is paid once and listed apart.

The paper's fast sampler "with M = 100" can be read in two ways, and both are here: the coreset
approximation with 100 cores (Li, Jegelka, Sra, arXiv 1509.01618, where M is the number of cores),
and the swap chain of the article it cites (arXiv 1603.06052) with 100 steps a draw. The chain with
this package's default of 10 k steps a draw mixes better and costs more.

Python calls are part of both sides: draws are made 64 at a time, as training does.
"""
