// Which eigenvectors a draw of a k-DPP takes: a thread for every draw, k binary searches each.

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
        int below = left - 1, reached = n;
        while (reached - below > 1) {
            int middle = (below + reached) >> 1;
            if (row[middle] >= target) reached = middle; else below = middle;
        }
        n = reached - 1;
        J[(long long)t * k + k - left] = n;
    }
}
