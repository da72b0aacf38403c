// A template without a main: `kernel_name: add<256>` picks the instance.
template <int THREADS>
__global__ void add(const float* a, const float* b, float* out, long long n) {
    long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
