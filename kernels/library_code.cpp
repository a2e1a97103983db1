#include "kernels/library_code.h"

#include "kernels/converted_kernel.h"
#include "kernels/device.h"
#include "kernels/kernel_registry.h"

namespace stepscope {

constinit thread_local LibraryLaunches* libraryLaunches = nullptr;

namespace {

std::string whyNot(const KernelEntry& entry, const LibraryLaunches& device, const KernelSpec& spec) {
  KernelSpec own = spec;
  own.user = entry.user;
  const auto kernel = entry.make(own);
  if (!kernel) return kernel.error().code == ErrorCode::kUnsupported ? kernel.error().message : "";
  const auto* const library = dynamic_cast<const LibraryKernel*>(kernel->get());
  return library ? device.whyNot(library->code(), spec.op) : "its kernel has no code for a device";
}

DTypeMask firstType(const KernelSpec& spec) {
  for (const auto* operands : {&spec.inputs, &spec.outputs})
    for (const OperandSpec& operand : *operands)
      if (operand.present()) return dtypeBit(operand.dtype);
  return kAnyDType;
}

}  // namespace

std::optional<std::string> whyNotByLibrary(const KernelRegistry& kernels, const Device& device, const KernelSpec& spec) {
  const auto* const launches = dynamic_cast<const LibraryLaunches*>(&device);
  if (launches == nullptr || !kernels.has(device.facts().kernels, spec.domain, spec.op)) return std::nullopt;
  std::optional<std::string> found;
  for (const KernelRegistry::Listed& listed : kernels.all()) {
    const KernelEntry& entry = listed.entry;
    if (listed.device != device.facts().kernels || entry.user == nullptr || entry.domain != spec.domain ||
        entry.op != spec.op)
      continue;
    const auto ask = [&](const KernelSpec& asked) {
      if ((entry.dtypes & firstType(asked)) == 0 || (found && found->empty())) return;
      found = whyNot(entry, *launches, asked);
    };
    ask(spec);
    if (canBeConverted(spec)) ask(widened(spec));
  }
  return found;
}

}  // namespace stepscope
