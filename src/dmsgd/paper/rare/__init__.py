"""Documents without labels, of which few are about something else: which batches hold those?

Twice. *Generated* documents have topics of which we know that one is rare: 5 topics of 198
documents and one of 10. Of the 150 words of a document four fifths are from its own topic. Features
are counts of words. *Help pages* are real texts that are on every machine: what `help` says about
the public functions and classes of NumPy and SciPy. Features are tf-idf, reduced to 40 directions.
All small packages, with less than 2 % of the pages each, are looked for; nobody planted them.

Nothing is trained: it is counted how many batches hold at least one document that is looked for.

k-means finds the generated topic every time, because it is a cluster. Most small packages are none,
and what k-means misses is drawn less often than by uniform batches. `dmsgd demo` shows it.

Other features of help pages were tried on the way: 16 to 200 directions, tf-idf itself, and RBF
kernels, with batches of 16 to 64. k-DPPs showed small packages 0.8 to 1.2 times as often as uniform
batches on average, single ones up to 2.3 times, and least often with 20 directions and fewer.
"""
