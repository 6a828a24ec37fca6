"""Compiled loops of samplers. Importing this package loads numba; nothing does before a draw."""
