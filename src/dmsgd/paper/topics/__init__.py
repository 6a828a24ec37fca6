"""Which topics are found at size: 32 topics whose shares fall from 20 % to 0.02 %.

Words are of Zipf-like frequency, topics share the frequent ones, a document speaks of one topic and
a fifth of its words come from others, and lengths vary for reasons of their own. A million such
documents have 200 of the rarest topic, ten thousand have two.

A true topic is *found* if the topic assigned to it, one to one (`models.topics.match`), has at most
`Config.threshold` of its weight on the wrong words. The nearest two true topics are 0.68 apart in
the first seeds, so that an equal mixture of two is further than that from either.

All designs make equally many updates, and are also compared when they have read equally many words.
The k-DPPs are linear in tf-idf: to the power of 0.1, as on R8, and with rows of length 1. A *same
b* beside each draws every document as often and lets any two meet.

LDA has 40 topics, more than there are, and scikit-learn's default priors (1 / topics) and rates
(τ0 = 10, κ = 0.7). Before any of the reported seeds was run, seven settings were tried with 10,000
documents of seed 1000, 600 updates, uniform batches and the k-DPP of unit rows; topics found:

    α       η       τ0   κ     local  topics   uniform   k-DPP
    0.1     0.05    10   0.7   20     40       14        22
    0.1     0.05    10   0.5   20     40       13        20
    1/40    1/40    10   0.7   20     40       14        23      the one that is used
    0.1     0.2      1   0.5   20     40       13        18
    0.1     0.05    10   0.5   20     60       14        19
    0.1     0.05    64   0.7   20     40       15        16
    0.02    0.02     1   0.5   10     40       12        18

What is found is found within the first 100 updates or hardly ever.
"""
