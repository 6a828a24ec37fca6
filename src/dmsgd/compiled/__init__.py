"""Compiled loops. Importing any module of this package loads numba, so import it in functions only.

Loops work on pointers and check no bounds. Strides and steps are counted in elements.
"""
