"""Rows of V = F B for sparse F, computed when a draw needs them: nothing is as large as V.

Items come in row blocks, and for every column of V and row block there is the sum of squares before
it. A target is found among these by bisection, and then by computing one column of V for the items
of one row block.

Products are added up in a fixed order, so that rows have the same bits wherever they are computed.
"""

from __future__ import annotations

from numba.types import int64

from dmsgd.compiled.jit import Table, callback, float64_ptr, helper, int64_ptr, uint32_ptr
from dmsgd.compiled.llvm import BLOCK, LINE_BYTES, doubles_at, ints_at, prefetch, shift, uint32s_at
from dmsgd.compiled.microkernels import sparse_row_tile

#: Items in a row block. Fewer make larger tables, more make longer searches.
ROW_BLOCK = 64

#: F, B and the sums of squares of V = F B.
ROWS = Table(
    n=int64,  # rows of F
    indptr=int64_ptr,
    indices=uint32_ptr,
    data=float64_ptr,
    width=int64,  # columns of F
    columns=float64_ptr,  # of B, one after the other, (r, width)
    blocks=int64,  # row blocks
    sums=float64_ptr,  # of squares before each row block and at the end, (r, blocks + 1)
    chosen=float64_ptr,  # scratch for the columns of B that a draw uses
)


@callback(int64(ROWS.record, int64_ptr, float64_ptr, int64_ptr, int64))
def locate(source, columns, targets, items, count):
    """items[p] = the row at which the running sum of V[:, columns[p]]² passes targets[p].

    Each step of the bisection is made for all p before the next, so that all wait for memory
    together.
    """
    n, width, sums = source.n, source.blocks + 1, doubles_at(source.sums)
    data, indptr = doubles_at(source.data), ints_at(source.indptr)
    indices = uint32s_at(source.indices)
    for p in range(count):
        items[p] = 0
    left = source.blocks
    while left > 1:
        half = left >> 1
        for p in range(count):
            before = sums[columns[p] * width + items[p] + half]
            items[p] += half if before <= targets[p] else 0
        left -= half
    for p in range(count):
        prefetch(shift(data, indptr[items[p] * ROW_BLOCK]))
    for p in range(count):
        column = shift(doubles_at(source.columns), columns[p] * source.width)
        rest = targets[p] - sums[columns[p] * width + items[p]]
        i, last = items[p] * ROW_BLOCK, (items[p] + 1) * ROW_BLOCK
        last = (last if last < n else n) - 1
        total = 0.0
        while True:
            x = 0.0  # V_ij
            for e in range(indptr[i], indptr[i + 1]):
                x += data[e] * column[indices[e]]
            total += x * x
            if total > rest or i >= last:
                break
            i += 1
        items[p] = i
    return 0


@callback(int64(ROWS.record, int64_ptr, int64))
def begin_draw(source, J, k):
    """chosen[:, :k] = columns[J].T; `chosen` has rows of whole BLOCKs, and one more for scratch."""
    d, chosen, columns = source.width, doubles_at(source.chosen), doubles_at(source.columns)
    width = (k + BLOCK - 1) // BLOCK * BLOCK
    step = LINE_BYTES // 8
    for first in range(0, d, step):
        last = first + step if first + step < d else d
        for c in range(k):
            column = shift(columns, J[c] * d)
            for w in range(first, last):
                chosen[w * width + c] = column[w]
    return 0


@helper
def _sparse_row(source, i, width, k, out, step):
    """out[c * step] = (F_i B[:, J])_c for c < k, by `chosen`, which has rows of this width."""
    at, end = ints_at(source.indptr)[i], ints_at(source.indptr)[i + 1]
    data, indices = shift(doubles_at(source.data), at), shift(uint32s_at(source.indices), at)
    chosen = doubles_at(source.chosen)
    row = shift(chosen, source.width * width)  # scratch
    for first in range(0, k, BLOCK):
        sparse_row_tile(data, indices, end - at, shift(chosen, first), width, row)
        for c in range(first, k if k < first + BLOCK else first + BLOCK):
            out[c * step] = row[c - first]


@callback(int64(ROWS.record, int64_ptr, int64, int64_ptr, float64_ptr, int64))
def gather(source, J, k, items, out, count):
    """out[c, p] = V[items[p], J[c]], by `chosen`, which `begin_draw` has filled for this J."""
    width = (k + BLOCK - 1) // BLOCK * BLOCK
    for p in range(count):
        _sparse_row(source, items[p], width, k, shift(out, p), BLOCK)
    return 0


@callback(int64(ROWS.record, int64_ptr, int64, *3 * [int64_ptr], float64_ptr, int64))
def sparse_rows(source, J, k, draw, items, filled, out, count):
    """out[p] = V[items[p], J[draw[p]]] for p < count, where proposals of a draw follow each other.

    Rows of `chosen` are filled when a column of F first comes up in a draw; filled[w] is the last
    draw in which column w did, -1 at first.
    """
    d, indptr, chosen = source.width, ints_at(source.indptr), doubles_at(source.chosen)
    columns, indices = doubles_at(source.columns), uint32s_at(source.indices)
    width = (k + BLOCK - 1) // BLOCK * BLOCK
    for p in range(count):
        mine = shift(J, draw[p] * k)
        for e in range(indptr[items[p]], indptr[items[p] + 1]):
            w = indices[e]
            if filled[w] != draw[p]:
                filled[w] = draw[p]
                for c in range(k):
                    chosen[w * width + c] = columns[mine[c] * d + w]
        _sparse_row(source, items[p], width, k, shift(out, p * k), 1)
    return 0


@callback(
    int64(
        int64_ptr, uint32_ptr, float64_ptr, int64, float64_ptr, int64, float64_ptr, int64, int64,
        *3 * [float64_ptr],
    )
)  # fmt: skip
def sparse_block_sums(
    indptr, indices, data, n, tile, count, weights, first, last, sums, weighted, scratch
):  # fmt: skip
    """Add up the squares of `count` columns of V = F @ tile over the row blocks first to last.

    sums[c, b + 1] = (V[row block b, c]**2).sum(), and weighted[i] += V[i]**2 @ weights. `tile` and
    `weights` have BLOCK columns, `scratch` is for two rows.
    """
    row, mass = scratch, shift(scratch, BLOCK)
    width = (n + ROW_BLOCK - 1) // ROW_BLOCK + 1
    for block in range(first, last):
        for t in range(BLOCK):
            mass[t] = 0.0
        end = (block + 1) * ROW_BLOCK if (block + 1) * ROW_BLOCK < n else n
        for i in range(block * ROW_BLOCK, end):
            at = indptr[i]
            size = indptr[i + 1] - at
            sparse_row_tile(shift(data, at), shift(indices, at), size, tile, BLOCK, row)
            total = 0.0
            for t in range(BLOCK):
                square = row[t] * row[t]
                mass[t] += square
                total += square * weights[t]
            weighted[i] += total
        for t in range(count):
            sums[t * width + block + 1] = mass[t]
    return 0


@callback(int64(int64_ptr, uint32_ptr, float64_ptr, *5 * [int64], float64_ptr))
def add_gram(indptr, indices, data, first, last, low, high, d, G):
    """G[low:high] += (F[first:last].T @ F[first:last])[low:high], on and above the diagonal.

    F is a CSR matrix with columns in order and none twice in a row; G is (d, d).
    """
    for i in range(first, last):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] >= high:
                break
            if indices[e] >= low:
                row, x = shift(G, indices[e] * d), data[e]
                for f in range(e, indptr[i + 1]):
                    row[indices[f]] += x * data[f]
    return 0
