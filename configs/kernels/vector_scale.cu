// out = factor * x: a CUDA kernel without a main; cuda_raw_analyze.yaml declares its arguments.
extern "C" __global__ void vector_scale(const float* x, float* out, float factor, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * x[i];
}
