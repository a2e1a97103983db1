// Device functions of the RMSNorm: one source for nvcc and for the emulator.
//
//   nvcc -fatbin -std=c++17 -I ../../abi kernels.cu -o kernels.fatbin
//
// A block has 128 threads; row r is of one block, and element c of it of thread c % 128.
#include "stepscope_device.h"

namespace {

// The sum of all threads of the block, in all of them, in a fixed order.
SSP_DEVICE float block_sum(float value) {
  SSP_SHARED(float, parts, 32);
  for (int lanes = 16; lanes > 0; lanes /= 2) value += ssp::shuffle_xor(value, lanes);
  const int thread = ssp::thread_index();
  if (thread % 32 == 0) parts[thread / 32] = value;
  ssp::sync_threads();
  float sum = 0;
  for (int warp = 0; warp < ssp::block_size() / 32; ++warp) sum += parts[warp];
  ssp::sync_threads();  // `parts` may be written again
  return sum;
}

SSP_DEVICE float inverse_norm(ssp::memory<const float> x, int64_t row, int64_t columns, float epsilon) {
  float square = 0;
  for (int64_t c = ssp::thread_index(); c < columns; c += ssp::block_size()) {
    const float value = x[row * columns + c];
    square += value * value;
  }
  return 1.0f / sqrtf(block_sum(square) / static_cast<float>(columns) + epsilon);
}

}  // namespace

// x, y: [rows, columns], w: [columns]; y may lie over x.
SSP_KERNEL rms_norm(ssp::memory<const float> x, ssp::memory<const float> w, ssp::memory<float> y, int64_t columns,
                    float epsilon) {
  const int64_t row = ssp::block_index();
  const float inverse = inverse_norm(x, row, columns, epsilon);
  for (int64_t c = ssp::thread_index(); c < columns; c += ssp::block_size())
    y[row * columns + c] = x[row * columns + c] * inverse * w[c];
}

// With n = x inverse and d = dy w:  dx = inverse (d - n mean_c(d n)).  sums: [blocks, columns], of dy n over the rows
// block, block + blocks …
SSP_KERNEL rms_norm_grad(ssp::memory<const float> x, ssp::memory<const float> w, ssp::memory<const float> dy,
                         ssp::memory<float> dx, ssp::memory<float> sums, int64_t rows, int64_t columns, float epsilon) {
  const int64_t own = ssp::block_index() * columns;
  for (int64_t c = ssp::thread_index(); c < columns; c += ssp::block_size()) sums[own + c] = 0.0f;
  for (int64_t row = ssp::block_index(); row < rows; row += ssp::grid_size()) {
    const float inverse = inverse_norm(x, row, columns, epsilon);
    float projection = 0;
    for (int64_t c = ssp::thread_index(); c < columns; c += ssp::block_size())
      projection += dy[row * columns + c] * w[c] * x[row * columns + c] * inverse;
    const float mean = block_sum(projection) / static_cast<float>(columns);
    for (int64_t c = ssp::thread_index(); c < columns; c += ssp::block_size()) {
      const float normal = x[row * columns + c] * inverse, d = dy[row * columns + c];
      sums[own + c] += d * normal;
      dx[row * columns + c] = inverse * (d * w[c] - normal * mean);
    }
  }
}

// dw[c] = sum of sums[k, c] over the `parts` rows.
SSP_KERNEL rms_norm_grad_weight(ssp::memory<const float> sums, ssp::memory<float> dw, int64_t parts, int64_t columns) {
  const int64_t c = ssp::block_index() * ssp::block_size() + ssp::thread_index();
  if (c >= columns) return;
  float sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += sums[part * columns + c];
  dw[c] = sum;
}
