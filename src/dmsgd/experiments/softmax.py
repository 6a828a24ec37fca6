"""See `dmsgd.paper.models.softmax`."""

from dmsgd.paper.models.softmax import initial_weights, probabilities

__all__ = ["initial_weights", "probabilities"]
