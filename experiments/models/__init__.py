"""The models that the experiments train."""
