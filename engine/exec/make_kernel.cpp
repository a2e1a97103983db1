#include "engine/exec/make_kernel.h"

#include "kernels/fixed_parts.h"

namespace stepscope {

Result<MadeKernel> makeKernel(const KernelRegistry& kernels, std::string_view device, const KernelSpec& spec,
                              bool anyThreads) {
  const FixedParts scope(anyThreads);
  MadeKernel made;
  SS_ASSIGN(made.kernel, kernels.make(device, spec));
  made.determinism = made.kernel->determinism();
  if (!anyThreads || made.determinism.order != Determinism::Order::kThreadCount) return made;
  if (spec.threads > 1) {
    KernelSpec alone = spec;
    alone.threads = 1;
    SS_ASSIGN(made.kernel, kernels.make(device, alone));
  }
  made.determinism =
      Determinism::fixed("one thread, as deterministic=threads asks: its sums are cut by the number of threads");
  return made;
}

}  // namespace stepscope
