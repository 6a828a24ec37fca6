// Draws of batches of middle size: thread blocks, each of which makes one draw after another.
//
// Compiled for one batch size K, with STAGES tiles of Q in shared memory. Q, the orthonormal basis of
// the items accepted so far, is in float64 in device memory and, rounded to float16, in shared memory.
// A proposal x is accepted if |x|^2 - |Q x|^2 > u |x|^2. By float16 alone, with a bound on its error,
// most of those that are not accepted are known. The others are candidates: 16 of them at a time are
// projected in float64, while Q comes by in tiles of 8 rows, and gone through in order by their Gram
// matrix. All are decided in float64.

// Starts to copy tile t of Q into shared memory; behind the last tile nothing is copied.
__device__ __forceinline__ void fetch(Shared &m, const double *Q, int t, int tiles) {
    if (t < tiles) {
        for (int i = threadIdx.x; i < 16 * STEPS; i += THREADS)
            copy_16_bytes(
                &m.tiles[t % STAGES][i >> 4][2 * (i & 15)], Q + (t * STEPS * 16 + i) * 2);
    }
    end_of_copies();
}

// x -= (X Q^T) Q for all candidates; a warp has the spans warp, warp + 8 of 16 coordinates, and a
// lane coordinates l%4 + 4i of candidates l/4 and l/4 + 8 at x[.][i][0] and [1]. Tile t is multiplied
// by X and that with t - 2 is taken off; then the parts of the product with t - 1 are summed.
__device__ __forceinline__ void project(
    Shared &m, const double *Q, double (&x)[EACH][4][2], int taken, int warp, int lane) {
    int tiles = (taken + 7) >> 3;
    double f[EACH][2][4];
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) f[i][0][e] = f[i][1][e] = 0.0;
    for (int t = 0; t < tiles + 2; t++) {
        wait_until_open<STAGES - 4>();
        __syncthreads();
        fetch(m, Q, t + STAGES - 3, tiles);
        double d[2][4] = {{0.0, 0.0, 0.0, 0.0}, {0.0, 0.0, 0.0, 0.0}};
        if (t < tiles && warp < SPANS) {
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                int s = warp + i * WARPS;
                if (s >= SPANS) continue;
                const double *tile = m.tiles[t % STAGES][4 * s] + lane;
#pragma unroll
                for (int e = 0; e < 2; e++)
                    multiply_add(d[e], x[i][2 * e][0], x[i][2 * e][1], x[i][2 * e + 1][0],
                        x[i][2 * e + 1][1], tile[2 * e * PITCH], tile[(2 * e + 1) * PITCH]);
            }
        }
        if (t > 1) {
            const double *c = &m.C[t & 1][lane >> 2][lane & 3];
            double c0 = c[0], c1 = c[8 * 12], c2 = c[4], c3 = c[8 * 12 + 4];
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                int s = warp + i * WARPS;
                if (s >= SPANS) continue;
                // Column 2j + e of the product is coordinate j + 4e, where x has it.
                const double *tile = m.tiles[(t - 2) % STAGES][4 * s + ((lane >> 2) & 1)];
                tile += 4 * (lane & 3) + (lane >> 3);
#pragma unroll
                for (int e = 0; e < 2; e++)
                    multiply_add(f[i][e], c0, c1, c2, c3, tile[2 * e * PITCH],
                        tile[2 * e * PITCH + 16]);
            }
        }
        if (t < tiles && warp < SPANS) {
            double2 *to = (double2 *)m.parts[t & 1][warp][lane >> 2] + (lane & 3);
            to[0] = make_double2(d[0][0] + d[1][0], d[0][1] + d[1][1]);
            to[32] = make_double2(d[0][2] + d[1][2], d[0][3] + d[1][3]);
        }
        if (t > 0 && t <= tiles && threadIdx.x >= THREADS - 8 * BLOCK) {
            int q = (threadIdx.x >> 3) & (BLOCK - 1), row = threadIdx.x & 7;
            double sum[2] = {0.0, 0.0};
#pragma unroll
            for (int w = 0; w < BUSY; w++) sum[w & 1] += m.parts[(t - 1) & 1][w][q][row];
            m.C[(t - 1) & 1][q][row] = 8 * (t - 1) + row < taken ? sum[0] + sum[1] : 0.0;
        }
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            x[i][e][0] -= f[i][e >> 1][e & 1];
            x[i][e][1] -= f[i][e >> 1][2 + (e & 1)];
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
#pragma unroll
    for (int t = 0; t < STAGES - 3; t++) fetch(m, Q, t, (taken + 7) >> 3);
    double x[EACH][4][2], squares[2] = {0.0, 0.0};
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int q = (lane >> 2) + 8 * h;
        const double *row = tables.V + (q < count ? (long long)m.list[q] : 0) * tables.r;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int s = warp + i * WARPS;
            int4 j = ((const int4 *)m.J)[4 * min(s, SPANS - 1) + (lane & 3)];
            bool used = s < SPANS && q < count;
            x[i][0][h] = used && j.x >= 0 ? __ldg(row + j.x) : 0.0;
            x[i][1][h] = used && j.y >= 0 ? __ldg(row + j.y) : 0.0;
            x[i][2][h] = used && j.z >= 0 ? __ldg(row + j.z) : 0.0;
            x[i][3][h] = used && j.w >= 0 ? __ldg(row + j.w) : 0.0;
        }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) squares[h] = fma(x[i][e][h], x[i][e][h], squares[h]);
        squares[h] = over_quad(squares[h]);
        if ((lane & 3) == 0) m.squares[warp][(lane >> 2) + 8 * h] = squares[h];
    }
    if (taken > 0) project(m, Q, x, taken, warp, lane);
    if (warp < SPANS) {  // the Gram matrix
#pragma unroll
        for (int g = 0; g < 2; g++) {
            double d[4] = {0.0, 0.0, 0.0, 0.0};
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int e = 0; e < 4; e += 2)
                    multiply_add(d, x[i][e][0], x[i][e][1], x[i][e + 1][0], x[i][e + 1][1],
                        x[i][e][g], x[i][e + 1][g]);
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
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int s = warp + i * WARPS;
        if (s >= SPANS) continue;
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                m.X[s][(lane >> 2) + 8 * h][(lane & 3) + 4 * e] = x[i][e][h];
    }
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
            const double *from = &m.X[s][lane & 3][(lane >> 2) + 8 * (i & 1)];
#pragma unroll
            for (int e = 0; e < 4; e += 2)
                multiply_add(d, a[0][e], a[1][e], a[0][e + 1], a[1][e + 1], from[4 * e * 20],
                    from[(4 * e + 4) * 20]);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int row = taken + (lane >> 2) + 8 * h, c = 16 * s + 8 * (i & 1) + 2 * (lane & 3);
                if (row >= taken + found) continue;
                *(double2 *)(Q + place(row, c)) = make_double2(d[2 * h], d[2 * h + 1]);
                error += put(m, row, c, d[2 * h]) + put(m, row, c + 1, d[2 * h + 1]);
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
extern "C" __global__ void __launch_bounds__(THREADS, 1) draw_medium(
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
                m.items[warp][lane] = (int)locate(tables, j, b * totals[j]);
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
