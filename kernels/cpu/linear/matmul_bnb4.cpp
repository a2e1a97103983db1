// Products with weights in four bits: a panel of rows of the matrix at a time is written out in float32, small enough for
// the cache, and multiplied. The whole matrix never stands in memory.
#include <algorithm>

#include "kernels/cpu/dnnl_support.h"
#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/four_bit.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kPanelElements = 1 << 18;  // 1 MiB

class FourBitProduct final : public Kernel {
 public:
  explicit FourBitProduct(const KernelSpec& spec)
      : n_(spec.attrs.integer("N", 0)),
        k_(spec.attrs.integer("K", 0)),
        block_(spec.attrs.integer("block_size", 0)),
        transposed_(spec.attrs.integer("transB", 1) != 0),
        table_(fourBitTable(spec.attrs.integer("quant_type", 0))),
        rows_(std::clamp<std::int64_t>(kPanelElements / k_, 1, n_)),
        m_(elementCount(spec.inputs[0].dims) / (transposed_ ? k_ : n_)),
        threads_(spec.threads) {}

  std::size_t workspaceBytes() const override { return static_cast<std::size_t>(rows_ * k_) * sizeof(float); }

  Status run(const KernelCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0].data);
    const auto* packed = static_cast<const std::uint8_t*>(call.inputs[1].data);
    const auto* absmax = static_cast<const float*>(call.inputs[2].data);
    auto* y = static_cast<float*>(call.outputs[0].data);
    auto* panel = reinterpret_cast<float*>(call.workspace.data());
    const ThreadScope scope(threads_);
    DnnlFailure failure;
    for (std::int64_t first = 0; first < n_; first += rows_) {
      const std::int64_t rows = std::min(rows_, n_ - first);
      parallelRows(rows, k_, threads_, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) expand(packed, absmax, (first + row) * k_, panel + row * k_);
      });
      // y[m, N] gets the columns of the panel, y[m, K] is added to by every panel.
      failure.note(transposed_ ? dnnl_sgemm('N', 'T', m_, rows, k_, 1, x, k_, panel, k_, 0, y + first, n_)
                               : dnnl_sgemm('N', 'N', m_, k_, rows, 1, x + first, n_, panel, k_, first == 0 ? 0 : 1, y, k_));
    }
    return failure.status("MatMulBnb4");
  }
  bool mayFail() const override { return false; }
  std::string implementation() const override { return "panels of float32, onednn sgemm"; }
  Determinism determinism() const override { return libraryOrder(); }

 private:
  // Elements first … first + K of the matrix.
  void expand(const std::uint8_t* packed, const float* absmax, std::int64_t first, float* to) const {
    for (std::int64_t i = 0; i < k_;) {
      const std::int64_t at = first + i, end = std::min(k_, i + block_ - at % block_);
      const float scale = absmax[at / block_];
      for (; i < end; ++i) to[i] = table_[fourBitCode(packed, first + i)] * scale;
    }
  }

  std::int64_t n_, k_, block_;
  bool transposed_;
  const FourBitTable& table_;
  std::int64_t rows_, m_;
  int threads_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeMatMulBnb4(const KernelSpec& spec) {
  if (!takes(spec.inputs[0]) || spec.inputs[1].dtype != DType::kU8 || !takes(spec.inputs[2]) || !takes(spec.outputs[0]))
    return notTaken(spec, "elements other than float32");
  return std::make_unique<FourBitProduct>(spec);
}

}  // namespace stepscope::cpu
