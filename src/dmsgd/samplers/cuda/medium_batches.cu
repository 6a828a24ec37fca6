// Draws of batches of middle size: thread blocks, each of which makes one draw after another.
//
// Compiled for one batch size K and for BLOCKS thread blocks on a multiprocessor. Q, the orthonormal
// basis of the items accepted so far, is in float64 in device memory and, rounded to float16, in shared
// memory. A proposal x is accepted if |x|^2 - |Q x|^2 > u |x|^2. By float16 alone, with a bound on its
// error, most of those that are not accepted are known. The others are candidates: 16 of them at a time
// are projected in float64 and gone through in order by their Gram matrix. All are decided in float64.
// Rows of V are read by __ldcs, so that they do not drive Q out of the L2 cache.

// Puts the coordinates of candidates that this warp has where all find them; `project` says which.
__device__ __forceinline__ void place_candidates(
    Shared &m, const double (&x)[EACH][2][4], int warp, int lane) {
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int s = warp + i * WARPS;
        if (s >= SPANS) continue;
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                m.X[s][(lane >> 2) + 8 * h][(lane & 3) + 4 * e] = x[i][e >> 1][2 * h + (e & 1)];
    }
}

// c += X Q^T for COUNT tiles of 8 rows of Q, 8 tiles apart; X is read once for all of them.
template <int COUNT> __device__ __forceinline__ void multiply_tiles(
    Shared &m, const double2 *tile, double (*c)[4], int lane) {
#pragma unroll
    for (int e = 0; e < 2 * SPANS; e++) {
        const double *a = &m.X[e >> 1][lane >> 2][(lane & 3) + 8 * (e & 1)];
        double a0 = a[0], a1 = a[8 * 20], a2 = a[4], a3 = a[8 * 20 + 4];
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            double2 q = tile[(i * WARPS * SPANS * 2 + e) * 32];
            multiply_add(c[i], a0, a1, a2, a3, q.x, q.y);
        }
    }
}

// x -= (X Q^T) Q for all candidates. A warp has the spans warp, warp + 8 of 16 coordinates at x, and all
// are at X: coordinate l%4 + 4(i%2) of half e of a span at x[.][e][i] of lane l, of candidate l/4 and,
// from i = 2 on, l/4 + 8. For X Q^T a warp has the tiles warp, warp + 8 of 8 rows of Q, and for the second
// product its spans. Q is read twice, as many loads ahead as registers hold: the second time from its end,
// which is still in the first cache.
__device__ __forceinline__ void project(
    Shared &m, const double *Q, double (&x)[EACH][2][4], int taken, int warp, int lane) {
    const int several = TILES > 2 ? 2 : 1;  // with fewer, two thread blocks share the registers
    int tiles = (taken + 7) >> 3;
    double c[TILES][4] = {};
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILES; i += several) {
        int t = warp + i * WARPS;
        const double2 *tile = (const double2 *)Q + t * SPANS * 64 + lane;
        if (t + (several - 1) * WARPS < tiles) multiply_tiles<several>(m, tile, c + i, lane);
        else if (t < tiles) multiply_tiles<1>(m, tile, c + i, lane);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        int t = warp + i * WARPS, row = 8 * t + 2 * (lane & 3);
        if (t >= tiles) continue;
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(double2 *)&m.C[t][(lane >> 2) + 8 * h][2 * (lane & 3)] = make_double2(
                row < taken ? -c[i][2 * h] : 0.0, row + 1 < taken ? -c[i][2 * h + 1] : 0.0);
    }
    __syncthreads();
#pragma unroll 4
    for (int t = tiles - 1; t >= 0; t--) {
        const double *a = &m.C[t][lane >> 2][lane & 3];
        double a0 = a[0], a1 = a[8 * 12], a2 = a[4], a3 = a[8 * 12 + 4];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int s = warp + i * WARPS;
            if (s >= SPANS) continue;
            // Column 2j + e of a product is coordinate j + 4e, where x has it.
            const double *q = Q + (t * SPANS + s) * 128 + 8 * (lane & 3) + (lane >> 2);
#pragma unroll
            for (int e = 0; e < 2; e++)
                multiply_add(x[i][e], a0, a1, a2, a3, q[64 * e], q[64 * e + 32]);
        }
    }
}

