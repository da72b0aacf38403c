// The same, two values at a time where the row's length allows it.
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
    int pairs = cols % 2 ? 0 : cols / 2;
    float sum = 0.0f;
    for (int pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
        float2 value = __half22float2(reinterpret_cast<const __half2*>(row)[pair]);
        sum += value.x * value.x + value.y * value.y;
    }
    for (int col = 2 * pairs + threadIdx.x; col < cols; col += blockDim.x) {
        float value = __half2float(row[col]);
        sum += value * value;
    }
    float scale = rsqrtf(block_sum(sum) / cols + eps);
    for (int pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
        float2 value = __half22float2(reinterpret_cast<const __half2*>(row)[pair]);
        float2 factor = __half22float2(reinterpret_cast<const __half2*>(weight)[pair]);
        reinterpret_cast<__half2*>(result)[pair] =
            __floats2half2_rn(value.x * scale * factor.x, value.y * scale * factor.y);
    }
    for (int col = 2 * pairs + threadIdx.x; col < cols; col += blockDim.x) {
        result[col] = __float2half(__half2float(row[col]) * scale * __half2float(weight[col]));
    }
}
