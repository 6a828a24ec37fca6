"""Does a diverse partition beat plain shuffling? Every item once an epoch, in batches cut anew.

A `dmsgd.Partition` cuts the data into n // k diverse batches an epoch. Here it is compared with
shuffled epochs, with independent batches, with classes spread evenly, and with an order in the
manner of GraB, on linear models of real data (`tasks`): how noisy a batch's gradient is, how soon
the average over a part of an epoch is that of all items, what is learnt in one epoch and in many at
each one's best rate, and what a batch costs.
"""