// Takes off a row of Q what rounding left there of those before, and makes its length 1 again.
__device__ __noinline__ void project_again(Shared &m, double *Q, int last, int warp, int lane) {
    double *y = m.again[0], *dots = m.again[1], square = 0.0, error = 0.0;
    for (int c = threadIdx.x; c < PADDED; c += THREADS) y[c] = __ldcg(Q + place(last, c));
    __syncthreads();
    for (int row = warp; row < last; row += WARPS) {
        double dot = 0.0;
        for (int c = lane; c < PADDED; c += 32) dot = fma(__ldcg(Q + place(row, c)), y[c], dot);
        dot = over_warp(dot);
        if (lane == 0) dots[row] = dot;
    }
    __syncthreads();
    for (int c = threadIdx.x; c < PADDED; c += THREADS) {
        double rest = y[c];
#pragma unroll 8
        for (int row = 0; row < last; row++)
            rest = fma(-dots[row], __ldcg(Q + place(row, c)), rest);
        y[c] = rest;
    }
    __syncthreads();
    for (int c = lane; c < PADDED; c += 32) square = fma(y[c], y[c], square);
    double scale = inverse_root(over_warp(square));
    for (int c = threadIdx.x; c < PADDED; c += THREADS) {
        error += put(m, last, c, y[c] * scale);
        Q[place(last, c)] = y[c] * scale;
    }
    error = over_warp(error);
    if (lane == 0) m.errors[warp] += error;
    __syncthreads();
}

// Projects the first `count` candidates and goes through them in order, at most to one of which
// little is left; adds to `taken` and returns how many it has decided.
__device__ __forceinline__ int decide(
    Shared &m, const Tables &tables, double *Q, int count, int &taken, long long *out, int warp,
    int lane) {
    double x[EACH][2][4], squares[2] = {0.0, 0.0};
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int q = (lane >> 2) + 8 * h;
        const double *row = tables.V + (u64)(u32)(q < count ? m.list[q] : 0) * (u32)tables.r;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int s = warp + i * WARPS;
            int4 j = ((const int4 *)m.J)[4 * min(s, SPANS - 1) + (lane & 3)];
            bool used = s < SPANS && q < count;
            x[i][0][2 * h] = used && j.x >= 0 ? __ldcs(row + j.x) : 0.0;
            x[i][0][2 * h + 1] = used && j.y >= 0 ? __ldcs(row + j.y) : 0.0;
            x[i][1][2 * h] = used && j.z >= 0 ? __ldcs(row + j.z) : 0.0;
            x[i][1][2 * h + 1] = used && j.w >= 0 ? __ldcs(row + j.w) : 0.0;
        }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                double one = x[i][e >> 1][2 * h + (e & 1)];
                squares[h] = fma(one, one, squares[h]);
            }
        squares[h] = over_quad(squares[h]);
        if ((lane & 3) == 0) m.squares[warp][(lane >> 2) + 8 * h] = squares[h];
    }
    if (taken > 0) {
        place_candidates(m, x, warp, lane);
        project(m, Q, x, taken, warp, lane);
    }
    if (warp < SPANS) {  // the Gram matrix
#pragma unroll
        for (int g = 0; g < 2; g++) {
            double d[4] = {0.0, 0.0, 0.0, 0.0};
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    multiply_add(d, x[i][e][0], x[i][e][2], x[i][e][1], x[i][e][3],
                        x[i][e][2 * g], x[i][e][2 * g + 1]);
            double2 *to = (double2 *)m.grams[warp][lane >> 2] + 4 * g + (lane & 3);
            to[0] = make_double2(d[0], d[1]);
            to[8 * BLOCK / 2] = make_double2(d[2], d[3]);
        }
    }
    __syncthreads();
    int j = threadIdx.x / BLOCK, l = threadIdx.x % BLOCK;
    double g = 0.0, full = 0.0, t = j == l ? 1.0 : 0.0;
#pragma unroll
    for (int w = 0; w < BUSY; w++) g += m.grams[w][j][l];
    m.G[j][l] = g;
    m.T[j][l] = t;
    if (j == l) {
#pragma unroll
        for (int w = 0; w < BUSY; w++) full += m.squares[w][j];
        m.full[j] = full;
        m.goals[j] = j < count ? m.list_thresholds[j] * full : 1e300;
    }
    place_candidates(m, x, warp, lane);
    __syncthreads();
    int found = 0, next = 0;
    bool close = false;
    while (next < count && taken + found < K && !close) {
        int i = next++;
        double left = m.G[i][i];
        if (!(left > m.goals[i])) continue;
        close = left < CLOSE * m.full[i];
        if (threadIdx.x == 0) {
            out[taken + found] = m.list[i];
            m.order[found] = i;
            m.lefts[found] = left;
        }
        if (j > i) {
            double c = m.G[i][j] * inverse(left);
            g = fma(-c, m.G[i][l], g);
            t = fma(-c, m.T[i][l], t);
            m.G[j][l] = g;
            m.T[j][l] = t;
        }
        found++;
        __syncthreads();
    }
    if (taken + found < K) {  // the new rows of Q, in the coordinates of this warp
        double a[2][8], error = 0.0;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int q = (lane >> 2) + 8 * h;
            double scale = q < found ? inverse_root(m.lefts[q]) : 0.0;
#pragma unroll
            for (int e = 0; e < 4; e++)
                a[h][e] = q < found ? scale * m.T[m.order[q]][(lane & 3) + 4 * e] : 0.0;
        }
