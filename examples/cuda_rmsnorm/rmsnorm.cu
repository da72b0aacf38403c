// RMSNorm of rows of half precision, one block a row: a kernel without a main. Its arguments stand in analyze.yaml.
#include <cuda_fp16.h>

__device__ float block_sum(float value) {
    __shared__ float parts[32];
    for (int step = 16; step; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0f;
    if (threadIdx.x < 32) {
        for (int step = 16; step; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
        if (threadIdx.x == 0) parts[0] = value;
    }
    __syncthreads();
    return parts[0];
}

extern "C" __global__ void rmsnorm(const __half* x, const __half* weight, __half* out, float eps, int cols) {
    const __half* row = x + (long long)blockIdx.x * cols;
    __half* result = out + (long long)blockIdx.x * cols;
    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += blockDim.x) {
        float value = __half2float(row[col]);
        sum += value * value;
    }
    float scale = rsqrtf(block_sum(sum) / cols + eps);
    for (int col = threadIdx.x; col < cols; col += blockDim.x) {
        result[col] = __float2half(__half2float(row[col]) * scale * __half2float(weight[col]));
    }
}
