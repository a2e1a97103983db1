// Attention without the matrix of scores: tiles of rows that stay in a cache, each against all keys that its mask keeps.
//
// Algorithm   FlashAttention-2 (Dao, 2023) with whole rows of scores, so that a softmax is computed as it is elsewhere: no
//             running maximum.
// Forward     A tile: S = cap(scale q k^T) + mask, y = softmax(S) v; the maximum and 1 / sum of every row are kept.
// Gradient    See attention_grad.cpp.
// Memory      m x n is never stored: one tile per thread.
// Masks       Columns at either end that the mask drops in every row of a tile are not computed (causal masks, padding):
//             their P is exactly 0. What only they hold, NaN included, does not reach the result.
// Rows        Those behind the last one that is kept of a batch entry are not computed either.
#include <algorithm>
#include <array>
#include <limits>

#include "kernels/cpu/linear/attention_plan.h"
#include "kernels/cpu/linear/attention_rows.h"
#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace attention {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(AttentionPlan plan) : p_(std::move(plan)) {
    tile_ = layout_.add(static_cast<std::size_t>(p_.rows() * p_.shape().n()) * sizeof(float));
    if (p_.shape().dropout > 0) kept_ = layout_.add(static_cast<std::size_t>(p_.shape().n()));
  }
  std::size_t workspaceBytes() const override {
    return p_.countBytes() + layout_.size() * static_cast<std::size_t>(p_.threads());
  }
  std::string implementation() const override { return "attention tiles, onednn sgemm"; }
  Determinism determinism() const override { return tileOrder(); }

  Status run(const KernelCall& call) override {
    const ThreadScope scope(1);  // the library's own; ours are named
    DnnlFailure failure;
    SS_ASSIGN(const auto counts, p_.countRows(call, 4));
    const std::int64_t tiles = p_.tiles(), items = p_.shape().heads() * tiles;
#pragma omp parallel for schedule(dynamic) num_threads(p_.threads())
    for (std::int64_t item = 0; item < items; ++item)
      failure.note(tile(call, item / tiles, item % tiles, p_.rowsOf(counts, item / tiles), roomOf(call)));
    return failure.status("attention");
  }

 private:
  std::byte* roomOf(const KernelCall& call) const {
    return call.workspace.data() + p_.countBytes() + static_cast<std::size_t>(omp_get_thread_num()) * layout_.size();
  }

  // `computed`: rows of the head that are.
  dnnl_status_t tile(const KernelCall& call, std::int64_t head, std::int64_t number, std::int64_t computed,
                     std::byte* workspace) const {
    const AttentionShape& s = p_.shape();
    const Range whole{number * p_.rows(), std::min(s.m(), (number + 1) * p_.rows())};
    const Range tile{whole.begin, std::clamp(computed, whole.begin, whole.end)};
    if (tile.end < whole.end) leaveOut(call, head, {tile.end, whole.end});
    if (tile.size() == 0) return dnnl_success;
    const TensorView* mask = call.inputPresent(3) ? &call.inputs[3] : nullptr;
    const Range columns = p_.columns(mask, head, tile);
    auto* x = reinterpret_cast<float*>(workspace + tile_);
    auto* kept = reinterpret_cast<std::uint8_t*>(workspace + kept_);
    if (const auto status = p_.scores(p_.query(call, 0, head), p_.keys(call, 1, head), mask, head, tile, columns, x);
        status != dnnl_success)
      return status;
    float* statistics = call.outputPresent(1) ? output(call, 1) + 2 * (head * s.m() + tile.begin) : nullptr;
    const Strided<float> y{output(call, 0) + s.context.yOffset(head) + tile.begin * s.context.yRow, s.context.yRow,
                           s.context.yColumn};
    std::array<float, 128> scales;
    for (std::int64_t i = 0; i < tile.size(); ++i) {
      float* row = x + i * columns.size();
      const float max = largestOf(row, columns.size());
      const bool dead = s.safe && max == -kInfinity;
      const double sum = sumInBlocks(columns.size(),
                                     [&](std::int64_t at, std::int64_t n) { return powersOf(dead ? 0 : max, row + at, n); });
      if (s.dropout > 0) {
        p_.draw(call.random, head, tile.begin + i, columns, kept);
        keepRow(kept, p_.keptFactor(), row, columns.size());
      }
      scales[static_cast<std::size_t>(i)] = dead ? 0 : static_cast<float>(1 / sum);
      if (!statistics) continue;
      statistics[2 * i] = dead ? 0 : max;
      statistics[2 * i + 1] = scales[static_cast<std::size_t>(i)];
    }
    const Operand v = p_.values(call, 2, head).rowsFrom(columns.begin);
    const auto status = multiply(tile.size(), s.e(), columns.size(), 1, {x, columns.size(), 1}, v, 0, y);
    for (std::int64_t i = 0; i < tile.size(); ++i)
      scaleRow(scales[static_cast<std::size_t>(i)], y.data + i * y.row, y.column, s.e());
    return status;
  }

  void leaveOut(const KernelCall& call, std::int64_t head, Range rows) const {
    const AttentionShape& s = p_.shape();
    clear({output(call, 0) + s.context.yOffset(head) + rows.begin * s.context.yRow, s.context.yRow, s.context.yColumn},
          rows.size(), s.e());
    if (call.outputPresent(1)) std::fill_n(output(call, 1) + 2 * (head * s.m() + rows.begin), 2 * rows.size(), 0.0F);
  }

  AttentionPlan p_;
  WorkspaceLayout layout_;  // of one thread
  std::size_t tile_ = 0, kept_ = 0;
};

}  // namespace
}  // namespace attention

Result<std::unique_ptr<Kernel>> makeFusedAttention(const KernelSpec& spec) {
  for (const std::size_t i : {0u, 1u, 2u})
    if (!takesInput(spec, i)) return notTaken(spec, "elements other than float32");
  if (!takesOutput(spec, 0)) return notTaken(spec, "a result other than float32");
  SS_ASSIGN(attention::AttentionPlan plan,
            attention::AttentionPlan::of(spec, 0, spec.inputs[0].dims, spec.inputs[1].dims, spec.inputs[2].dims));
  if (!takesOptionalOutput(spec, 1, 2 * plan.shape().heads() * plan.shape().m()))
    return notTaken(spec, "statistics of another size");
  return std::make_unique<attention::AttentionKernel>(std::move(plan));
}

}  // namespace stepscope::cpu
