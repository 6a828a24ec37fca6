"""How loops are compiled. Importing this package loads numba; nothing does before it must."""
