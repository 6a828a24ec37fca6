// Draws of large batches, many in lockstep. The products between these kernels are cuBLAS's.
//
// What the accepted items leave of R^k has left[d] dimensions. A round proposes P items a draw, X
// (P, k), and makes Z, their coordinates there. What is short in Z is rejected, whatever comes before
// it; the first B that are not go through the round in order, by their Gram matrix alone. The accepted
// ones are then turned onto the last axes, which are dropped.

// Row p of X[d] is V[item, J[d]] for proposal at[d] + p, and goals[d, p] = u |x|^2. A warp each.
extern "C" __global__ void propose(
    const double *V, const double *totals, const double *lines, const u32 *hints, long long n,
    long long r, long long groups, long long last, const int *J, int k, u64 key, u64 start,
    const int *ids, const int *at, int P, double *X, int *items, double *goals) {
    Tables tables = {V, totals, lines, hints, n, r, groups, last};
    int lane = threadIdx.x & 31, p = blockIdx.x * 8 + (threadIdx.x >> 5), d = blockIdx.y;
    if (p >= P) return;
    J += (long long)ids[d] * k;
    double a, b, u, square = 0.0;
    uniforms_of(key, start + ids[d], (k + 1) / 2, at[d] + p, a, b, u);
    long long j = J[min((int)(a * k), k - 1)], item = locate(tables, j, b);
    double *x = X + ((long long)d * P + p) * k;
    const double *row = V + item * r;
#pragma unroll 8
    for (int c = lane; c < k; c += 32) {
        double value = __ldg(row + J[c]);
        x[c] = value;
        square = fma(value, value, square);
    }
    for (int step = 16; step; step >>= 1) square += __shfl_xor_sync(~0u, square, step);
    if (lane == 0) {
        items[d * P + p] = (int)item;
        goals[d * P + p] = u * square;
    }
}

// open[d, p] = whether the first left[d] of the L numbers of Z[d, p] are longer than its goal. A warp
// each.
extern "C" __global__ void measure(
    const double *Z, int P, int L, const int *left, const double *goals, unsigned char *open) {
    int lane = threadIdx.x & 31, p = blockIdx.x * 8 + (threadIdx.x >> 5), d = blockIdx.y;
    if (p >= P) return;
    const double *z = Z + ((long long)d * P + p) * L;
    double square = 0.0;
    for (int c = lane; c < left[d]; c += 32) square = fma(z[c], z[c], square);
    for (int step = 16; step; step >>= 1) square += __shfl_xor_sync(~0u, square, step);
    if (lane == 0) open[(long long)d * P + p] = square > goals[(long long)d * P + p];
}

// The first B open proposals of each draw, in order: where[d, i], with -1 behind the last, and
// at[d] moved on behind them. A block of 256 threads each.
extern "C" __global__ void first_open(const unsigned char *open, int P, int B, int *where, int *at) {
    __shared__ int counts[8], total;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, d = blockIdx.x, found = 0, end = P;
    open += (long long)d * P;
    where += d * B;
    for (int first = 0; first < P && found < B; first += 256) {
        int p = first + threadIdx.x;
        bool is = p < P && open[p];
        u32 votes = __ballot_sync(~0u, is);
        if (lane == 0) counts[warp] = __popc(votes);
        __syncthreads();
        int place = found + __popc(votes & ((1u << lane) - 1));
        for (int w = 0; w < warp; w++) place += counts[w];
        if (is && place < B) where[place] = p;
        if (is && place == B - 1) total = p + 1;
        for (int w = 0; w < 8; w++) found += counts[w];
        __syncthreads();
    }
    if (found >= B) end = total;
    for (int i = found + threadIdx.x; i < B; i += 256) where[i] = -1;
    if (threadIdx.x == 0) at[d] += end;
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

// Goes through the proposals of each draw by their Gram matrix G (B, B), which is overwritten.
// Accepted ones are eliminated from those behind them: the upper triangle becomes what is left of
// G, the lower the combinations that were taken. counts[d] are accepted, and the first so many rows
// of C (B, B) times their vectors are orthonormal; the other rows are zero. A block each.
extern "C" __global__ void __launch_bounds__(1024) decide(
    const double *G, int B, const int *where, const int *items, const double *goals, int P, int k,
    const int *ids, const int *left, int *counts, double *C, long long *out) {
    extern __shared__ double g[];
    __shared__ int taken[MOST];
    __shared__ double scales[MOST];
    int d = blockIdx.x, rest = left[d], m = 0, warps = blockDim.x >> 5;
    long long size = (long long)B * B;
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        g[i] = i % B < i / B ? 0.0 : G[d * size + i];
    where += d * B;
    out += (long long)ids[d] * k;
    __syncthreads();
    for (int p = 0; p < B && m < rest && where[p] >= 0; p++) {
        double pivot = g[p * B + p];
        if (!(pivot > goals[(long long)d * P + where[p]])) continue;
        if (threadIdx.x == 0) {
            out[k - rest + m] = items[(long long)d * P + where[p]];
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
    if (threadIdx.x == 0) counts[d] = m;
    __syncthreads();
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
