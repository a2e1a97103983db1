// LSTM, GRU and RNN in f32: the products with the input of all steps at once, then the walk over time, which has one product
// with the state per step. A thread walks by itself over its share of the batch (or its direction), so no two threads meet
// between steps.
//
// Taken are the default activations (Relu too for RNN), any direction, layout and lengths; GRU with linear_before_reset, as
// PyTorch's is. Not taken: peepholes, clip, coupled gates, other activations; those fall back to the reference kernel.
//
// Kept for the way back, in the order of X's rows ([steps, batch], or [batch, steps] with layout 1), zeros beyond a
// sequence's length:
//   gates   [directions, X0, X1, gates * hidden]   results of the gate activations, in ONNX's order
//   linear  [directions, X0, X1, hidden]           LSTM: the cell state; GRU: the state's part of the hidden gate, before
//   the reset
#pragma once

#include <array>

#include "kernels/cpu/recurrent/cells.h"
#include "kernels/kernel.h"

namespace stepscope::cpu {

struct RecurrentExtents {
  Cell cell = Cell::kLstm;
  std::int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 1, gates = 1;
  bool batchFirst = false;
  std::array<bool, 2> reversed{};
  int threads = 1;

  std::int64_t rows() const { return steps * batch; }
  std::int64_t width() const { return gates * hidden; }
  bool hasCells() const { return cell == Cell::kLstm; }
  // Number of the row of X, and of what is kept.
  std::int64_t row(std::int64_t t, std::int64_t n) const { return batchFirst ? n * steps + t : t * batch + n; }
  // Floats between the rows of two sequences at one step.
  std::int64_t rowStep() const { return batchFirst ? steps : 1; }
  // Offsets in Y and in a state.
  std::int64_t y(std::int64_t t, std::int64_t d, std::int64_t n) const {
    return (batchFirst ? (n * steps + t) * directions + d : (t * directions + d) * batch + n) * hidden;
  }
  std::int64_t state(std::int64_t d, std::int64_t n) const {
    return (batchFirst ? n * directions + d : d * batch + n) * hidden;
  }
};

// Operands X, W, R, B, sequence_lens, initial_h, initial_c, P from number `first` on.
// Errors: kUnsupported for what is not taken.
Result<RecurrentExtents> recurrentExtents(const KernelSpec& spec, std::size_t first);

// The length of each sequence. Errors: a length that is not in 0..steps.
Status readLengths(const KernelCall& call, std::size_t input, const RecurrentExtents& e, std::int32_t* lengths);

// body(direction, begin, end): static parts of (direction, sequences [begin, end)), each by one thread.
template <typename Body>
void walkParts(const RecurrentExtents& e, Body&& body) {
  constexpr std::int64_t kSmall = 1 << 18;  // products; below, a second thread costs more than it brings
  const bool alone = e.threads <= 1 || e.rows() * e.width() * e.hidden < kSmall;
  const std::int64_t parts = alone ? 1 : std::min<std::int64_t>(e.batch, (e.threads + e.directions - 1) / e.directions),
                     tasks = parts * e.directions;
#pragma omp parallel for schedule(static) num_threads(e.threads) if (!alone && tasks > 1)
  for (std::int64_t task = 0; task < tasks; ++task) {
    const std::int64_t part = task % parts;
    body(task / parts, e.batch * part / parts, e.batch * (part + 1) / parts);
  }
}

Result<std::unique_ptr<Kernel>> makeRecurrent(const KernelSpec& spec);          // LSTM GRU RNN
Result<std::unique_ptr<Kernel>> makeRecurrentGradient(const KernelSpec& spec);  // LSTMGrad GRUGrad RNNGrad

}  // namespace stepscope::cpu
