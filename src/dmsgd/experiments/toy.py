"""See `dmsgd.paper.toy`."""

from dmsgd.paper.toy.figures import plot
from dmsgd.paper.toy.result import TITLES, Config, Result
from dmsgd.paper.toy.run import run

__all__ = ["TITLES", "Config", "Result", "plot", "run"]
