"""The paper's Figure 9: a CNN on MNIST, whose classes are balanced, with batches of 10 and 200.

The kernel is RBF on F = [(1-w)X, wH] with w = 0.5, X the pixels divided by 255, over half of the
training set. Two stages: `batches.draw` makes all batches (needs the samplers), `models.cnn` trains
on them (needs PyTorch alone, so that it can be done on a machine with a GPU), and `assemble` puts
both together; `run` does all of it here.

Within a seed all methods share the network's random start.
"""
