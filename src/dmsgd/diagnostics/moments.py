"""E|Σ_{i in batch} y_i|² of a design in closed form: what variances and similarities are made of.

It is Σ_i b_i |y_i|² + Σ_{i≠j} E[m_i m_j] y_iᵀy_j, and no n x n matrix is formed for it:

Uniform     one number for all pairs                                                    O(n p)
Stratified  one number for each pair of strata                                O(n p + M² p)
Weighted    a sum over roots of unity (`polynomials/conditional_poisson.py`)      O(n p) for each
KDPP        Σ_{n≠m} π_nm (u_nᵀu_m - |t_nm|²), u_n = Σ_i V_in² y_i, t_nm = Σ_i V_in V_im y_i
                                                          O(n r² min(n, p)), n min(n, p) memory
others      `joint` in blocks of rows                                            n² calls
"""

from __future__ import annotations

import numpy as np

from dmsgd.designs import KDPP, ClosedForm, Stratified, Uniform, Weighted
from dmsgd.inputs.arrays import FloatArray
from dmsgd.polynomials import eigenvector_joint

#: Pairs of items asked of `joint` at a time.
PAIRS = 2**20


def second_moment(design: ClosedForm, Y: FloatArray) -> float:
    """Return E|Σ_{i in batch} y_i|² for the rows y_i of Y, shape (n, p)."""
    if isinstance(design, Weighted):
        return design._second_moment(Y)
    own = float(np.dot(design.inclusion(), np.einsum("ip,ip->i", Y, Y)))
    if isinstance(design, Uniform):
        return own + _uniform(design, Y)
    if isinstance(design, Stratified):
        return own + _stratified(design, Y)
    if isinstance(design, KDPP):
        return own + _kdpp(design, Y)
    return own + _by_pairs(design, Y)


def _uniform(design: Uniform, Y: FloatArray) -> float:
    if design.n == 1:
        return 0.0
    total = Y.sum(axis=0)
    pairs = total @ total - np.einsum("ip,ip->", Y, Y)
    return float(design.joint(0, 1) * pairs)


def _stratified(design: Stratified, Y: FloatArray) -> float:
    """Pairs within a stratum have one joint probability, and so have those across two."""
    order = np.argsort(design.stratum, kind="stable")
    sizes = np.bincount(design.stratum)
    first = order[np.cumsum(sizes) - sizes]
    last = order[np.cumsum(sizes) - 1]
    sums = np.add.reduceat(Y[order], np.cumsum(sizes) - sizes, axis=0)
    squares = np.bincount(design.stratum, np.einsum("ip,ip->i", Y, Y))
    joint = design.joint(first[:, None], first)
    np.fill_diagonal(joint, np.where(sizes > 1, design.joint(first, last), 0.0))
    return float(np.einsum("ap,ap->", joint @ sums, sums) - joint.diagonal() @ squares)


def _kdpp(design: KDPP, Y: FloatArray) -> float:
    """Only inner products of the y_i matter, so p > n columns are first reduced to n."""
    if Y.shape[1] > Y.shape[0]:
        Y = np.asarray(np.linalg.qr(Y.T, mode="r")).T.copy()
    V = np.asarray(design.spectrum.vectors)
    pairs = eigenvector_joint(design.spectrum.values, design.k)
    np.fill_diagonal(pairs, 0.0)
    U = (V * V).T @ Y
    total = np.einsum("np,np->", pairs @ U, U)
    for n in range(V.shape[1] - 1):  # t_nm for all m > n; those for m < n are the same numbers
        T = V[:, n + 1 :].T @ (V[:, n, None] * Y)
        total -= 2 * pairs[n, n + 1 :] @ np.einsum("mp,mp->m", T, T)
    return float(total)


def _by_pairs(design: ClosedForm, Y: FloatArray) -> float:
    everyone, total = np.arange(design.n), 0.0
    step = max(1, PAIRS // design.n)
    for start in range(0, design.n, step):
        rows = everyone[start : start + step]
        joint = design.joint(rows[:, None], everyone)
        joint[np.arange(rows.size), rows] = 0.0
        total += np.einsum("ip,ip->", joint @ Y, Y[rows])
    return float(total)
