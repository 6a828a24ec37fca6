"""One self-contained page about what diverse batches do to a data set.

    html = dmsgd.report.render(dmsgd.report.build(X, k=64, labels=y))

Or from a terminal: dmsgd report features.npy --labels y.npy -k 64 -o report.html
"""

from dmsgd.report.content import build
from dmsgd.report.page import render

__all__ = ["build", "render"]
