"""Which half of a k-DPP helps: who is seen (its b), or who meets (its repulsion).

Between uniform batches and a k-DPP stand two designs that do one thing each: the *same b* without
repulsion (`design.without_repulsion()`), and repulsion with a *uniform b* (`target="uniform"`). So

    k-DPP - uniform  =  (same b - uniform)  +  (k-DPP - same b)
                        who is seen            who meets

seed by seed, and uniform b - uniform is what repulsion does alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.intervals import holds, paired, shown
from dmsgd.paper.protocol import Claim

#: The arms that do one thing each, as methods are named.
SAME_B = "same b"
UNIFORM_B = "uniform b"


@dataclass(frozen=True, eq=False)
class Halves:
    """One measure of a k-DPP, of uniform batches, and of the designs between them.

    where:     the paper's place, or "beyond".
    what:      the measure and its unit; more is better.
    uniform, same_b, kdpp, uniform_b: one value per seed; no uniform_b where there is none.
    digits:    with which differences are shown.
    """

    where: str
    what: str
    uniform: FloatArray
    same_b: FloatArray
    kdpp: FloatArray
    uniform_b: FloatArray | None = None
    digits: int = field(default=1, kw_only=True)

    @property
    def differences(self) -> dict[str, tuple[float, float]]:
        """The whole, its halves, and repulsion alone: mean over seeds and half of the interval."""
        found = {
            "k-DPP minus uniform": paired(self.kdpp, self.uniform),
            "who is seen, same b minus uniform": paired(self.same_b, self.uniform),
            "who meets, k-DPP minus same b": paired(self.kdpp, self.same_b),
        }
        if self.uniform_b is not None:
            found["repulsion alone, uniform b minus uniform"] = paired(self.uniform_b, self.uniform)
        return found

    def text(self, difference: tuple[float, float]) -> str:
        """Return "+3.2 ± 1.1"."""
        return shown(*difference, self.digits, sign=True)


def halved(halves: Sequence[Halves]) -> list[Claim]:
    """Return the claims that each half helps: a row for every difference but the whole."""
    return [
        Claim(
            each.where,
            f"{each.what}: {name}",
            "",
            each.text(difference),
            holds(*difference, each.kdpp.size),
            "the two halves add up to k-DPP minus uniform",
        )
        for each in halves
        for name, difference in list(each.differences.items())[1:]
    ]
