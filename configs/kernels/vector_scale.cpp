// out = factor * x: a C++ function without a main; cpp_raw_analyze.yaml declares its arguments.
#include <cstdint>

extern "C" void vector_scale(const float* x, float* out, float factor, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = factor * x[i];
}
