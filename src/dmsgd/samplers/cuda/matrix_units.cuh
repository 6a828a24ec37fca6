// What the samplers ask of a GPU: matrix units, float16, and sums over lanes.

#define ALL 0xffffffffu
#ifndef CLOSE
#define CLOSE 1e-3  // what is left of an item, below which its direction is made orthogonal again
#endif

// D (8 x 8) += A (8 x 4) B (4 x 8): lane l holds A[l/4][l%4], B[l%4][l/4], D[l/4][2(l%4) + 0, 1].
__device__ __forceinline__ void multiply_add(double &d0, double &d1, double a, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d0), "+d"(d1) : "d"(a), "d"(b));
}

// D (16 x 8) += A (16 x 8) B (8 x 8): lane l holds A[l/4 + 0, 8][l%4] and A[l/4 + 0, 8][l%4 + 4],
// B[l%4 + 0, 4][l/4], D[l/4][2(l%4) + 0, 1] and D[l/4 + 8][2(l%4) + 0, 1].
__device__ __forceinline__ void multiply_add(
    double (&d)[4], double a0, double a1, double a2, double a3, double b0, double b1) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(b0), "d"(b1));
#else
    multiply_add(d[0], d[1], a0, b0);
    multiply_add(d[2], d[3], a1, b0);
    multiply_add(d[0], d[1], a2, b1);
    multiply_add(d[2], d[3], a3, b1);
#endif
}

// D (16 x 8) += A (16 x 16) B (16 x 8) of float16: lane l holds of A rows l/4 and l/4 + 8, of B
// column l/4, both at 2(l%4) + 0, 1, 8, 9, and D as above.
__device__ __forceinline__ void multiply_add(float (&d)[4], uint4 a, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

__device__ __forceinline__ u32 to_half(float x) {
    unsigned short half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
}

__device__ __forceinline__ float from_half(u32 half) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((unsigned short)half));
    return x;
}

// Rows of V to screen: times 2^15 and rounded to float16, or V itself, rounded when it is read.
#if HALVES
typedef unsigned short Entry;
__device__ __forceinline__ u32 half_of(Entry a) { return a; }
#else
typedef double Entry;
__device__ __forceinline__ u32 half_of(Entry a) { return to_half((float)(0x1p15 * a)); }
#endif

template <class T> __device__ __forceinline__ T over_quad(T x) {  // over lanes with the same l/4
    x += __shfl_xor_sync(ALL, x, 1);
    return x + __shfl_xor_sync(ALL, x, 2);
}

template <class T> __device__ __forceinline__ T over_rows(T x) {  // over lanes with the same l%4
    x += __shfl_xor_sync(ALL, x, 4);
    x += __shfl_xor_sync(ALL, x, 8);
    return x + __shfl_xor_sync(ALL, x, 16);
}

__device__ __forceinline__ double over_warp(double x) {
#pragma unroll
    for (int step = 16; step; step >>= 1) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

__device__ __forceinline__ double inverse_root(double x) {
    double scale = rsqrt(x);
    return scale * fma(-0.5 * x * scale, scale, 1.5);
}

__device__ __forceinline__ double inverse(double x) {  // a division takes several times as long
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    y = fma(y, fma(-x, y, 1.0), y);
    return fma(y, fma(-x, y, 1.0), y);
}
