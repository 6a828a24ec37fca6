"""One self-contained page about what diverse batches do to a data set.

    html = dmsgd.report.build(X, k=64, labels=y).html()

Or from a terminal: dmsgd report features.npy --labels y.npy -k 64 -o report.html
"""

from dmsgd.report.report import Report, build

__all__ = ["Report", "build"]
