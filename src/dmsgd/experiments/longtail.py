"""See `dmsgd.paper.longtail`."""

from dmsgd.paper.longtail.figures import plot_accuracy, plot_shares
from dmsgd.paper.longtail.result import Config, Result
from dmsgd.paper.longtail.run import run
from dmsgd.paper.longtail.task import make_task

__all__ = ["Config", "Result", "make_task", "plot_accuracy", "plot_shares", "run"]
