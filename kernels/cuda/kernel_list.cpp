#include "kernels/converted_kernel.h"
#include "kernels/cuda/support.h"
#include "kernels/emulated_device.h"

namespace stepscope {

namespace cuda {
Result<std::unique_ptr<Kernel>> makeDropoutPart(const KernelSpec& spec);  // kernels/cuda/dropout.cu
}

std::span<const KernelEntry> cudaKernels() {
  using namespace cuda;
  static constexpr KernelEntry kEntries[] = {
#define SS_KERNEL(domain, op, make, file) {domain, op, make},
#define SS_TABLE  // of a small build: those of its list
#include "kernels/cuda/kernels.inc"
#undef SS_TABLE
#undef SS_KERNEL
      {"stepscope", "DropoutPart", makeDropoutPart},
  };
  return kEntries;
}

namespace {

bool hasKernel(const KernelSpec& spec) {
  const auto plain = [](const OperandSpec& operand) { return operand.layout == Layout::kPlain; };
  if (!std::ranges::all_of(spec.inputs, plain) || !std::ranges::all_of(spec.outputs, plain)) return false;
  return std::ranges::any_of(cudaKernels(), [&](const KernelEntry& entry) {
    return entry.domain == spec.domain && entry.op == spec.op && entry.make(spec).has_value();
  });
}

}  // namespace

bool cudaTakes(const KernelSpec& spec) { return hasKernel(spec) || (canBeConverted(spec) && hasKernel(widened(spec))); }

}  // namespace stepscope
