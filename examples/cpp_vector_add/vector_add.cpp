// Adds two vectors on the CPU and checks every element: the smoke test for machines without a GPU. Exit status 0 and a
// line that starts with PASSED mean that all are right; anything else is a failure, and the program is refused.
#include <cstdio>
#include <cstdlib>
#include <limits>

constexpr int kElements = 1024;

void vector_add(const float* a, const float* b, float* sum, int count) {
    for (int index = 0; index < count; ++index) {
        sum[index] = a[index] + b[index];
    }
}

int main() {
    static float a[kElements], b[kElements], sum[kElements];
    for (int i = 0; i < kElements; ++i) {
        a[i] = 0.5f * static_cast<float>(i);
        b[i] = 3.0f - static_cast<float>(i % 7);
        // NaN: an element that is not written is seen.
        sum[i] = std::numeric_limits<float>::quiet_NaN();
    }
    vector_add(a, b, sum, kElements);
    for (int i = 0; i < kElements; ++i) {
        if (!(std::abs(sum[i] - (a[i] + b[i])) <= 1e-6f)) {
            std::printf("FAILED: element %d is %g instead of %g\n", i, sum[i], a[i] + b[i]);
            return 1;
        }
    }
    std::printf("PASSED: All %d elements correct.\n", kElements);
    return 0;
}
