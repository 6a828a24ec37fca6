"""Experiments: each a frozen config, a pure `run(config)` and a `plot(result, path)` beside it."""
