"""Where does repulsion pay? Batches in which every item is as likely, with and without it.

A k-DPP changes how often an item is seen and keeps similar items out of the same batch. Here only
the second is at work: all designs have b_i = k/n. They are compared by the steps to a given loss,
each at its own best rate, where theory expects most of repulsion (`settings`), beside the exact
variance of their gradients.
"""
