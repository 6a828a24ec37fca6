// Before items are drawn: the tables of V, shape (n, r), and the eigenvectors of each draw.

// A thread for every group of 64 rows and column.

// parts[g, j] = the sum of V[:, j]^2 over group g; its running sums are made between the kernels.
extern "C" __global__ void group_sums(const double *V, long long n, long long r, double *parts) {
    long long j = blockIdx.y * (long long)blockDim.x + threadIdx.x, g = blockIdx.x;
    if (j >= r) return;
    double total = 0.0;
    for (int row_block = 0; row_block < 8; row_block++) {
        double partial = 0.0;
        for (int s = 0; s < 8; s++) {
            long long row = g * 64 + row_block * 8 + s;
            double x = row < n ? V[row * r + j] : 0.0;
            partial = fma(x, x, partial);
        }
        total += partial;
    }
    parts[g * r + j] = total;
}

// ends[g, j]: the running sum behind group g.
extern "C" __global__ void fill_lines(
    const double *V, long long n, long long r, const double *ends, double *lines) {
    long long j = blockIdx.y * (long long)blockDim.x + threadIdx.x, g = blockIdx.x;
    if (j >= r) return;
    double running = g > 0 ? ends[(g - 1) * r + j] : 0.0;
    double *line = lines + (g * r + j) * 16;
    for (int row_block = 0; row_block < 8; row_block++) {
        double parts[8], partial = 0.0;
        for (int s = 0; s < 8; s++) {
            long long row = g * 64 + row_block * 8 + s;
            double x = row < n ? V[row * r + j] : 0.0;
            parts[s] = partial = fma(x, x, partial);
        }
        running += partial;
        // The last sum is that of `ends`, which the next group begins with.
        line[row_block] = row_block < 7 ? running : ends[g * r + j];
        double scale = 256.0 / partial;
        u64 word = 0;
        for (int s = 0; s < 7; s++) {
            double fraction = parts[s] * scale;
            word |= (u64)(fraction < 255.0 ? fraction : 255.0) << (8 * s);
        }
        ((u64 *)line)[8 + row_block] = word;
    }
}

// hints[j, g] = the first group with ends[group, j] > g / last * totals[j], or the last group.
extern "C" __global__ void fill_hints(
    const double *ends, long long groups, long long r, long long last, u32 *hints) {
    long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (at >= r * (last + 1)) return;
    long long j = at / (last + 1), g = at % (last + 1);
    double goal = (double)g * ends[(groups - 1) * r + j];
    long long below = -1, reached = groups - 1;
    while (reached - below > 1) {
        long long middle = (below + reached) >> 1;
        if (ends[middle * r + j] * (double)last > goal) reached = middle; else below = middle;
    }
    hints[at] = (u32)reached;
}

// Which eigenvectors a draw of a k-DPP takes: a thread for every draw, k searches each. The next one
// is usually close, so steps down double until they pass it; then the last step is halved.

extern "C" __global__ void choose(
    const double *log_e, int rank, int k, u64 key, u64 start, int size, int *J) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= size) return;
    long long width = rank + 1;
    int n = rank;
    for (int left = k; left > 0; left--) {
        double u = uniform_at(key, start + t, k - left);
        const double *row = log_e + left * width;
        double target = row[n] + log(u);
        int below = n - 1, reached = n;
        for (int step = 1; below >= left && row[below] >= target; step *= 2) {
            reached = below;
            below = max(below - step, left - 1);
        }
        while (reached - below > 1) {
            int middle = (below + reached) >> 1;
            if (row[middle] >= target) reached = middle; else below = middle;
        }
        n = reached - 1;
        J[(long long)t * k + k - left] = n;
    }
}
