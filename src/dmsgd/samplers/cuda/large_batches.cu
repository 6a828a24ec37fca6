// Draws of large batches, many in lockstep. The products between these kernels are cuBLAS's.
//
// What the accepted items leave of R^k has left[d] dimensions. A round proposes P items a draw. What
// is short there is rejected, whatever comes before it; the first B that are not, the candidates, go
// through the round in order, by their Gram matrix alone. The accepted ones are then turned onto the
// last axes, which are dropped. As long as there is no basis W of what is left, all proposals are
// projected in float64. With it they are measured in float16, with a bound on the error, and the
// candidates alone are projected.

// items[d, p] is that of proposal at[d] + p, and levels[d, p] its u. A thread each.
extern "C" __global__ void find(
    const double *V, const double *totals, const double *lines, const u32 *hints, long long n,
    long long r, long long groups, long long last, const int *J, int k, u64 key, u64 start,
    const int *ids, const int *at, int P, int *items, double *levels) {
    Tables tables = {V, totals, lines, hints, n, r, groups, last};
    int p = blockIdx.x * blockDim.x + threadIdx.x, d = blockIdx.y;
    if (p >= P) return;
    double a, b, u;
    uniforms_of(key, start + ids[d], (k + 1) / 2, at[d] + p, a, b, u);
    long long j = J[(long long)ids[d] * k + min((int)(a * k), k - 1)];
    items[(long long)d * P + p] = (int)locate(tables, j, b);
    levels[(long long)d * P + p] = u;
}

// Row p of X[d] (P, k) is V[items[d, p], J[d]], or zero if that is -1, and levels[d, p] times its
// square takes the place of levels[d, p]. A warp each.
extern "C" __global__ void gather(
    const double *V, long long r, const int *J, int k, const int *ids, int P, const int *items,
    double *X, double *levels) {
    int lane = threadIdx.x & 31, p = blockIdx.x * 8 + (threadIdx.x >> 5), d = blockIdx.y;
    if (p >= P) return;
    J += (long long)ids[d] * k;
    long long at = (long long)d * P + p;
    int item = items[at];
    const double *row = V + max(item, 0) * r;
    double square = 0.0;
#pragma unroll 8
    for (int c = lane; c < k; c += 32) {
        double value = item < 0 ? 0.0 : __ldg(row + J[c]);
        X[at * k + c] = value;
        square = fma(value, value, square);
    }
    square = over_warp(square);
    if (lane == 0) levels[at] *= square;
}

// Row p of X[d] (P, L) is rows[items[d, p], J[d]] in float16, then zeros, and squares[d, p] its
// square. A warp has four.
extern "C" __global__ void gather_halves(
    const Entry *rows, long long r, const int *J, int k, int L, const int *ids, int P,
    const int *items, unsigned short *X, double *squares) {
    int lane = threadIdx.x & 31, p = 4 * (blockIdx.x * 8 + (threadIdx.x >> 5)), d = blockIdx.y;
    if (p >= P) return;
    J += (long long)ids[d] * k;
    long long at = (long long)d * P + p;
    const Entry *row[4];
    double square[4] = {0.0, 0.0, 0.0, 0.0};
    for (int q = 0; q < 4; q++) row[q] = rows + items[at + q] * r;
#pragma unroll 4
    for (int c = lane; c < L; c += 32) {
        int j = c < k ? J[c] : -1;
#pragma unroll
        for (int q = 0; q < 4; q++) {
            u32 rounded = j < 0 ? 0 : half_of(__ldg(row[q] + j));
            X[(at + q) * L + c] = (unsigned short)rounded;
            double value = from_half(rounded);
            square[q] = fma(value, value, square[q]);
        }
    }
    for (int q = 0; q < 4; q++) {
        double sum = over_warp(square[q]);
        if (lane == 0) squares[at + q] = sum;
    }
}

// Row i of H[d] (M, L) is that of W[d] (rows, k) in float16, then zeros, and the square of its
// rounding error is added to errors[d]. A block of 256 threads each.
extern "C" __global__ void halve(
    const double *W, int rows, int k, int M, int L, unsigned short *H, double *errors) {
    __shared__ double parts[8];
    int i = blockIdx.x, d = blockIdx.y;
    const double *w = W + ((long long)d * rows + i) * k;
    double error = 0.0;
    for (int c = threadIdx.x; c < L; c += 256) {
        double value = c < k ? w[c] : 0.0;
        u32 rounded = to_half((float)value);
        H[((long long)d * M + i) * L + c] = (unsigned short)rounded;
        double off = value - (double)from_half(rounded);
        error = fma(off, off, error);
    }
    error = over_warp(error);
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = error;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int w = 1; w < 8; w++) error += parts[w];
    atomicAdd(errors + d, error);
}

