"""The paper's Figures 4 to 6 and its tables of top words: topics of Reuters R8 as features.

LDA is trained for one effective pass, 69 updates of 80 documents, with uniform batches (SVI) and
with batches from a k-DPP (DM-SVI), whose kernel is linear in tf-idf to the power of 0.1. A linear
SVM then tells the eight classes apart by a document's topic proportions. Topics and SVM are learnt
from the training documents alone. *Average* accuracy is the mean over the classes, *total* accuracy
the share of all documents.

More designs stand beside them: the *same b* as DM-SVI without repulsion, repulsion with a *uniform
b*, documents drawn *by length* (in proportion to their words), the k-DPP of *unit rows*,
pre-clustering (k-means on tf-idf, no labels), and stratified sampling by class, which uses the
labels that the paper withholds from LDA.

With rho = 0.1 and k much smaller than the rank, b_i is nearly proportional to the number of
distinct words in a document (correlation 0.99): the k-DPP balances the classes of R8 because news
about earnings is short and repeats itself. With rows scaled to length 1 (`dmsgd.normalize`) it
shifts the classes half as far, and accuracies in cross-validation were those of SVI.

The paper states neither the vocabulary nor the priors, the learning rate, the local iterations or
the SVM. `search` chose them, the same for all methods, on the training documents alone.
"""
