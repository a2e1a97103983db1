// One step of one sequence, forward and back: what stands between the matrix products. All pointers are rows of `size`
// hidden units; gates lie one after another in ONNX's order. Nothing overlaps unless it says so.
#pragma once

#include <cstdint>

namespace stepscope::cpu {

enum class Cell : std::uint8_t { kLstm, kGru, kTanh, kRelu };

// LSTM (i, o, f, g). gates: arguments on entry, results of the activations on return. h, c: the state, replaced.
void lstmStep(float* gates, float* h, float* c, std::int64_t size);
// h and c are those after the step, `before` the cell state before it. dh: of the new state. dc: of the new cell state,
// replaced by that of the old one. d: gradients of the arguments of the gates.
void lstmStepBack(const float* gates, const float* c, const float* before, const float* dh, float* dc, float* d,
                  std::int64_t size);

// GRU with linear_before_reset (z, r, n). gates: the part of the input on entry, results on return; linear: [3 size], the
// part of the state with its bias, of which the last third is kept by the caller. h is replaced.
void gruStep(float* gates, const float* linear, float* h, std::int64_t size);
// linear: [size], the state's part of n. dh: of the new state, replaced by what goes past the gates. d: of the arguments;
// dLinear: [3 size], of the state's part, which differs in its last third.
void gruStepBack(const float* gates, const float* linear, const float* before, float* dh, float* d, float* dLinear,
                 std::int64_t size);

// RNN. arguments: of the activation; h is replaced.
void rnnStep(Cell cell, const float* arguments, float* h, std::int64_t size);
// y: the new state.
void rnnStepBack(Cell cell, const float* y, const float* dh, float* d, std::int64_t size);

// sums[j] += x[j]
void addTo(double* sums, const float* x, std::int64_t size);

}  // namespace stepscope::cpu