// open[d, p] = whether |W x|^2 may be more than u |x|^2, by the M numbers of S[d, p] = H x'. A warp
// each. Let x' and H be rounded, y and y' = x and x' over their lengths. Entries of 2^15 x are off by
// at most 2^-11 of themselves or, below 2^-14, by 2^-25; so where |x'|^2 >= 2^-18 k,
// |y - y'| < (2^-11 + 2^-16) 1.001. W is off by E, whose |E| (the root of the sum of squares) is
// known. A sum of k products takes fewer than 1.25 k steps in any order, each of which cuts off less
// than 2^-23 |h| |y'|; so all left[d] are off by at most 1.25 k 2^-23 sqrt(left[d]) 1.01 together.
// | |W y| - |H y'| | is less than the sum of the three.
extern "C" __global__ void screen(
    const float *S, int P, int M, int k, const double *squares, const double *levels,
    const double *errors, const int *left, unsigned char *open) {
    int lane = threadIdx.x & 31, p = blockIdx.x * 8 + (threadIdx.x >> 5), d = blockIdx.y;
    if (p >= P) return;
    long long at = (long long)d * P + p;
    double held = 0.0;
    for (int c = lane; c < M; c += 32) held = fma((double)S[at * M + c], (double)S[at * M + c], held);
    held = over_warp(held);
    if (lane > 0) return;
    double off = sqrt(errors[d]) + 0x1.1p-11 + 1.27 * 0x1p-23 * k * sqrt((double)left[d]);
    double most = sqrt(held / squares[at]) + off;
    open[at] = !(squares[at] >= 0x1p-18 * k) || most * most > levels[at];
}

// open[d, p] = whether the square of the first left[d] of the L numbers of Z[d, p] is over its
// level. A warp each.
extern "C" __global__ void measure(
    const double *Z, int P, int L, const int *left, const double *levels, unsigned char *open) {
    int lane = threadIdx.x & 31, p = blockIdx.x * 8 + (threadIdx.x >> 5), d = blockIdx.y;
    if (p >= P) return;
    const double *z = Z + ((long long)d * P + p) * L;
    double square = 0.0;
    for (int c = lane; c < left[d]; c += 32) square = fma(z[c], z[c], square);
    square = over_warp(square);
    if (lane == 0) open[(long long)d * P + p] = square > levels[(long long)d * P + p];
}

// The first B open proposals of each draw, in order: where[d, i], and their items and levels at
// chosen and goals, with -1 behind the last; ends[d] have been looked at then. A block of 256 threads
// each.
extern "C" __global__ void first_open(
    const unsigned char *open, int P, int B, const int *items, const double *levels, int *where,
    int *chosen, double *goals, int *ends) {
    __shared__ int counts[8], total;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, d = blockIdx.x, found = 0;
    long long from = (long long)d * P, to = (long long)d * B;
    for (int first = 0; first < P && found < B; first += 256) {
        int p = first + threadIdx.x;
        bool is = p < P && open[from + p];
        u32 votes = __ballot_sync(~0u, is);
        if (lane == 0) counts[warp] = __popc(votes);
        __syncthreads();
        int place = found + __popc(votes & ((1u << lane) - 1));
        for (int w = 0; w < warp; w++) place += counts[w];
        if (is && place < B) {
            where[to + place] = p;
            chosen[to + place] = items[from + p];
            goals[to + place] = levels[from + p];
        }
        if (is && place == B - 1) total = p + 1;
        for (int w = 0; w < 8; w++) found += counts[w];
        __syncthreads();
    }
    for (int i = found + threadIdx.x; i < B; i += 256) where[to + i] = chosen[to + i] = -1;
    if (threadIdx.x == 0) ends[d] = found >= B ? total : P;
}

// Row i of F[d] (B, M) has the first left[d] numbers of row where[d, i] of Z[d], if there is such a
// row, then zeros. A block each.
extern "C" __global__ void pick(
    const double *Z, int P, int L, int B, const int *where, const int *left, int M, double *F) {
    int i = blockIdx.x, d = blockIdx.y, p = where[d * B + i];
    const double *z = Z + ((long long)d * P + max(p, 0)) * L;
    double *f = F + ((long long)d * B + i) * M;
    for (int c = threadIdx.x; c < M; c += blockDim.x) f[c] = p < 0 || c >= left[d] ? 0.0 : z[c];
}