#pragma unroll
        for (int i = 0; i < 2 * EACH; i++) {
            int s = warp + (i >> 1) * WARPS;
            if (s >= SPANS) continue;
            double d[4] = {0.0, 0.0, 0.0, 0.0};
            const double *from = &m.X[s][lane & 3][(lane >> 3) + (lane & 4) + 8 * (i & 1)];
#pragma unroll
            for (int e = 0; e < 4; e += 2)
                multiply_add(d, a[0][e], a[1][e], a[0][e + 1], a[1][e + 1], from[4 * e * 20],
                    from[(4 * e + 4) * 20]);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int row = taken + (lane >> 2) + 8 * h, c = 16 * s + 8 * (i & 1) + (lane & 3);
                if (row >= taken + found) continue;
                *(double2 *)(Q + place(row, c)) = make_double2(d[2 * h], d[2 * h + 1]);
                error += put(m, row, c, d[2 * h]) + put(m, row, c + 4, d[2 * h + 1]);
            }
        }
        error = over_warp(error);
        if (lane == 0) m.errors[warp] += error;
    }
    taken += found;
    __syncthreads();
    if (close && taken < K) project_again(m, Q, taken - 1, warp, lane);
    return next;
}

// Each block takes the next draw until there are `size`; `room` has PADDED^2 finite numbers for
// each.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) draw_medium(
    const Entry *rows, const double *V, const double *totals, const double *lines,
    const u32 *hints, long long n, long long r, long long groups, long long last, const int *J,
    u64 key, u64 start, int size, int limit, double *room, int *draws, long long *out, int *failed) {
    extern __shared__ uint4 shared[];
    Shared &m = *(Shared *)shared;
    Tables tables = {V, totals, lines, hints, n, r, groups, last};
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    double *Q = room + (long long)blockIdx.x * PADDED * PADDED;
    while (true) {
        if (threadIdx.x == 0) m.draw = atomicAdd(draws, 1);
        __syncthreads();
        long long number = m.draw;
        if (number >= size) return;
        for (int c = threadIdx.x; c < PADDED; c += THREADS)
            m.J[(c & ~15) + 4 * (c & 3) + ((c >> 2) & 3)] = c < K ? J[number * K + c] : -1;
        for (int i = threadIdx.x; i < SPANS * SPANS * 32; i += THREADS)
            ((uint4 *)m.Q)[i] = make_uint4(0, 0, 0, 0);
        if (threadIdx.x < WARPS) m.errors[threadIdx.x] = 0.0;
        __syncthreads();
        int taken = 0, listed = 0;
        for (int round = 0; round < limit && taken < K; round++) {
            if (round % AHEAD == 0) {  // find the proposals of the next rounds
                int p = (round + (lane >> 3)) * ROUND + 8 * warp + (lane & 7);
                double a, b, u;
                uniforms_of(key, start + number, (K + 1) / 2, p, a, b, u);
                long long j = J[number * K + min((int)(a * K), K - 1)];
                m.items[warp][lane] = (int)locate(tables, j, b);
                m.thresholds[warp][lane] = u;
                __syncwarp();
            }
            float inverse = gather(m, rows, r, m.items[warp] + round % AHEAD * 8, warp, lane);
            __syncthreads();
            measure(m, taken, warp, lane);
            __syncthreads();
            int mine = round % AHEAD * 8 + (lane >> 2), item = m.items[warp][mine];
            float held = m.held[warp & ~1][warp & 1][lane >> 2];
            held += m.held[warp | 1][warp & 1][lane >> 2];
            double u = m.thresholds[warp][mine], left = 1.0 - held * inverse;
            bool open = !(left + margin_of(m) <= u);  // true for NaN
            u32 votes = __ballot_sync(ALL, open && (lane & 3) == 0);
            if (lane == 0) m.counts[warp] = __popc(votes);
            __syncthreads();
            int at = listed + __popc(votes & ((1u << lane) - 1));
#pragma unroll
            for (int w = 0; w < WARPS; w++) {
                listed += m.counts[w];
                at += w < warp ? m.counts[w] : 0;
            }
            if (open && (lane & 3) == 0) {
                m.list[at] = item;
                m.list_thresholds[at] = u;
            }
            __syncthreads();
            while (taken < K && listed >= min(BLOCK, K - taken)) {
                int count = min(listed, BLOCK);
                count = decide(m, tables, Q, count, taken, out + number * K, warp, lane);
                int rest = listed - count, from = count + threadIdx.x;
                int moved = m.list[min(from, BLOCK + ROUND - 1)];
                double threshold = m.list_thresholds[min(from, BLOCK + ROUND - 1)];
                __syncthreads();
                if (threadIdx.x < rest) {
                    m.list[threadIdx.x] = moved;
                    m.list_thresholds[threadIdx.x] = threshold;
                }
                listed = rest;
                __syncthreads();
            }
        }
        if (taken < K && threadIdx.x == 0) atomicMax(failed, (int)number + 1);
        __syncthreads();
    }
}
