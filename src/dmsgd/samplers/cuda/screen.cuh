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
#define TILES ((PADDED / 8 + WARPS - 1) / WARPS)

struct Shared {
    uint4 Q[SPANS][SPANS][32];  // in float16: 16 rows, 16 coordinates, as the matrix units take them
    union {
        double C[PADDED / 8][BLOCK][12];     // - X Q^T, by tiles of 8 rows of Q
        double X[SPANS][BLOCK][20];          // the candidates
        double again[2][PADDED];
        unsigned short rows[WARPS][SPANS][144];  // of proposals: 8 x 16 halves as B of the matrix units
    };
    double grams[WARPS][BLOCK][BLOCK];       // of X X^T
    double G[BLOCK][BLOCK], T[BLOCK][BLOCK]; // X X^T, and what makes rows of Q of rows of X
    double squares[WARPS][BLOCK], full[BLOCK], goals[BLOCK], lefts[BLOCK], errors[WARPS];
    double thresholds[WARPS][AHEAD * 8], list_thresholds[BLOCK + ROUND];
    int J[PADDED];                           // that of coordinate 16s + 4e + i at 16s + 4i + e
    int items[WARPS][AHEAD * 8], list[BLOCK + ROUND], counts[WARPS], order[BLOCK], draw;
    float held[WARPS][2][8];
};

// Where Q[row][c] is in float64: in tiles of 8 rows, parts of 8 coordinates, and pairs c, c + 4.
__device__ __forceinline__ int place(int row, int c) {
    return (((row >> 3) * STEPS / 2 + (c >> 3)) * 32 + (row & 7) * 4 + (c & 3)) * 2 + ((c >> 2) & 1);
}

// Puts y at Q[row][c] of float16; returns the square of its rounding error.
__device__ __forceinline__ double put(Shared &m, int row, int c, double y) {
    int at = (row >> 4) * SPANS + (c >> 4), e = (c >> 2) & 3;
    at = (at * 32 + (row & 7) * 4 + (c & 3)) * 8 + 4 * (e >> 1) + 2 * ((row >> 3) & 1) + (e & 1);
    u32 rounded = to_half((float)y);
    ((unsigned short *)m.Q)[at] = (unsigned short)rounded;
    double error = y - (double)from_half(rounded);
    return error * error;
}

// How far |Q x|^2 / |x|^2 in float16 may be off. Let x' and Q' be rounded, y and y' = x and x' over
// their lengths. Entries of 2^15 x are off by at most 2^-11 of themselves or, below 2^-14, by 2^-25;
// so where |x'| >= 2^-20, |y - y'| < (2^-11 + 2^-16) 1.001, as K <= 256. Q is off by E, whose |E| (the
// root of the sum of squares) is known. Sums of 16 products and what is added to them, each cut off at
// 2^-23 of the largest, 8 after another, leave the K entries of Q' y' off by at most 144 2^-23 sqrt(K)
// < 2^-11.8 together. Hence | |Q y| - |Q' y'| | < |E| + 2^-10 = off, as |Q| <= 1, and the squares differ
// by at most off (2 + off), as |Q y| <= 1. 0.05 off > 2^-15 is for the sums of squares in float32.
__device__ __forceinline__ double margin_of(const Shared &m) {
    double squares = 0.0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) squares += m.errors[w];
    double off = sqrt(squares) + 0x1p-10;
    return off * (2.05 + off);
}

// Puts 8 items, in float16, where two warps find them; returns 1 / |x|^2 of item l/4, or NaN if x is
// too small for float16.
__device__ __forceinline__ float gather(
    Shared &m, const Entry *rows, long long r, const int *items, int warp, int lane) {
    u32 x[8][PARTS];
    int j[PARTS];
    float squares[8];
#pragma unroll
    for (int p = 0; p < PARTS; p++) j[p] = lane + 32 * p < PADDED ? m.J[lane + 32 * p] : -1;
#pragma unroll
    for (int q = 0; q < 8; q++) {
        const Entry *row = rows + (u64)(u32)items[q] * (u32)r;
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            x[q][p] = 32 * p + 32 <= K || j[p] >= 0 ? half_of(__ldcs(row + j[p])) : 0;
    }
#pragma unroll
    for (int q = 0; q < 8; q++) {
        squares[q] = 0.0f;
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            int c = lane + 32 * p;
            float a = from_half(x[q][p]);
            squares[q] = fmaf(a, a, squares[q]);
            if (c < PADDED) m.rows[warp][c >> 4][16 * q + (c & 15)] = (unsigned short)x[q][p];
        }
    }
#pragma unroll
    for (int half = 4; half > 0; half >>= 1) {  // a lane keeps half of the sums, adds its partner's
        bool upper = lane & (4 * half);
#pragma unroll
        for (int q = 0; q < half; q++) {
            float mine = upper ? squares[q + half] : squares[q];
            float other = upper ? squares[q] : squares[q + half];
            squares[q] = mine + __shfl_xor_sync(ALL, other, 4 * half);
        }
    }
    float square = over_quad(squares[0]);
    return square >= 0x1p-10f ? 1.0f / square : nanf("");
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
