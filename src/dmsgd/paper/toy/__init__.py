"""The paper's Figure 2: from an imbalanced subset of points in the plane, restore the balance.

The population is uniform on the unit square. Points near one spot are observed, the others only
rarely. Three designs then re-weight what was observed, each by its inclusion probabilities b_i.

How well they do is one number, the *imbalance*: the total variation distance between the weight
that a design puts on the cells of a grid and the population's equal weight on each, over the cells
that hold data. It is the share of the weight that sits in the wrong cell: 0 is balanced.

Choices the paper leaves open. k = 10 is in a comment of its source. The kernel's scale is 1/√k, the
distance between neighbours when k points are spread evenly over the square: with a much smaller one
all points look unlike (plain SGD), with a much larger one the corners are drawn too often. The two
other designs do not depend on k; the k-DPP gets better with it (imbalance .22, .19 and .16 for k =
10, 20 and 40, against .24 for pre-clustering).
"""
