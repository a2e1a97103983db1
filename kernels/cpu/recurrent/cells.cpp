#include "kernels/cpu/recurrent/cells.h"

#include "kernels/cpu/loops/loops.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {

SS_CLONES void lstmStep(float* __restrict gates, float* __restrict h, float* __restrict c, std::int64_t size) {
  float* __restrict in = gates, * __restrict out = gates + size, * __restrict forget = gates + 2 * size, * __restrict cell = gates + 3 * size;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < size; ++i) {
    in[i] = sigmoidOf(in[i]);
    out[i] = sigmoidOf(out[i]);
    forget[i] = sigmoidOf(forget[i]);
    cell[i] = tanhOf(cell[i]);
    c[i] = forget[i] * c[i] + in[i] * cell[i];
    h[i] = out[i] * tanhOf(c[i]);
  }
}

SS_CLONES void lstmStepBack(const float* __restrict gates, const float* __restrict c, const float* __restrict before,
                            const float* __restrict dh, float* __restrict dc, float* __restrict d, std::int64_t size) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < size; ++i) {
    const float in = gates[i], out = gates[size + i], forget = gates[2 * size + i], cell = gates[3 * size + i];
    const float state = tanhOf(c[i]), dCell = dc[i] + dh[i] * out * (1 - state * state);
    d[i] = dCell * cell * in * (1 - in);
    d[size + i] = dh[i] * state * out * (1 - out);
    d[2 * size + i] = dCell * before[i] * forget * (1 - forget);
    d[3 * size + i] = dCell * in * (1 - cell * cell);
    dc[i] = dCell * forget;
  }
}

SS_CLONES void gruStep(float* __restrict gates, const float* __restrict linear, float* __restrict h, std::int64_t size) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < size; ++i) {
    const float z = sigmoidOf(gates[i] + linear[i]), r = sigmoidOf(gates[size + i] + linear[size + i]);
    const float next = tanhOf(gates[2 * size + i] + r * linear[2 * size + i]);
    gates[i] = z;
    gates[size + i] = r;
    gates[2 * size + i] = next;
    h[i] = (1 - z) * next + z * h[i];
  }
}

SS_CLONES void gruStepBack(const float* __restrict gates, const float* __restrict linear, const float* __restrict before,
                           float* __restrict dh, float* __restrict d, float* __restrict dLinear, std::int64_t size) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < size; ++i) {
    const float z = gates[i], r = gates[size + i], next = gates[2 * size + i];
    const float dNext = dh[i] * (1 - z) * (1 - next * next);
    const float dUpdate = dh[i] * (before[i] - next) * z * (1 - z), dReset = dNext * linear[i] * r * (1 - r);
    d[i] = dUpdate;
    d[size + i] = dReset;
    d[2 * size + i] = dNext;
    dLinear[i] = dUpdate;
    dLinear[size + i] = dReset;
    dLinear[2 * size + i] = dNext * r;
    dh[i] *= z;
  }
}

SS_CLONES void rnnStep(Cell cell, const float* __restrict arguments, float* __restrict h, std::int64_t size) {
  if (cell == Cell::kRelu)
    for (std::int64_t i = 0; i < size; ++i) h[i] = arguments[i] < 0 ? 0.0F : arguments[i];
  else
    for (std::int64_t i = 0; i < size; ++i) h[i] = tanhOf(arguments[i]);
}

SS_CLONES void rnnStepBack(Cell cell, const float* __restrict y, const float* __restrict dh, float* __restrict d,
                           std::int64_t size) {
  if (cell == Cell::kRelu)
    for (std::int64_t i = 0; i < size; ++i) d[i] = y[i] > 0 ? dh[i] : 0.0F;
  else
    for (std::int64_t i = 0; i < size; ++i) d[i] = dh[i] * (1 - y[i] * y[i]);
}

SS_CLONES void addTo(double* __restrict sums, const float* __restrict x, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) sums[i] += static_cast<double>(x[i]);
}

}  // namespace stepscope::cpu
