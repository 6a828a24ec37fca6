"""See `dmsgd.paper.intervals`."""

from dmsgd.paper.intervals import margin

__all__ = ["margin"]
