// Adds two vectors on the CPU and checks every element: the smoke test for machines without a GPU. Exit status 0 and a
// line that starts with PASSED mean that all are right; anything else is a failure, and the program is refused.
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

constexpr int kElements = 1024;

void vector_add(const float* a, const float* b, float* sum, int count) {
    for (int index = 0; index < count; ++index) {
        sum[index] = a[index] + b[index];
    }
}

int main() {
    std::vector<float> a(kElements), b(kElements);
    // NaN: an element that is not written is seen.
    std::vector<float> sum(kElements, std::numeric_limits<float>::quiet_NaN());
    for (int i = 0; i < kElements; ++i) {
        a[i] = 0.5f * static_cast<float>(i);
        b[i] = 3.0f - static_cast<float>(i % 7);
    }
    vector_add(a.data(), b.data(), sum.data(), kElements);
    for (int i = 0; i < kElements; ++i) {
        if (!(std::fabs(sum[i] - (a[i] + b[i])) <= 1e-6f)) {
            std::printf("FAILED: element %d is %g instead of %g\n", i, sum[i], a[i] + b[i]);
            return 1;
        }
    }
    std::printf("PASSED: All %d elements correct.\n", kElements);
    return 0;
}
