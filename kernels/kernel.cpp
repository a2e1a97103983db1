#include "kernels/kernel.h"

#include <unordered_map>

namespace stepscope {
namespace {

using Table = std::unordered_map<std::string, KernelFactory>;

std::string keyOf(std::string_view domain, std::string_view op) {
  std::string key(domain);
  key += '\n';
  key += op;
  return key;
}

Table makeTable(std::span<const KernelEntry> entries) {
  Table table;
  for (const KernelEntry& entry : entries) table.emplace(keyOf(entry.domain, entry.op), entry.make);
  return table;
}

KernelFactory find(Backend backend, std::string_view domain, std::string_view op) {
  static const Table reference = makeTable(referenceKernels());
  static const Table cpu = makeTable(cpuKernels());
  const Table& table = backend == Backend::kCpu ? cpu : reference;
  const auto it = table.find(keyOf(domain, op));
  return it == table.end() ? nullptr : it->second;
}

class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(KernelSpec spec, ReferenceFunction function, std::string implementation)
      : spec_(std::move(spec)), function_(function), implementation_(std::move(implementation)) {}
  Status run(const KernelCall& call) override { return function_(spec_, call); }
  std::string implementation() const override { return implementation_; }

 private:
  KernelSpec spec_;
  ReferenceFunction function_;
  std::string implementation_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeKernel(Backend backend, const KernelSpec& spec) {
  if (backend == Backend::kCpu) {
    if (const KernelFactory make = find(Backend::kCpu, spec.domain, spec.op)) {
      auto kernel = make(spec);
      if (kernel || kernel.error().code != ErrorCode::kUnsupported) return kernel;
    }
  }
  if (const KernelFactory make = find(Backend::kReference, spec.domain, spec.op)) return make(spec);
  return unsupported("kernel for '" + (spec.domain.empty() ? spec.op : spec.domain + "." + spec.op) + "': none in this build");
}

bool hasKernel(Backend backend, std::string_view domain, std::string_view op) {
  if (backend == Backend::kCpu && find(Backend::kCpu, domain, op) != nullptr) return true;
  return find(Backend::kReference, domain, op) != nullptr;
}

std::unique_ptr<Kernel> makeFunctionKernel(const KernelSpec& spec, ReferenceFunction function, std::string implementation) {
  return std::make_unique<FunctionKernel>(spec, function, std::move(implementation));
}

}  // namespace stepscope
