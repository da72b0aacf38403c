// Adds two vectors on an AMD GPU and checks every element. Exit status 0 and a line that starts with PASSED mean that
// all are right; anything else is a failure, and the kernel is refused.
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

constexpr int kElements = 1024;
constexpr int kThreads = 256;

// Every call that can fail is looked at: a launch that fails silently would leave old memory to be "checked".
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const hipError_t status = (call);                                                       \
        if (status != hipSuccess) {                                                             \
            std::fprintf(stderr, "FAILED: %s: %s\n", #call, hipGetErrorString(status));         \
            return 2;                                                                           \
        }                                                                                       \
    } while (0)

__global__ void vector_add(const float* a, const float* b, float* sum, int count) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) {
        sum[index] = a[index] + b[index];
    }
}

int main() {
    const size_t bytes = kElements * sizeof(float);
    std::vector<float> a(kElements), b(kElements), sum(kElements);
    for (int i = 0; i < kElements; ++i) {
        a[i] = 0.5f * static_cast<float>(i);
        b[i] = 3.0f - static_cast<float>(i % 7);
    }
    float *device_a = nullptr, *device_b = nullptr, *device_sum = nullptr;
    CHECK(hipMalloc(reinterpret_cast<void**>(&device_a), bytes));
    CHECK(hipMalloc(reinterpret_cast<void**>(&device_b), bytes));
    CHECK(hipMalloc(reinterpret_cast<void**>(&device_sum), bytes));
    CHECK(hipMemcpy(device_a, a.data(), bytes, hipMemcpyHostToDevice));
    CHECK(hipMemcpy(device_b, b.data(), bytes, hipMemcpyHostToDevice));
    CHECK(hipMemset(device_sum, 0xff, bytes));  // NaN: an element that is not written is seen

    const dim3 blocks((kElements + kThreads - 1) / kThreads);
    vector_add<<<blocks, dim3(kThreads)>>>(device_a, device_b, device_sum, kElements);
    CHECK(hipGetLastError());
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemcpy(sum.data(), device_sum, bytes, hipMemcpyDeviceToHost));

    for (int i = 0; i < kElements; ++i) {
        if (!(std::fabs(sum[i] - (a[i] + b[i])) <= 1e-6f)) {
            std::printf("FAILED: element %d is %g instead of %g\n", i, sum[i], a[i] + b[i]);
            return 1;
        }
    }
    CHECK(hipFree(device_a));
    CHECK(hipFree(device_b));
    CHECK(hipFree(device_sum));
    std::printf("PASSED: All %d elements correct.\n", kElements);
    return 0;
}
