// Where in a column of V the running sum of its squares passes a target: in three look-ups.
//
// As in compiled/tables.py, in other sizes: a line of 16 entries for every group of 64
// rows and column (running sums at the end of its 8 row blocks of 8 rows, and for each row block a
// word, whose byte s is the fraction of its first s + 1 rows, in 256ths), and hints to groups.

struct Tables {
    const double *V, *totals, *lines;
    const u32 *hints;
    long long n, r, groups, last;
};

// The row of a row block at which the sum of V[:, column]^2 from its start passes `rest`.
__device__ __noinline__ long long row_within(const Tables &t, long long j, long long row, double rest) {
    double total = 0.0;
    int passed = 0;
    for (int s = 0; s < 7; s++) {
        double x = t.V[min(row + s, t.n - 1) * t.r + j];
        total = fma(x, x, total);
        passed += total <= rest;
    }
    return min(row + passed, t.n - 1);
}

// The row at which the running sum of V[:, j]^2 passes `share` of the whole, in [0, 1).
__device__ __forceinline__ long long locate(const Tables &t, long long j, double share) {
    double target = share * t.totals[j];
    long long hint = min((long long)(share * (double)t.last), t.last - 1), step = t.r * 16;
    long long group = t.hints[j * (t.last + 1) + hint];
    const double *line = t.lines + (group * t.r + j) * 16;
    double before = group > 0 ? line[7 - step] : 0.0, end = line[7];
    while (group > 0 && before > target) {
        group--;
        line -= step;
        before = group > 0 ? line[7 - step] : 0.0;
    }
    for (; group < t.groups - 1 && end <= target; end = line[7]) {
        group++;
        line += step;
        before = end;
    }
    double sums[8];
#pragma unroll
    for (int s = 0; s < 8; s += 2) {
        double2 two = *(const double2 *)(line + s);
        sums[s] = two.x;
        sums[s + 1] = two.y;
    }
    int b = 0;
    end = sums[0];
#pragma unroll
    for (int s = 0; s < 7; s++)
        if (sums[s] <= target) { b = s + 1; before = sums[s]; end = sums[s + 1]; }
    double rest = target - before, whole = end - before;
    double fraction = whole > 0.0 ? rest / whole * 256.0 : 0.0;
    int here = (int)fraction;
    u64 word = ((const u64 *)line)[8 + b];
    bool close = !(fraction > here + 0x1p-20 && fraction < here + (1.0 - 0x1p-20));
    int passed = 0;
#pragma unroll
    for (int s = 0; s < 7; s++) {
        int at = (int)(word >> (8 * s)) & 255;
        passed += at < here;
        close = close || at == here;
    }
    long long row = (group * 8 + b) * 8;
    return close ? row_within(t, j, row, rest) : min(row + passed, t.n - 1);
}
