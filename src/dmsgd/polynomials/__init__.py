"""Elementary symmetric polynomials of eigenvalues: which eigenvectors a draw uses."""
