// c = a + b, with its own check: exit status 0 and "PASSED" only when every element is right.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                     \
  do {                                                                                  \
    cudaError_t status = (call);                                                         \
    if (status != cudaSuccess) {                                                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
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
  CHECK(cudaMalloc(&da, bytes));
  CHECK(cudaMalloc(&db, bytes));
  CHECK(cudaMalloc(&dc, bytes));
  CHECK(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dc, c.data(), bytes, cudaMemcpyHostToDevice));
  vector_add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += !(c[i] == a[i] + b[i]);
  CHECK(cudaFree(da));
  CHECK(cudaFree(db));
  CHECK(cudaFree(dc));
  if (wrong != 0) {
    std::printf("FAILED: %d of %d elements are wrong\n", wrong, n);
    return 1;
  }
  std::printf("PASSED: all %d elements are right\n", n);
  return 0;
}
