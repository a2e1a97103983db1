#include "kernels/kernel.h"

#include <algorithm>
#include <unordered_map>

namespace stepscope {
namespace {

using Table = std::unordered_map<std::string, KernelEntry>;

std::string keyOf(std::string_view domain, std::string_view op) {
  std::string key(domain);
  key += '\n';
  key += op;
  return key;
}

Table makeTable(std::span<const KernelEntry> entries) {
  Table table;
  for (const KernelEntry& entry : entries) table.emplace(keyOf(entry.domain, entry.op), entry);
  return table;
}

const KernelEntry* find(Backend backend, std::string_view domain, std::string_view op) {
  static const Table reference = makeTable(referenceKernels());
  static const Table cpu = makeTable(cpuKernels());
  const Table& table = backend == Backend::kCpu ? cpu : reference;
  const auto it = table.find(keyOf(domain, op));
  return it == table.end() ? nullptr : &it->second;
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

bool isPlain(const OperandSpec& operand) { return operand.layout == Layout::kPlain; }

bool allPlain(const KernelSpec& spec) {
  return std::all_of(spec.inputs.begin(), spec.inputs.end(), isPlain) &&
         std::all_of(spec.outputs.begin(), spec.outputs.end(), isPlain);
}

// A kernel for plain operands, with plain copies of those that are not in its workspace.
class ReorderedKernel final : public Kernel {
 public:
  ReorderedKernel(KernelSpec spec, std::unique_ptr<Kernel> inner) : spec_(std::move(spec)), inner_(std::move(inner)) {
    for (auto* operands : {&spec_.inputs, &spec_.outputs})
      for (const OperandSpec& operand : *operands) {
        offsets_.push_back(copies_);
        if (!isPlain(operand))
          copies_ += (static_cast<std::size_t>(elementCount(operand.dims)) * dtypeSize(operand.dtype) + 63) / 64 * 64;
      }
    inputs_.resize(spec_.inputs.size());
    outputs_.resize(spec_.outputs.size());
  }
  std::size_t workspaceBytes() const override { return copies_ + inner_->workspaceBytes(); }

  Status run(const KernelCall& call) override {
    const auto copyOf = [&](TensorView view, const OperandSpec& operand, std::size_t k) {
      if (!isPlain(operand)) view.data = call.workspace.data() + offsets_[k];
      return view;
    };
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const OperandSpec& operand = spec_.inputs[i];
      inputs_[i] = copyOf(call.inputs[i], operand, i);
      if (!isPlain(operand))
        reorderLayout(call.inputs[i].data, operand.layout, inputs_[i].data, Layout::kPlain, operand.dtype, operand.dims);
    }
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      outputs_[o] = copyOf(call.outputs[o], spec_.outputs[o], inputs_.size() + o);
    const KernelCall inner{inputs_, outputs_, call.workspace.subspan(copies_), call.random, {}};
    SS_TRY(inner_->run(inner));
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      const OperandSpec& operand = spec_.outputs[o];
      if (!isPlain(operand))
        reorderLayout(outputs_[o].data, Layout::kPlain, call.outputs[o].data, operand.layout, operand.dtype, operand.dims);
    }
    return {};
  }
  std::string implementation() const override { return inner_->implementation() + " between reorders"; }

 private:
  KernelSpec spec_;
  std::unique_ptr<Kernel> inner_;
  std::vector<std::size_t> offsets_;  // of the copies, inputs first
  std::size_t copies_ = 0;            // bytes
  std::vector<TensorView> inputs_, outputs_;
};

Result<std::unique_ptr<Kernel>> makeReordered(Backend backend, const KernelSpec& spec) {
  KernelSpec plain = spec;
  for (auto* operands : {&plain.inputs, &plain.outputs})
    for (OperandSpec& operand : *operands) operand.layout = Layout::kPlain;
  SS_ASSIGN(auto inner, makeKernel(backend, plain));
  return std::make_unique<ReorderedKernel>(spec, std::move(inner));
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeKernel(Backend backend, const KernelSpec& spec) {
  const bool plain = allPlain(spec);
  if (backend == Backend::kCpu) {
    if (const KernelEntry* entry = find(Backend::kCpu, spec.domain, spec.op);
        entry != nullptr && (plain || entry->layouts)) {
      auto kernel = entry->make(spec);
      if (kernel || kernel.error().code != ErrorCode::kUnsupported) return kernel;
    }
  }
  if (!plain) return makeReordered(backend, spec);
  if (const KernelEntry* entry = find(Backend::kReference, spec.domain, spec.op)) return entry->make(spec);
  return unsupported("kernel for '" + (spec.domain.empty() ? spec.op : spec.domain + "." + spec.op) +
                     "': none in this build");
}

bool hasKernel(Backend backend, std::string_view domain, std::string_view op) {
  if (backend == Backend::kCpu && find(Backend::kCpu, domain, op) != nullptr) return true;
  return find(Backend::kReference, domain, op) != nullptr;
}

std::unique_ptr<Kernel> makeFunctionKernel(const KernelSpec& spec, ReferenceFunction function, std::string implementation) {
  return std::make_unique<FunctionKernel>(spec, function, std::move(implementation));
}

}  // namespace stepscope
