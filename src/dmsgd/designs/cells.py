"""`cells`: stratified sampling over cells of equal size, so that every item is equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from dmsgd.designs.stratified import Stratified
from dmsgd.features import as_features
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.inputs.scalars import as_batch_size
from dmsgd.spectra.decompose import leading, principal

#: Positions along a direction that differ by less than this share of its length are tied, so that
#: rounding, which differs between processors, does not order duplicates and grids.
LEVEL = 1e-9
#: Largest array that is copied, and most columns of a covariance matrix; beyond both, the direction
#: is found by iteration.
LARGE, NARROW = 2**22, 1024


def cells(X: Any, k: int) -> Stratified:
    """Return stratified sampling over k cells of equal size, one item of each in a batch.

    All items are split in two halves along their principal direction, each half along its own, and
    so on until there are k cells, whose sizes differ by at most one. So b is k/n (up to that
    difference) and similar items are rarely in one batch; docs/repulsion.md compares it with
    k-DPPs. `clustered` has cells of any size, so that items of small ones are drawn more often.

    X: (n, d) features as `diversify` takes them, taken into memory. O(n d min(n, d) log k); for
       sparse X, or large X of more than 1,024 columns, O(n d log k) per step of an iteration.

    >>> design = cells([[0.0], [9.0], [1.0], [8.0], [2.0], [7.0]], k=2)
    >>> design.stratum.tolist(), design.inclusion().round(3).tolist()
    ([0, 1, 0, 1, 0, 1], [0.333, 0.333, 0.333, 0.333, 0.333, 0.333])
    """
    F = as_features(X).to_memory()
    k = as_batch_size(k, F.n)
    cell = np.empty(F.n, dtype=np.int64)
    for number, group in enumerate(_cut(F.matrix, np.arange(F.n), k)):
        cell[group] = number
    return Stratified(cell, k)


def _cut(X: Matrix, group: IntArray, count: int) -> list[IntArray]:
    """Return `count` cells of a group of items, the larger ones first."""
    if count == 1:
        return [group]
    order = group[_order(X[group])]
    left = (count + 1) // 2
    size, more = divmod(group.size, count)
    cut = size * left + min(more, left)
    return _cut(X, order[:cut], left) + _cut(X, order[cut:], count - left)


def _order(rows: Matrix) -> IntArray:
    """Return the order of rows along their principal direction; ties keep their order."""
    along = np.asarray(rows @ _direction(rows))
    along -= along.mean()
    length = float(np.abs(along).max())
    return np.argsort(np.round(along / (LEVEL * length or 1.0)), kind="stable")


def _direction(rows: Matrix) -> FloatArray:
    """Return the unit vector along which rows vary most; its largest entry is positive."""
    mean = np.asarray(rows.mean(axis=0)).ravel()
    dense = isinstance(rows, np.ndarray)
    if dense and rows.size <= LARGE:
        found = principal(rows - mean, 1)[:, 0]
    elif dense and rows.shape[1] <= NARROW:
        found = leading(_scatter(rows, mean), 1)[:, 0]
    elif rows.shape[1] == 1:
        found = np.ones(1)
    else:
        d = rows.shape[1]

        def covariance(v: FloatArray) -> FloatArray:
            along = rows @ v - mean @ v
            return np.asarray(rows.T @ along - mean * along.sum())

        operator = LinearOperator((d, d), matvec=covariance, dtype=np.float64)
        starts = np.ones(d), np.random.default_rng(0).normal(size=d)
        start = next((each for each in starts if covariance(each).any()), None)
        if start is None:  # all rows are the same
            return np.ones(d)
        found = eigsh(operator, k=1, v0=start, tol=1e-3)[1][:, 0]
    return np.asarray(found * np.sign(found[np.argmax(np.abs(found))]))


def _scatter(rows: FloatArray, mean: FloatArray) -> FloatArray:
    """Return Σ (x - mean)(x - mean)ᵀ over the rows x, some of them at a time."""
    total, step = np.zeros((mean.size, mean.size)), max(1, LARGE // mean.size)
    for first in range(0, len(rows), step):
        centred = rows[first : first + step] - mean
        total += centred.T @ centred
    return total
