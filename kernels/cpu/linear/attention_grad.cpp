// The gradient of attention by the same tiles as attention.cpp, heads that share keys by one thread.
//
// A tile      P = exp(S - maximum) / sum, dv += (P D)^T dy, dP = (dy v^T) D, dS = P (dP - rowsum(P dP)),
//             dq = scale dS k, dk += scale dS^T q. D: the factors of dropout, drawn again.
// Memory      m x n is never stored: per thread two tiles and the bytes of D, three with a softcap.
#include <algorithm>
#include <span>

#include "kernels/cpu/linear/attention_plan.h"
#include "kernels/cpu/linear/attention_rows.h"
#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace attention {
namespace {

class AttentionGradKernel final : public Kernel {
 public:
  // `results`: where the gradients lie.
  AttentionGradKernel(AttentionPlan plan, AttentionShape results) : p_(std::move(plan)), to_(std::move(results)) {
    const auto elements = static_cast<std::size_t>(p_.rows() * p_.shape().n());
    tile_ = layout_.add(elements * sizeof(float));
    other_ = layout_.add(elements * sizeof(float));
    if (p_.shape().dropout > 0) kept_ = layout_.add(elements);
    if (p_.shape().softcap > 0) slopes_ = layout_.add(elements * sizeof(float));
  }
  std::size_t workspaceBytes() const override {
    return p_.countBytes() + layout_.size() * static_cast<std::size_t>(p_.threads());
  }
  std::string implementation() const override { return "attention tiles, onednn sgemm"; }
  Determinism determinism() const override { return tileOrder(); }

  Status run(const KernelCall& call) override {
    SS_ASSIGN(const auto counts, p_.countRows(call, 6));
    const ThreadScope scope(1);
    DnnlFailure failure;
#pragma omp parallel for schedule(dynamic) num_threads(p_.threads())
    for (std::int64_t group = 0; group < p_.shape().heads() / p_.shape().shared; ++group)
      failure.note(this->group(
          call, group, counts,
          call.workspace.data() + p_.countBytes() + static_cast<std::size_t>(omp_get_thread_num()) * layout_.size()));
    return failure.status("attention gradient");
  }

 private:
  // Heads that share keys and values.
  dnnl_status_t group(const KernelCall& call, std::int64_t group, std::span<const std::int64_t> counts,
                      std::byte* workspace) const {
    const AttentionShape& s = p_.shape();
    const std::int64_t first = group * s.shared;
    const Strided<float> dk{output(call, 1) + to_.scores.bOffset(first), to_.scores.bRow, to_.scores.bColumn},
        dv{output(call, 2) + to_.context.bOffset(first), to_.context.bRow, to_.context.bColumn};
    clear(dk, s.d(), s.n());
    clear(dv, s.n(), s.e());
    for (std::int64_t head = first; head < first + s.shared; ++head) {
      const std::int64_t computed = p_.rowsOf(counts, head);
      clear({output(call, 0) + to_.scores.aOffset(head) + computed * to_.scores.aRow, to_.scores.aRow, to_.scores.aColumn},
            s.m() - computed, s.d());
      for (std::int64_t begin = 0; begin < computed; begin += p_.rows())
        if (const auto status = tile(call, head, {begin, std::min(computed, begin + p_.rows())}, workspace, dk, dv);
            status != dnnl_success)
          return status;
    }
    return dnnl_success;
  }

