"""The old names of the parts of `dmsgd.paper` that `dmsgd demo` shows."""
