"""The paper's Figures 7, 8 and 11: softmax regression on Oxford-102, made long-tailed.

Training uses the official 'test' part (6149 images, 20 to 238 a class), testing the official
'train' part (10 a class, so that accuracy is balanced accuracy), tuning the official 'valid' part.
The kernel is L = FFᵀ with F = [(1-w)X, wH] and X of unit rows: the paper does not state the scale
of X, and w means nothing unless rows of X and of H are of similar length.

Within a seed all methods share the random start. The learning rate is the same for all methods at
a given k: the one of a small grid that gives *random* batches the best validation accuracy,
averaged over the epochs. Beyond the paper: shuffled epochs and pre-clustering as baselines,
unbiased updates, seconds to an accuracy, the noise of gradients, and balanced classes.
"""
