// c = a + b, with its own check: exit status 0 and "PASSED" only when every element is right.
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                     \
  do {                                                                                  \
    hipError_t status = (call);                                                         \
    if (status != hipSuccess) {                                                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, hipGetErrorString(status)); \
      std::exit(2);                                                                     \
    }                                                                                   \
  } while (0)

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  const int n = (1 << 20) + 3;  // not a multiple of the block
  const size_t bytes = n * sizeof(float);
  std::vector<float> a(n), b(n), c(n, NAN);
  for (int i = 0; i < n; ++i) {
    a[i] = 0.25f * static_cast<float>(i % 1000);
    b[i] = 3.0f - static_cast<float>(i % 77);
  }
  float *da, *db, *dc;
  CHECK(hipMalloc(&da, bytes));
  CHECK(hipMalloc(&db, bytes));
  CHECK(hipMalloc(&dc, bytes));
  CHECK(hipMemcpy(da, a.data(), bytes, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(db, b.data(), bytes, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(dc, c.data(), bytes, hipMemcpyHostToDevice));
  vector_add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  CHECK(hipGetLastError());
  CHECK(hipDeviceSynchronize());
  CHECK(hipMemcpy(c.data(), dc, bytes, hipMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += !(c[i] == a[i] + b[i]);
  CHECK(hipFree(da));
  CHECK(hipFree(db));
  CHECK(hipFree(dc));
  if (wrong != 0) {
    std::printf("FAILED: %d of %d elements are wrong\n", wrong, n);
    return 1;
  }
  std::printf("PASSED: all %d elements are right\n", n);
  return 0;
}
