// out = scale * x + y, row by row: a kernel without a main. Its arguments are declared in analyze.yaml.
#include <cstdint>

extern "C" void scale_add(const float* x, const float* y, float* out, float scale, int64_t rows, int64_t cols) {
    for (int64_t row = 0; row < rows; ++row) {
        const float* a = x + row * cols;
        float* o = out + row * cols;
        for (int64_t col = 0; col < cols; ++col) {
            o[col] = scale * a[col] + y[col];
        }
    }
}
