"""Which sections gain: texts of 58 sections, from 4,390 training texts down to 10.

LDA learns from descriptions of Debian's packages, 70 % of each section; a classifier of topic
proportions is asked for the section of the test part, 20 %, and settings were chosen on the
remaining tenth (`search`). Many packages of one source say nearly the same, in all three parts.

All designs make equally many updates, and are also compared when they have read equally many words,
which is what an update costs. The k-DPPs are linear: in tf-idf to the power of 0.1, as on R8; and
in the first 150 directions of tf-idf (LSA) with unit rows, of the kernels in `corpus` that do not
simply read more words the one that shows small sections most, by b alone, without any training. A
*same b* beside each draws every document as often and lets any two meet. Strata of sections use
what the others do not know.

*Average accuracy* is the mean over sections, also of a classifier that weights them equally, and
*perplexity* is that of one half of the words of each test document given the other half.
"""
