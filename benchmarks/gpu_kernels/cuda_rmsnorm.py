"""RMSNorm over rows of 4096 float32 in CUDA C++, built by NVRTC: one block of threads a row."""

import torch

SOURCE = r"""
extern "C" __global__ void cuda_rmsnorm(const float4* x, const float4* weight, float4* out) {
    const int row = blockIdx.x, lane = threadIdx.x;
    __shared__ float parts[8];
    float4 values[4];
    float sum = 0.0f;
    for (int i = 0; i < 4; ++i) {
        values[i] = x[row * 1024 + i * 256 + lane];
        float4 v = values[i];
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane % 32 == 0) parts[lane / 32] = sum;
    __syncthreads();
    float total = 0.0f;
    for (int i = 0; i < 8; ++i) total += parts[i];
    const float scale = rsqrtf(total / 4096.0f + 1e-6f);
    for (int i = 0; i < 4; ++i) {
        float4 v = values[i], w = weight[i * 256 + lane];
        out[row * 1024 + i * 256 + lane] =
            make_float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w);
    }
}
"""
KERNEL = None


class Model(torch.nn.Module):
    def forward(self, x, weight):
        global KERNEL
        if KERNEL is None:
            KERNEL = torch.cuda._compile_kernel(SOURCE, "cuda_rmsnorm")
        out = torch.empty_like(x)
        KERNEL(grid=(x.shape[0], 1, 1), block=(256, 1, 1), args=[x, weight, out])
        return out


def get_inputs():
    return [torch.randn(8192, 4096), torch.rand(4096) + 0.5]