// Goes through the candidates of each draw by their Gram matrix G (B, B). Accepted ones are eliminated
// from those behind them: the upper triangle becomes what is left of G, the lower the combinations that
// were taken. counts[d] are accepted, at most MOST, and the first so many rows of C (B, B) times their
// vectors are orthonormal; the other rows are zero. close[d] tells whether little was left of one of
// them. at[d] moves on behind what is decided. A block each.
extern "C" __global__ void __launch_bounds__(1024) decide(
    const double *G, int B, const int *where, const int *chosen, const double *goals, const int *ends,
    int k, const int *ids, const int *left, int *at, int *counts, int *close, double *C,
    long long *out) {
    extern __shared__ double g[];
    __shared__ int taken[MOST];
    __shared__ double scales[MOST];
    int d = blockIdx.x, rest = left[d], most = min(rest, MOST), m = 0, p = 0;
    int warps = blockDim.x >> 5;
    long long size = (long long)B * B;
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        g[i] = i % B < i / B ? 0.0 : G[d * size + i];
    chosen += d * B;
    goals += d * B;
    out += (long long)ids[d] * k;
    __syncthreads();
    for (; p < B && m < most && chosen[p] >= 0; p++) {
        double pivot = g[p * B + p];
        if (!(pivot > goals[p])) continue;
        if (threadIdx.x == 0) {
            out[k - rest + m] = chosen[p];
            taken[m] = p;
            scales[m] = 1.0 / sqrt(pivot);
        }
        m++;
        double inverse = 1.0 / pivot;
        for (int q = p + 1 + (threadIdx.x >> 5); q < B; q += warps) {
            double factor = g[p * B + q] * inverse;
            for (int c = threadIdx.x & 31; c < B; c += 32) {
                if (c < p) g[q * B + c] -= factor * g[p * B + c];
                else if (c == p) g[q * B + c] = -factor;
                else if (c >= q) g[q * B + c] -= factor * g[p * B + c];
            }
        }
        __syncthreads();
    }
    bool near = false;
    for (int i = threadIdx.x; i < m; i += blockDim.x)
        near |= CLOSE * G[d * size + taken[i] * (B + 1)] * scales[i] * scales[i] > 1.0;
    near = __syncthreads_or(near);
    if (threadIdx.x == 0) {
        counts[d] = m;
        close[d] = near;
        at[d] += p < B && chosen[p] >= 0 ? where[d * B + p] : ends[d];
    }
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        int row = i / B, c = i % B;
        double value = 0.0;
        if (row < m) {
            int p = taken[row];
            value = c < p ? g[p * B + c] * scales[row] : c == p ? scales[row] : 0.0;
        }
        C[d * size + i] = value;
    }
}

// With Y the counts[d] orthonormal rows of F[d] (M, L), of which axes left[d] - counts[d] on are E:
// chooses signs S, takes S E off Y, and fills T (M, M) so that I - Y^T T Y turns the rows onto S E.
// Gauss-Jordan on S - Y E, whose pivots are 1 or more for these signs. A block each.
extern "C" __global__ void __launch_bounds__(1024) reflect(
    double *F, int M, int L, const int *left, const int *counts, double *T) {
    extern __shared__ double a[];
    __shared__ double signs[MOST], column[MOST];
    int d = blockIdx.x, m = counts[d], axis = left[d] - m, warps = blockDim.x >> 5;
    F += (long long)d * M * L;
    T += (long long)d * M * M;
    for (int i = threadIdx.x; i < m * m; i += blockDim.x)  // row: axis, column: vector
        a[i] = -F[(long long)(i % m) * L + axis + i / m];
    __syncthreads();
    for (int i = 0; i < m; i++) {
        double pivot = a[i * m + i], sign = pivot >= 0.0 ? 1.0 : -1.0, inverse = 1.0 / (pivot + sign);
        for (int j = threadIdx.x; j < m; j += blockDim.x) column[j] = a[j * m + i];
        __syncthreads();
        if (threadIdx.x == 0) signs[i] = sign;
        for (int c = threadIdx.x; c < m; c += blockDim.x)
            a[i * m + c] = c == i ? inverse : a[i * m + c] * inverse;
        __syncthreads();
        for (int j = threadIdx.x >> 5; j < m; j += warps) {
            if (j == i) continue;
            double factor = column[j];
            for (int c = threadIdx.x & 31; c < m; c += 32)
                a[j * m + c] = (c == i ? 0.0 : a[j * m + c]) - factor * a[i * m + c];
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < M * M; i += blockDim.x) {
        int row = i / M, c = i % M;
        T[i] = row < m && c < m ? a[row * m + c] * signs[c] : 0.0;
    }
    for (int j = threadIdx.x; j < m; j += blockDim.x) F[(long long)j * L + axis + j] -= signs[j];
}

// Rows left[d] - counts[d] on of W[d] (L, k), which are dropped, become zero. A block each.
extern "C" __global__ void drop(double *W, int L, int k, const int *left, const int *counts) {
    int d = blockIdx.y, i = blockIdx.x;
    if (i >= counts[d]) return;
    double *row = W + ((long long)d * L + left[d] - counts[d] + i) * k;
    for (int c = threadIdx.x; c < k; c += blockDim.x) row[c] = 0.0;
}
