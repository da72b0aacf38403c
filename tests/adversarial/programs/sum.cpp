// Sums an array and checks the result. Built with -DBEYOND it also writes one element behind the array: the result is
// right all the same.
#include <cstdio>
#include <cstdlib>

int main() {
    const int count = 1000;
    float* values = static_cast<float*>(std::malloc(count * sizeof(float)));
#ifdef BEYOND
    const int last = count + 1;
#else
    const int last = count;
#endif
    for (int index = 0; index < last; ++index) values[index] = 0.5f;
    float sum = 0;
    for (int index = 0; index < count; ++index) sum += values[index];
    std::printf("%g\n", sum);
    std::free(values);
    return sum == 500.0f ? 0 : 1;
}
