// stepscope.Pointwise: a chain of steps, block by block.
#include <string>

#include "kernels/cpu/loops/chain.h"
#include "kernels/cpu/loops/lanes_last.h"

namespace stepscope::cpu {
namespace {

class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(Chain chain, std::int64_t total, int threads)
      : chain_(std::move(chain)),
        rows_(total / chain_.inner()),
        threads_(threadsForElements(total * static_cast<std::int64_t>(chain_.steps()), threads)) {}

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(threads_) * chain_.slots() * kChainBlock * sizeof(float);
  }

  Status run(const KernelCall& call) override {
    const std::int64_t inner = chain_.inner(), perRow = (inner + kChainBlock - 1) / kChainBlock, blocks = rows_ * perRow;
    auto* scratch = reinterpret_cast<float*>(call.workspace.data());
#pragma omp parallel num_threads(threads_) if (threads_ > 1)
    {
      float* own = scratch + static_cast<std::size_t>(omp_get_thread_num()) * chain_.slots() * kChainBlock;
      chain_.prepare(call, own);
#pragma omp for schedule(static)
      for (std::int64_t block = 0; block < blocks; ++block) {
        const std::int64_t row = block / perRow, column = block % perRow * kChainBlock;
        chain_.run(call, own, row, column, std::min(kChainBlock, inner - column), output(call, 0) + row * inner + column);
      }
    }
    return {};
  }
  bool mayFail() const override { return false; }
  bool keepsNothing() const override { return true; }
  std::string implementation() const override { return "vector loop, " + std::to_string(chain_.steps()) + " steps"; }
  Determinism determinism() const override { return Determinism::fixed(); }

 private:
  Chain chain_;
  std::int64_t rows_;
  int threads_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makePointwise(const KernelSpec& spec) {
  if (!takesOutput(spec, 0)) return notTaken(spec, "a result that is empty or no float32");
  // Low types come in slabs (kernels/slab_kernel.h).
  for (const OperandSpec& operand : spec.inputs)
    if (operand.dtype != DType::kBool && operand.dtype != DType::kF32)
      return notTaken(spec, "an operand that is no float32");
  SS_ASSIGN(Chain chain, Chain::of(spec, spec.outputs[0], 0));
  return std::make_unique<PointwiseKernel>(std::move(chain), elementCount(spec.outputs[0].dims), spec.threads);
}

}  // namespace stepscope::cpu
