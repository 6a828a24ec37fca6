"""Hidden subgroups: even or odd, with digits that are rare inside each class and named to nobody.

MNIST, halved to 14 x 14 pixels, with the parity of the digit as the label. Inside each class the
sizes of the five digits fall geometrically, and which digit is rare is drawn anew for every seed.
Methods see pixels and parity, never the digit (but for the oracle, which shows what there is to
gain). Accuracy is reported by digit: the worst of the ten, their mean, and the rarest of each
class.
"""
