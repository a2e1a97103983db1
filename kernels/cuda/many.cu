// Sum of more tensors than a chain of elementwise steps takes, as clipping adds up the squares of all gradients: up to
// kMembers of them in one launch, in their order.
#include "kernels/cuda/support.h"
#include "kernels/pointwise_program.h"

namespace stepscope::cuda {
inline namespace many_cu {

constexpr int kMembers = 64;

struct Members {
  int count = 0;
  Global<const float> member[kMembers];
};

// y[total] = (adds ? y : 0) + the members.
SS_GLOBAL void sumMembers(Members members, Global<float> y, bool adds, std::int64_t total) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= total) return;
  float sum = 0;
  if (adds) sum = y[i];
  for (int k = 0; k < members.count; ++k)
    sum = k == 0 && !adds ? static_cast<float>(members.member[k][i]) : sum + members.member[k][i];
  y[i] = sum;
}

}  // namespace many_cu

Result<std::unique_ptr<Kernel>> makeSum(const KernelSpec& spec) {
  const std::size_t inputs = spec.inputs.size();
  if (inputs <= kMostPointwiseInputs) return makeElementwise(spec);
  if (!takesOutput(spec, 0)) return notTaken(spec, "a result other than float32");
  const std::int64_t total = elementCount(spec.outputs[0].dims);
  for (std::size_t i = 0; i < inputs; ++i)
    if (!takesInput(spec, i) || elementCount(spec.inputs[i].dims) != total)
      return notTaken(spec, "many operands that are no float32 of one size");
  return makeLaunched("sum of " + std::to_string(inputs), [=](Launcher& gpu) -> Status {
    for (std::size_t first = 0; first < inputs; first += kMembers) {
      Members members;
      for (std::size_t i = first; i < std::min(inputs, first + kMembers); ++i)
        members.member[members.count++] = gpu.in<float>(i);
      SS_TRY(gpu.run("sum of many", gpu::function<sumMembers>, blocksFor(total), kThreads, members,
                     gpu.out<float>(0, first == 0 ? Access::kWrite : Access::kReadWrite), first != 0, total));
    }
    return {};
  });
}

}  // namespace stepscope::cuda
