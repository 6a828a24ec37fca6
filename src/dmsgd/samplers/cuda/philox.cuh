// Philox4x32-10 (Salmon et al. 2011), number by number what compiled/philox.py makes.

typedef unsigned int u32;
typedef unsigned long long u64;

struct Words { u32 a, b, c, d; };

__device__ __forceinline__ Words philox(u64 key, u64 draw, u32 block) {
    u32 key0 = (u32)key, key1 = (u32)(key >> 32);
    u32 c0 = block, c1 = 0, c2 = (u32)draw, c3 = (u32)(draw >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u32 high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        u32 high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ key0;
        c2 = high0 ^ c3 ^ key1;
        c1 = low1;
        c3 = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
}

// A number strictly inside (0, 1) from 52 random bits.
__device__ __forceinline__ double uniform(u32 high, u32 low) {
    u64 bits = ((u64)high << 20) | (low >> 12);
    return ((double)bits + 0.5) * 0x1p-52;
}

// Uniform number `at` of a draw.
__device__ __forceinline__ double uniform_at(u64 key, u64 draw, int at) {
    Words w = philox(key, draw, (u32)(at >> 1));
    return at & 1 ? uniform(w.c, w.d) : uniform(w.a, w.b);
}

// The three uniforms of proposal p of a draw whose proposals begin at block `first`.
__device__ __forceinline__ void uniforms_of(
    u64 key, u64 draw, int first, int p, double &a, double &b, double &c) {
    int block = first + (3 * p >> 1);
    Words one = philox(key, draw, (u32)block), two = philox(key, draw, (u32)(block + 1));
    if (p & 1) {
        a = uniform(one.c, one.d); b = uniform(two.a, two.b); c = uniform(two.c, two.d);
    } else {
        a = uniform(one.a, one.b); b = uniform(one.c, one.d); c = uniform(two.a, two.b);
    }
}
