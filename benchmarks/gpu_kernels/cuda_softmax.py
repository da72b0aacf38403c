"""Softmax over rows of 4096 float32 in CUDA C++, built by NVRTC: one block of threads a row."""

import torch

SOURCE = r"""
__device__ float reduced(float value, float* parts, bool largest) {
    for (int offset = 16; offset; offset /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = largest ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < 8; ++i) value = largest ? fmaxf(value, parts[i]) : value + parts[i];
    return value;
}

extern "C" __global__ void cuda_softmax(const float4* x, float4* out) {
    const int row = blockIdx.x, lane = threadIdx.x;
    __shared__ float maxima[8], sums[8];
    float4 values[4];
    float largest = -3.402823466e+38f, sum = 0.0f;
    for (int i = 0; i < 4; ++i) {
        values[i] = x[row * 1024 + i * 256 + lane];
        float4 v = values[i];
        largest = fmaxf(largest, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    largest = reduced(largest, maxima, true);
    for (int i = 0; i < 4; ++i) {
        float4 v = values[i];
        v = make_float4(__expf(v.x - largest), __expf(v.y - largest), __expf(v.z - largest), __expf(v.w - largest));
        values[i] = v;
        sum += v.x + v.y + v.z + v.w;
    }
    const float scale = 1.0f / reduced(sum, sums, false);
    for (int i = 0; i < 4; ++i) {
        float4 v = values[i];
        out[row * 1024 + i * 256 + lane] = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
    }
}
"""
KERNEL = None


class Model(torch.nn.Module):
    def forward(self, x):
        global KERNEL
        if KERNEL is None:
            KERNEL = torch.cuda._compile_kernel(SOURCE, "cuda_softmax")
        out = torch.empty_like(x)
        KERNEL(grid=(x.shape[0], 1, 1), block=(256, 1, 1), args=[x, out])
        return out


def get_inputs():
    return [torch.randn(8192, 4096)]
