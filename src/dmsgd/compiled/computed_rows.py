"""Rows of V = F B, computed when a draw needs them, so that nothing is as large as V.

F is dense or sparse. Dense: row i is scale_i X_i, and behind it, if there are labels, extra_i in
the column of its class. Items come in row blocks, and for every column of V and row block there is
the sum of squares before it. A target is found among these by bisection, and then by computing one
column of V for the items of one row block.

Products are added up in a fixed order, so that rows have the same bits wherever they are computed.
"""

from __future__ import annotations

from numba.types import int64

from dmsgd.compiled.jit import (
    CODE,
    Table,
    callback,
    float32_ptr,
    float64_ptr,
    helper,
    int64_ptr,
    uint32_ptr,
)
from dmsgd.compiled.linear_algebra import PANEL, SET, Left, Panels
from dmsgd.compiled.llvm import (
    BLOCK,
    LINE_BYTES,
    call,
    doubles_at,
    ints_at,
    prefetch,
    shift,
    singles_at,
    uint32s_at,
)
from dmsgd.compiled.microkernels import DOT_STEP, dot, dot_of_singles, sparse_row_tile

#: Items in a row block of dense F. Fewer make larger tables, more make longer searches.
DENSE_ROW_BLOCK = 16
#: Items in a row block of sparse F.
SPARSE_ROW_BLOCK = 64

#: F, B and the sums of squares of V = F B.
ROWS = Table(
    n=int64,  # rows of F
    width=int64,  # columns of F
    columns=float64_ptr,  # of B, one after the other, (r, width)
    row_block=int64,  # items in a row block
    blocks=int64,  # row blocks
    sums=float64_ptr,  # of squares before each row block and at the end, (r, blocks + 1)
    chosen=float64_ptr,  # scratch for the columns of B that a draw uses
    # Sparse F, or 0.
    indptr=int64_ptr,
    indices=uint32_ptr,
    data=float64_ptr,
    # Dense F: X, (n, d), is in one of the first two, the other is 0.
    singles=float32_ptr,
    doubles=float64_ptr,
    d=int64,
    scale=float64_ptr,
    extra=float64_ptr,  # 0 without labels
    codes=int64_ptr,  # 0 without labels
    transposed=float64_ptr,  # scratch for a block of rows of X, one per column, (d, BLOCK)
    product=CODE,
)


@helper
def _entry(source, i, column):
    """Return V_ij, where `column` is column j of B."""
    x = 0.0
    if source.indptr != 0:
        indptr, indices = ints_at(source.indptr), uint32s_at(source.indices)
        data = doubles_at(source.data)
        for e in range(indptr[i], indptr[i + 1]):
            x += data[e] * column[indices[e]]
        return x
    d = source.d
    if source.singles != 0:
        singles = shift(singles_at(source.singles), i * d)
        x = dot_of_singles(singles, column, d // DOT_STEP)
        for j in range(d // DOT_STEP * DOT_STEP, d):
            x += singles[j] * column[j]
    else:
        doubles = shift(doubles_at(source.doubles), i * d)
        x = dot(doubles, column, d // DOT_STEP)
        for j in range(d // DOT_STEP * DOT_STEP, d):
            x += doubles[j] * column[j]
    x *= doubles_at(source.scale)[i]
    if source.codes != 0:
        x += doubles_at(source.extra)[i] * column[d + ints_at(source.codes)[i]]
    return x


@callback(int64(ROWS.record, int64_ptr, float64_ptr, int64_ptr, int64))
def locate(source, columns, targets, items, count):
    """items[p] = the row at which the running sum of V[:, columns[p]]² passes targets[p].

    Each step of the bisection is made for all p before the next, so that all wait for memory
    together.
    """
    n, size, width = source.n, source.row_block, source.blocks + 1
    sums = doubles_at(source.sums)
    for p in range(count):
        items[p] = 0
    left = source.blocks
    while left > 1:
        half = left >> 1
        for p in range(count):
            before = sums[columns[p] * width + items[p] + half]
            items[p] += half if before <= targets[p] else 0
        left -= half
    if source.indptr != 0:
        data, indptr = doubles_at(source.data), ints_at(source.indptr)
        for p in range(count):
            prefetch(shift(data, indptr[items[p] * size]))
    for p in range(count):
        column = shift(doubles_at(source.columns), columns[p] * source.width)
        rest = targets[p] - sums[columns[p] * width + items[p]]
        i, last = items[p] * size, (items[p] + 1) * size
        last = (last if last < n else n) - 1
        total = 0.0
        while True:
            x = _entry(source, i, column)
            total += x * x
            if total > rest or i >= last:
                break
            i += 1
        items[p] = i
    return 0


@callback(int64(ROWS.record, int64_ptr, int64))
def begin_dense(source, J, k):
    """chosen = columns[J], padded to a whole tile."""
    width, chosen, columns = source.width, doubles_at(source.chosen), doubles_at(source.columns)
    for c in range(k):
        to, column = shift(chosen, c * width), shift(columns, J[c] * width)
        for j in range(width):
            to[j] = column[j]
    return 0


@callback(int64(ROWS.record, int64_ptr, int64, int64_ptr, float64_ptr, int64))
def gather_dense(source, J, k, items, out, count):
    """out[c, p] = V[items[p], J[c]], by `chosen`, which `begin_dense` has filled for this J."""
    d, width, transposed = source.d, source.width, doubles_at(source.transposed)
    chosen, scale = doubles_at(source.chosen), doubles_at(source.scale)
    for p in range(count):
        if source.singles != 0:
            singles = shift(singles_at(source.singles), items[p] * d)
            for j in range(d):
                transposed[j * BLOCK + p] = singles[j]
        else:
            doubles = shift(doubles_at(source.doubles), items[p] * d)
            for j in range(d):
                transposed[j * BLOCK + p] = doubles[j]
    right, panels = Panels(transposed, BLOCK, PANEL), Panels(out, BLOCK, PANEL)
    call(source.product, Left(chosen, width, 1), right, panels, k, d, count, SET)
    for c in range(k):
        for p in range(count):
            out[c * BLOCK + p] *= scale[items[p]]
        if source.codes != 0:
            column, extra = shift(chosen, c * width + d), doubles_at(source.extra)
            for p in range(count):
                out[c * BLOCK + p] += extra[items[p]] * column[ints_at(source.codes)[items[p]]]
    return 0


@callback(int64(ROWS.record, int64_ptr, int64))
def begin_sparse(source, J, k):
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
def gather_sparse(source, J, k, items, out, count):
    """out[c, p] = V[items[p], J[c]], by `chosen`, which `begin_sparse` has filled for this J."""
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
    width = (n + SPARSE_ROW_BLOCK - 1) // SPARSE_ROW_BLOCK + 1
    for block in range(first, last):
        for t in range(BLOCK):
            mass[t] = 0.0
        end = (block + 1) * SPARSE_ROW_BLOCK if (block + 1) * SPARSE_ROW_BLOCK < n else n
        for i in range(block * SPARSE_ROW_BLOCK, end):
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
