"""Compiled loops. Importing this package loads numba; nothing imports it before the first draw."""
