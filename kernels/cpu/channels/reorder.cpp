#include "kernels/cpu/channels/channels.h"

namespace stepscope::cpu {
namespace {

class ReorderKernel final : public Kernel {
 public:
  explicit ReorderKernel(const KernelSpec& spec)
      : from_(spec.inputs[0]), to_(spec.outputs[0].layout), threads_(spec.threads) {}
  Status run(const KernelCall& call) override {
    reorderLayout(call.inputs[0].data, from_.layout, call.outputs[0].data, to_, from_.dtype, from_.dims, threads_);
    return {};
  }
  std::string implementation() const override {
    return std::string(layoutName(from_.layout)) + " to " + std::string(layoutName(to_));
  }
  Determinism determinism() const override { return Determinism::fixed(); }

 private:
  OperandSpec from_;
  Layout to_;
  int threads_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeReorder(const KernelSpec& spec) {
  const OperandSpec &x = spec.inputs[0], &y = spec.outputs[0];
  if (x.dtype != y.dtype || x.dims != y.dims || !layoutRefusal(x.dtype, x.dims).empty())
    return unsupported("Reorder: a copy; falls back to the reference kernel");
  return std::make_unique<ReorderKernel>(spec);
}

}  // namespace stepscope::cpu
