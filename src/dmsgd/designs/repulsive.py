"""The half of a design that is who is seen: its inclusion probabilities without its repulsion."""

from __future__ import annotations

from dmsgd.designs.design import ClosedForm
from dmsgd.designs.weighted import Weighted


class Repulsive(ClosedForm):
    """A design with closed forms in which who meets is not as random as it could be."""

    def without_repulsion(self) -> Weighted:
        """Return batches that see every item as often as these do, in which nothing repels.

        What is gained over uniform batches comes from two things: who is seen, and who meets.
        This is the first of them alone.

        >>> import dmsgd
        >>> design = dmsgd.diversify([[1.0, 0.0], [1.0, 0.1], [0.0, 3.0]], k=2)
        >>> bool(abs(design.without_repulsion().inclusion() - design.inclusion()).max() < 1e-9)
        True
        """
        return Weighted.like(self)
