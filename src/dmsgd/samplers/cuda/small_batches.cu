// Draws of small batches: a thread block for each, its basis in shared memory, all in float64.
//
// Compiled for one batch size K and a number of WARPS. Q, the orthonormal basis of the items
// accepted so far, has a row for each. A proposal x is accepted if |x|^2 - |Q x|^2 > u |x|^2. Every
// warp multiplies its own 8 proposals by Q on the matrix units, against the basis as it is when the
// round begins; then the block goes through the proposals in order, and each accepted one is taken
// off the later ones.

#define STEPS ((K + 3) / 4)
#define TILES ((K + 15) / 16 * 2)
#define ROUND (8 * WARPS)
#define SHARE ((STEPS + WARPS - 1) / WARPS)
#define AHEAD 4

__device__ __forceinline__ void together() {
#if WARPS == 1
    __syncwarp();
#else
    __syncthreads();
#endif
}

struct Shared {
    double Q[TILES][STEPS][32];  // row 8t + l/4, coordinate 4s + l%4 at [t][s][l]
    double x[4 * STEPS], c[8 * TILES], square[WARPS], full;
    int items[WARPS][AHEAD * 8], first[WARPS];
    double thresholds[WARPS][AHEAD * 8];
    int J[4 * STEPS];
};

// x -= Q^T c; returns the sum of squares of this warp's part of x.
__device__ __forceinline__ double taken_off(Shared &m, int tiles, int warp, int lane) {
    double sums[SHARE], squares = 0.0;
#pragma unroll
    for (int i = 0; i < SHARE; i++) sums[i] = 0.0;
    for (int t = 0; t < tiles; t++) {
        double c = m.c[8 * t + (lane >> 2)];
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            int s = min(warp + i * WARPS, STEPS - 1);
            sums[i] = fma(m.Q[t][s][lane], c, sums[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        int s = warp + i * WARPS;
        double sum = over_rows(sums[i]);
        if (s < STEPS && lane < 4) {
            double rest = m.x[4 * s + lane] - sum;
            m.x[4 * s + lane] = rest;
            squares = fma(rest, rest, squares);
        }
    }
    return over_quad(__shfl_sync(ALL, squares, lane & 3));
}

// c = Q x for `tiles` tiles of Q.
__device__ __forceinline__ void coefficients(Shared &m, int tiles, int warp, int lane) {
    for (int t = warp; t < tiles; t += WARPS) {
        double sum = 0.0;
#pragma unroll
        for (int s = 0; s < STEPS; s++) sum = fma(m.Q[t][s][lane], m.x[4 * s + (lane & 3)], sum);
        sum = over_quad(sum);
        if ((lane & 3) == 0) m.c[8 * t + (lane >> 2)] = sum;
    }
}

// The sum over all warps of what each has.
__device__ __forceinline__ double over_warps(Shared &m, double mine, int warp, int lane) {
#if WARPS > 1
    if (lane == 0) m.square[warp] = mine;
    together();
    mine = 0.0;
    for (int w = 0; w < WARPS; w++) mine += m.square[w];
#else
    __syncwarp();
#endif
    return mine;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) draw_small(
    const double *V, const double *totals, const double *lines, const u32 *hints, long long n,
    long long r, long long groups, long long last, const int *J, u64 key, u64 start, int limit,
    long long *out, int *failed) {
    extern __shared__ char room[];
    Shared &m = *(Shared *)room;
    Tables tables = {V, totals, lines, hints, n, r, groups, last};
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    long long number = blockIdx.x;
    out += number * K;
    for (int c = threadIdx.x; c < 4 * STEPS; c += 32 * WARPS)
        m.J[c] = c < K ? J[number * K + c] : -1;
    for (int i = threadIdx.x; i < TILES * STEPS * 32; i += 32 * WARPS) m.Q[0][0][i] = 0.0;
    together();
    int taken = 0;
    for (int round = 0; round < limit; round++) {
        if (round % AHEAD == 0) {  // find the proposals of the next rounds
            int p = (round + (lane >> 3)) * ROUND + 8 * warp + (lane & 7);
            double a, b, u;
            uniforms_of(key, start + number, (K + 1) / 2, p, a, b, u);
            long long j = m.J[min((int)(a * K), K - 1)];
            m.items[warp][lane] = (int)locate(tables, j, b);
            m.thresholds[warp][lane] = u;
            __syncwarp();
        }
        int mine = (round % AHEAD) * 8 + (lane >> 2);
        const double *row = V + (long long)m.items[warp][mine] * r;
        double x[STEPS], square = 0.0;
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            int j = m.J[4 * s + (lane & 3)];
            x[s] = j >= 0 ? __ldg(row + j) : 0.0;
        }
#pragma unroll
        for (int s = 0; s < STEPS; s++) square = fma(x[s], x[s], square);
        square = over_quad(square);
        double goal = m.thresholds[warp][mine] * square;
        // What Q holds of each of the 8 proposals: row 8t + l/4 of it for 2(l%4) + 0, 1.
        double C[TILES][2], held0 = 0.0, held1 = 0.0;
        int tiles = (taken + 7) >> 3;
#pragma unroll
        for (int t = 0; t < TILES; t += 2) {
            C[t][0] = C[t][1] = C[t + 1][0] = C[t + 1][1] = 0.0;
            if (t < tiles) {  // two tiles at a time; behind the last there are zeros
                double a0 = 0.0, a1 = 0.0, b0 = 0.0, b1 = 0.0;
#pragma unroll
                for (int s = 0; s < STEPS; s += 2) {
                    multiply_add(C[t][0], C[t][1], m.Q[t][s][lane], x[s]);
                    multiply_add(C[t + 1][0], C[t + 1][1], m.Q[t + 1][s][lane], x[s]);
                    if (s + 1 < STEPS) {
                        multiply_add(a0, a1, m.Q[t][s + 1][lane], x[s + 1]);
                        multiply_add(b0, b1, m.Q[t + 1][s + 1][lane], x[s + 1]);
                    }
                }
                C[t][0] += a0;
                C[t][1] += a1;
                C[t + 1][0] += b0;
                C[t + 1][1] += b1;
                held0 = fma(C[t][0], C[t][0], fma(C[t + 1][0], C[t + 1][0], held0));
                held1 = fma(C[t][1], C[t][1], fma(C[t + 1][1], C[t + 1][1], held1));
            }
        }
        held0 = over_rows(held0);
        held1 = over_rows(held1);
        double even = __shfl_sync(ALL, held0, lane >> 3), odd = __shfl_sync(ALL, held1, lane >> 3);
        double left = square - ((lane >> 2) & 1 ? odd : even);
        // Go through the proposals in order.
        u32 open = ALL;
        while (true) {
            u32 votes = __ballot_sync(ALL, left > goal) & open;
            int first = votes ? __ffs(votes) - 1 : 32, owner = 0;
#if WARPS > 1
            if (lane == 0) m.first[warp] = first;
            together();
            while (owner < WARPS && m.first[owner] == 32) owner++;
            if (owner == WARPS) break;
            first = m.first[owner];
#else
            if (first == 32) break;
#endif
            int which = first >> 2, used = (taken + 7) >> 3;
            if (warp == owner) {
                if ((lane >> 2) == which) {
#pragma unroll
                    for (int s = 0; s < STEPS; s++) m.x[4 * s + (lane & 3)] = x[s];
                    if ((lane & 3) == 0) {
                        out[taken] = m.items[warp][mine];
                        m.full = square;
                    }
                }
                if ((lane & 3) == which >> 1) {
#pragma unroll
                    for (int t = 0; t < TILES; t++)
                        if (t < used) m.c[8 * t + (lane >> 2)] = which & 1 ? C[t][1] : C[t][0];
                }
                open = which == 7 ? 0 : ALL << (4 * which + 4);
            } else if (warp < owner) {
                open = 0;
            }
            if (taken + 1 == K) return;
            int whole = taken >> 3, at = taken & 7;
            together();
            double full = m.full, rest = full;
            if (taken > 0) {
                rest = over_warps(m, taken_off(m, used, warp, lane), warp, lane);
                if (rest < 0.01 * full) {  // rounding shows: once more
                    together();
                    coefficients(m, used, warp, lane);
                    together();
                    rest = over_warps(m, taken_off(m, used, warp, lane), warp, lane);
                }
            }
            double scale = inverse_root(rest), dot = 0.0, more = 0.0;
            for (int c = threadIdx.x; c < 4 * STEPS; c += 32 * WARPS)
                m.Q[whole][c >> 2][4 * at + (c & 3)] = m.x[c] * scale;
#pragma unroll
            for (int s = 0; s < STEPS; s += 2) {
                dot = fma(m.x[4 * s + (lane & 3)], x[s], dot);
                if (s + 1 < STEPS) more = fma(m.x[4 * s + 4 + (lane & 3)], x[s + 1], more);
            }
            dot = over_quad(dot + more) * scale;
            left = fma(-dot, dot, left);
            double dot0 = __shfl_sync(ALL, dot, 8 * (lane & 3));
            double dot1 = __shfl_sync(ALL, dot, 8 * (lane & 3) + 4);
#pragma unroll
            for (int t = 0; t < TILES; t++)
                if (t == whole && (lane >> 2) == at) { C[t][0] = dot0; C[t][1] = dot1; }
            taken++;
            together();
        }
        together();
    }
    if (threadIdx.x == 0) atomicMax(failed, (int)number + 1);
}
