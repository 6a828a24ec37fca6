// Which proposals of batches of middle size may be accepted, by float16; see medium_batches.cu.

#define WARPS 8
#define BLOCK 16
#define PADDED ((K + 15) / 16 * 16)
#define STEPS (PADDED / 4)
#define SPANS (PADDED / 16)
#define EACH ((SPANS + WARPS - 1) / WARPS)
#define BUSY (SPANS < WARPS ? SPANS : WARPS)
#define THREADS (32 * WARPS)
#define ROUND (8 * WARPS)
#define AHEAD 4
#define PARTS ((PADDED + 31) / 32)
#define PITCH 34
#ifndef CLOSE
#define CLOSE 1e-3  // what is left of an item, below which its row of Q is projected again
#endif

struct Shared {
    uint4 Q[SPANS][SPANS][32];  // in float16: 16 rows, 16 coordinates, as the matrix units take them
    union {
        double tiles[STAGES][STEPS][PITCH];  // row 8t + l/4 of Q, coordinate 4s + l%4 at [s][l]
        double X[SPANS][BLOCK][20];          // the projected candidates
        double again[2][PADDED];
        unsigned short rows[WARPS][SPANS][144];  // of proposals: 8 x 16 halves as B of the matrix units
    };
    union {
        double parts[2][WARPS][BLOCK][8];    // of X Q^T, for two tiles
        double grams[WARPS][BLOCK][BLOCK];   // of X X^T
    };
    double C[2][BLOCK][12];                  // X Q^T for two tiles
    double G[BLOCK][BLOCK], T[BLOCK][BLOCK]; // X X^T, and what makes rows of Q of rows of X
    double squares[WARPS][BLOCK], full[BLOCK], goals[BLOCK], lefts[BLOCK], errors[WARPS];
    double thresholds[WARPS][AHEAD * 8], list_thresholds[BLOCK + ROUND];
    int J[PADDED];                           // that of coordinate 16s + 4e + i at 16s + 4i + e
    int items[WARPS][AHEAD * 8], list[BLOCK + ROUND], counts[WARPS], order[BLOCK], draw;
    float held[WARPS][2][8];
};

// Where Q[row][c] is in float64: tiles of 8 rows and 4 coordinates.
__device__ __forceinline__ int place(int row, int c) {
    return ((row >> 3) * STEPS + (c >> 2)) * 32 + (row & 7) * 4 + (c & 3);
}

// Puts y at Q[row][c] of float16; returns the square of its rounding error.
__device__ __forceinline__ double put(Shared &m, int row, int c, double y) {
    int at = (row >> 4) * SPANS + (c >> 4), e = (c >> 2) & 3;
    at = (at * 32 + (row & 7) * 4 + (c & 3)) * 8 + 4 * (e >> 1) + 2 * ((row >> 3) & 1) + (e & 1);
    u32 rounded = halves((float)y, 0.0f);
    ((unsigned short *)m.Q)[at] = (unsigned short)rounded;
    double error = y - (double)low_half(rounded);
    return error * error;
}

// How far |Q x|^2 of unit vectors in float16 may be off: Q by its rounding errors, x by 2^-11, and
// 2.5 % for sums in float32 and for what is below 2^-14.
__device__ __forceinline__ double margin_of(const Shared &m) {
    double squares = 0.0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) squares += m.errors[w];
    double off = sqrt(squares) + 0x1p-11;
    return off * (2.05 + off);
}

// Puts 8 items, in float16 and of length 1, where two warps find them.
__device__ __forceinline__ void gather(
    Shared &m, const Tables &tables, const int *items, int warp, int lane) {
    float x[8][PARTS];
    double squares[8];
    int j[PARTS];
#pragma unroll
    for (int p = 0; p < PARTS; p++) j[p] = lane + 32 * p < PADDED ? m.J[lane + 32 * p] : -1;
#pragma unroll
    for (int q = 0; q < 8; q++) {
        const double *row = tables.V + items[q] * tables.r;
        squares[q] = 0.0;
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            double a = j[p] >= 0 ? __ldg(row + j[p]) : 0.0;
            squares[q] = fma(a, a, squares[q]);
            x[q][p] = (float)a;
        }
    }
#pragma unroll
    for (int q = 0; q < 8; q++) {
        float scale = (float)rsqrt(over_warp(squares[q]));
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            int c = lane + 32 * p;
            u32 half = halves(scale * x[q][p], 0.0f);
            if (c < PADDED) m.rows[warp][c >> 4][16 * q + (c & 15)] = (unsigned short)half;
        }
    }
}

// |Q x|^2 for the 8 proposals of this warp and the 8 of its neighbour, by every other 16 rows of Q.
__device__ __forceinline__ void measure(Shared &m, int taken, int warp, int lane) {
    uint2 b[2][SPANS];
    float held[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
#pragma unroll
    for (int s = 0; s < SPANS; s++) {
        b[0][s] = ((const uint2 *)m.rows[warp & ~1][s])[lane];
        b[1][s] = ((const uint2 *)m.rows[warp | 1][s])[lane];
    }
    for (int t = warp & 1; t < (taken + 15) >> 4; t += 2) {
        float d[2][2][4] = {};
#pragma unroll
        for (int s = 0; s < SPANS; s++) {
            uint4 a = m.Q[t][s][lane];
            multiply_add(d[0][s & 1], a, b[0][s].x, b[0][s].y);
            multiply_add(d[1][s & 1], a, b[1][s].x, b[1][s].y);
        }
#pragma unroll
        for (int g = 0; g < 2; g++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float c = d[g][0][i] + d[g][1][i];
                held[g][i & 1] = fmaf(c, c, held[g][i & 1]);
            }
    }
#pragma unroll
    for (int g = 0; g < 2; g++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float sum = over_rows(held[g][i]);
            if (lane < 4) m.held[warp][g][2 * lane + i] = sum;
        }
}
