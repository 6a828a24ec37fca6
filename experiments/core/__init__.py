"""What every experiment uses."""

from experiments.core.compare import Claim, Decomposition, compare, decompose
from experiments.core.figures import bars, lines
from experiments.core.protocol import Case, training

__all__ = [
    "Case", "Claim", "Decomposition", "bars", "compare", "decompose", "lines", "training",
]  # fmt: skip
