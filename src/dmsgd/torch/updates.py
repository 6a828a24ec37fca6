"""What a sampler draws from next: another design, or the same one made of new features."""

from __future__ import annotations

from typing import Any

from dmsgd.designs.build import remake
from dmsgd.designs.design import Design
from dmsgd.designs.stream import Source
from dmsgd.torch.ranks import of_first_rank


def updated(design: Source, X: Any) -> Source:
    """Return X if it is a design, else what `design` becomes with X for features (rank 0's)."""
    new: Source = X if isinstance(X, Design) else remake(design, of_first_rank(X))
    if (new.n, new.k) != (design.n, design.k):
        raise ValueError(
            f"the new design has n={new.n}, k={new.k}; "
            f"this sampler needs n={design.n}, k={design.k}"
        )
    return new