  dnnl_status_t tile(const KernelCall& call, std::int64_t head, Range tile, std::byte* workspace, Strided<float> dk,
                     Strided<float> dv) const {
    const AttentionShape& s = p_.shape();
    const TensorView* mask = call.inputPresent(5) ? &call.inputs[5] : nullptr;
    const Range columns = p_.columns(mask, head, tile);
    const std::int64_t width = columns.size(), rows = tile.size();
    auto *p = reinterpret_cast<float*>(workspace + tile_), *other = reinterpret_cast<float*>(workspace + other_);
    auto* kept = reinterpret_cast<std::uint8_t*>(workspace + kept_);
    auto* slopes = s.softcap > 0 ? reinterpret_cast<float*>(workspace + slopes_) : nullptr;
    const Operand q = p_.query(call, 2, head).rowsFrom(tile.begin), k = p_.keys(call, 3, head),
                  v = p_.values(call, 4, head).rowsFrom(columns.begin);
    const Operand dy{input(call, 0) + s.context.yOffset(head) + tile.begin * s.context.yRow, s.context.yRow,
                     s.context.yColumn};
    const float* statistics = input(call, 1) + 2 * (head * s.m() + tile.begin);
    auto status = p_.scores(p_.query(call, 2, head), k, mask, head, tile, columns, p, slopes);
    if (status != dnnl_success) return status;
    for (std::int64_t i = 0; i < rows; ++i) {
      powersOf(statistics[2 * i], p + i * width, width);
      scaleRow(statistics[2 * i + 1], p + i * width, 1, width);
      if (s.dropout > 0) {
        p_.draw(call.random, head, tile.begin + i, columns, kept + i * width);
        std::copy_n(p + i * width, width, other + i * width);
        keepRow(kept + i * width, p_.keptFactor(), other + i * width, width);
      }
    }
    const Operand weights{s.dropout > 0 ? other : p, width, 1};
    status = multiply(width, s.e(), rows, 1, weights.turned(), dy, 1, dv.rowsFrom(columns.begin));
    if (status == dnnl_success) status = multiply(rows, width, s.e(), 1, dy, v.turned(), 0, {other, width, 1});
    if (status != dnnl_success) return status;
    for (std::int64_t i = 0; i < rows; ++i) {
      float *pRow = p + i * width, *dp = other + i * width;
      if (s.dropout > 0) keepRow(kept + i * width, p_.keptFactor(), dp, width);
      const double dot = sumInBlocks(width, [&](std::int64_t at, std::int64_t n) { return dotOf(pRow + at, dp + at, n); });
      scoreGradient(pRow, static_cast<float>(dot), dp, width);
      if (slopes != nullptr) multiplyRow(slopes + i * width, dp, width);
      p_.stopAtDropped(mask, head, tile.begin + i, columns, dp);
    }
    const Operand ds{other, width, 1}, someKeys{k.data + columns.begin * k.column, k.row, k.column};
    const Strided<float> dq{output(call, 0) + to_.scores.aOffset(head) + tile.begin * to_.scores.aRow, to_.scores.aRow,
                            to_.scores.aColumn};
    status = multiply(rows, s.d(), width, s.scale, ds, someKeys.turned(), 0, dq);
    if (status != dnnl_success) return status;
    return multiply(s.d(), width, rows, s.scale, q.turned(), ds, 1,
                    {dk.data + columns.begin * dk.column, dk.row, dk.column});
  }

  AttentionPlan p_;
  AttentionShape to_;
  WorkspaceLayout layout_;  // of one thread
  std::size_t tile_ = 0, other_ = 0, kept_ = 0, slopes_ = 0;
};

}  // namespace
}  // namespace attention

Result<std::unique_ptr<Kernel>> makeFusedAttentionGrad(const KernelSpec& spec) {
  for (const std::size_t i : {0u, 1u, 2u, 3u, 4u})
    if (!takesInput(spec, i)) return notTaken(spec, "elements other than float32");
  for (const std::size_t i : {0u, 1u, 2u})
    if (!takesOutput(spec, i)) return notTaken(spec, "gradients other than float32, or fewer than three");
  const Dims &q = spec.inputs[2].dims, &k = spec.inputs[3].dims, &v = spec.inputs[4].dims;
  SS_ASSIGN(attention::AttentionPlan plan, attention::AttentionPlan::of(spec, 2, q, k, v));
  SS_ASSIGN(AttentionShape results, attentionGradientShape(q, k, v, spec.attrs));
  const auto found = [](const MatMulShape& s) { return attention::packs(s.bRow, s.bColumn, s.k, s.n); };
  if (!attention::packs(results.scores.aRow, results.scores.aColumn, results.m(), results.d()) || !found(results.scores) ||
      !found(results.context))
    return notTaken(spec, "gradients without neighbours in a row");
  return std::make_unique<attention::AttentionGradKernel>(std::move(plan), std::move(results));
}

}  // namespace stepscope::cpu
