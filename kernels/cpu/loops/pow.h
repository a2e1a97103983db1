// Powers of a run of floats, for Pow and for a step of Pointwise.
#pragma once

#include <cstdint>

namespace stepscope::cpu {

// y[i] = x[i] to an exponent that needs no logarithm; y may be x.
using SimplePower = void (*)(const float* x, float* y, std::int64_t count);
// The loop for exponents 0, 1, 2, 3, 4, 0.5, -0.5 and -1, else null.
SimplePower simplePowerOf(float exponent);

// y[i] = a[i * stepA] to the power b[i * stepB], steps 0 or 1; y may lie over either.
void powRun(const float* a, std::int64_t stepA, const float* b, std::int64_t stepB, float* y, std::int64_t count);

}  // namespace stepscope::cpu
