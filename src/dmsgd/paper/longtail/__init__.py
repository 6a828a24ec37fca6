"""Long-tailed digits: what six ways of drawing batches do for the rare classes, and at what cost.

scikit-learn's 8 x 8 digits, thinned so that class sizes fall geometrically (120 down to 5); the
test set is balanced. Every seed draws anew which digit is rare, the split, the initial weights and
the batches; within a seed all methods share the split and the initial weights.

`dmsgd demo` shows it, and the experiment `targets` trains on its task.
"""
