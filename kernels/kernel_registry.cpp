#include "kernels/kernel_registry.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "kernels/channel_vector.h"
#include "kernels/converted_kernel.h"
#include "kernels/emulated_device.h"
#include "kernels/slab_kernel.h"

namespace stepscope {
namespace {

std::string keyOf(std::string_view domain, std::string_view op) {
  std::string key;
  key.reserve(domain.size() + op.size() + 1);
  key.append(domain) += '\n';
  return key.append(op);
}

std::string labelOf(std::string_view domain, std::string_view op) {
  return "kernel for '" + std::string(domain) + (domain.empty() ? "" : ".") + std::string(op) + "'";
}

// What KernelEntry::dtypes is about.
DTypeMask dtypeOf(const KernelSpec& spec) {
  for (const auto* operands : {&spec.inputs, &spec.outputs})
    for (const OperandSpec& operand : *operands)
      if (operand.present()) return dtypeBit(operand.dtype);
  return kAnyDType;
}

bool isPlain(const OperandSpec& operand) { return operand.layout == Layout::kPlain; }

bool allPlain(const KernelSpec& spec) {
  return std::all_of(spec.inputs.begin(), spec.inputs.end(), isPlain) &&
         std::all_of(spec.outputs.begin(), spec.outputs.end(), isPlain);
}

// Whether the list entry takes operands that lie like these.
bool takesLayouts(const KernelEntry& entry, const KernelSpec& spec, bool plain) {
  if (plain || entry.channelsLast) return true;
  const auto last = [](const OperandSpec& operand) { return operand.layout == Layout::kChannelsLast; };
  return entry.layouts && std::none_of(spec.inputs.begin(), spec.inputs.end(), last) &&
         std::none_of(spec.outputs.begin(), spec.outputs.end(), last);
}

// A kernel for operands in other layouts, with copies in its workspace of those that lie otherwise.
class ReorderedKernel final : public Kernel {
 public:
  ReorderedKernel(KernelSpec spec, const KernelSpec& wanted, std::unique_ptr<Kernel> inner)
      : spec_(std::move(spec)), inner_(std::move(inner)) {
    for (const auto* operands : {&wanted.inputs, &wanted.outputs})
      for (const OperandSpec& operand : *operands) wanted_.push_back(operand.layout);
    for (auto* operands : {&spec_.inputs, &spec_.outputs})
      for (const OperandSpec& operand : *operands) {
        offsets_.push_back(copies_);
        if (operand.layout != wanted_[offsets_.size() - 1])
          copies_ += (static_cast<std::size_t>(elementCount(operand.dims)) * dtypeSize(operand.dtype) + 63) / 64 * 64;
      }
    inputs_.resize(spec_.inputs.size());
    outputs_.resize(spec_.outputs.size());
  }
  std::size_t workspaceBytes() const override { return copies_ + inner_->workspaceBytes(); }

  Status run(const KernelCall& call) override {
    const auto copyOf = [&](TensorView view, const OperandSpec& operand, std::size_t k) {
      if (operand.layout != wanted_[k]) view.data = call.workspace.data() + offsets_[k];
      return view;
    };
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const OperandSpec& operand = spec_.inputs[i];
      inputs_[i] = copyOf(call.inputs[i], operand, i);
      if (operand.layout != wanted_[i])
        reorderLayout(call.inputs[i].data, operand.layout, inputs_[i].data, wanted_[i], operand.dtype, operand.dims,
                      spec_.threads);
    }
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      outputs_[o] = copyOf(call.outputs[o], spec_.outputs[o], inputs_.size() + o);
    const KernelCall inner{inputs_, outputs_, call.workspace.subspan(copies_), call.random, call.stream, {}};
    SS_TRY(inner_->run(inner));
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      const OperandSpec& operand = spec_.outputs[o];
      const Layout made = wanted_[inputs_.size() + o];
      if (operand.layout != made)
        reorderLayout(outputs_[o].data, made, call.outputs[o].data, operand.layout, operand.dtype, operand.dims,
                      spec_.threads);
    }
    return {};
  }
  bool mayFail() const override { return inner_->mayFail(); }
  std::string implementation() const override { return inner_->implementation() + " between reorders"; }
  Determinism determinism() const override { return inner_->determinism(); }

 private:
  KernelSpec spec_;
  std::unique_ptr<Kernel> inner_;
  std::vector<Layout> wanted_;        // by the inner kernel, inputs first
  std::vector<std::size_t> offsets_;  // of the copies, inputs first
  std::size_t copies_ = 0;            // bytes
  std::vector<TensorView> inputs_, outputs_;
};

// The spec with `layout` for the operands that are not plain.
KernelSpec relaid(const KernelSpec& spec, Layout layout) {
  KernelSpec other = spec;
  for (auto* operands : {&other.inputs, &other.outputs})
    for (OperandSpec& operand : *operands)
      if (!isPlain(operand)) operand.layout = layout;
  return other;
}

// Operands that all lie alike, or are one element, as vectors: what computes element by element does not care where they
// lie. The spec itself when they are plain; nothing when they are mixed.
std::optional<KernelSpec> withoutLayouts(const KernelSpec& spec) {
  if (allPlain(spec)) return spec;
  KernelSpec flat = spec;
  const OperandSpec& y = spec.outputs[0];
  if (isPlain(y)) return std::nullopt;
  const std::int64_t channels = y.dims[1];
  for (auto* operands : {&flat.inputs, &flat.outputs})
    for (OperandSpec& operand : *operands) {
      if (!operand.present() || elementCount(operand.dims) == 1) continue;
      if (operand.dims == y.dims && operand.layout == y.layout)
        operand.dims = {elementCount(operand.dims) / channels, channels};
      else if (y.layout == Layout::kChannelsLast && isPlain(operand) && elementCount(operand.dims) == channels &&
               isChannelVector(operand.dims, y.dims))
        operand.dims = {channels};
      else
        return std::nullopt;
      operand.layout = Layout::kPlain;
    }
  return flat;
}

}  // namespace

std::string_view deviceName(Backend backend) { return backend == Backend::kCpu ? "cpu" : kReferenceDevice; }

Status KernelRegistry::add(std::string_view device, std::span<const KernelEntry> entries) {
  Table& table = byDevice_.try_emplace(std::string(device)).first->second;
  for (const KernelEntry& entry : entries) {
    const auto error = [&](const std::string& what) {
      return invalid(labelOf(entry.domain, entry.op) + " of device '" + std::string(device) + "': found " + what);
    };
    if (entry.op.empty() || entry.make == nullptr) return error("no op or no factory; expected both");
    std::vector<std::size_t>& same = table[keyOf(entry.domain, entry.op)];
    for (const std::size_t other : same)
      if ((all_[other].entry.dtypes & entry.dtypes) != 0)
        return error("a second one for the same element types; expected one for each");
    same.push_back(all_.size());
    all_.push_back({std::string(device), entry});
  }
  return {};
}

const std::vector<std::size_t>* KernelRegistry::entriesOf(std::string_view device, std::string_view domain,
                                                          std::string_view op) const {
  const auto table = byDevice_.find(device);
  if (table == byDevice_.end()) return nullptr;
  const auto it = table->second.find(keyOf(domain, op));
  return it == table->second.end() ? nullptr : &it->second;
}

bool KernelRegistry::has(std::string_view device, std::string_view domain, std::string_view op) const {
  return entriesOf(device, domain, op) != nullptr;
}

// kUnsupported when the device has nothing for the spec.
Result<std::unique_ptr<Kernel>> KernelRegistry::makeOn(std::string_view device, const KernelSpec& spec, bool plain) const {
  if (const auto* entries = entriesOf(device, spec.domain, spec.op))
    for (const std::size_t i : *entries) {
      const KernelEntry& entry = all_[i].entry;
      if ((entry.dtypes & dtypeOf(spec)) == 0 || !takesLayouts(entry, spec, plain)) continue;
      if (entry.user == nullptr) return entry.make(spec);
      KernelSpec own = spec;
      own.user = entry.user;
      return entry.make(own);
    }
  return unsupported(labelOf(spec.domain, spec.op) + ": none in this build");
}

// kUnsupported when the work cannot be cut, or the device has nothing for a slab.
Result<std::unique_ptr<Kernel>> KernelRegistry::makeInSlabs(std::string_view device, const KernelSpec& spec) const {
  const auto refused = [&] { return unsupported(labelOf(spec.domain, spec.op) + ": none that works in slabs"); };
  const auto* entries = entriesOf(device, spec.domain, spec.op);
  if (entries == nullptr || entries->size() != 1) return refused();
  const IndependentParts parts = all_[entries->front()].entry.parts;
  if (parts == IndependentParts::kNone || (parts == IndependentParts::kRows && !allPlain(spec))) return refused();
  const auto flat = withoutLayouts(spec);
  const auto cut = flat ? slabCutOf(*flat, parts) : std::nullopt;
  if (!cut) return refused();
  return makeSlabKernel(*flat, *cut, [&](const KernelSpec& slab) { return makeOn(device, slab, true); });
}

Result<std::unique_ptr<Kernel>> KernelRegistry::make(std::string_view device, const KernelSpec& spec) const {
  const bool plain = allPlain(spec);
  if (device != kReferenceDevice) {
    auto kernel = makeOn(device, spec, plain);
    if (kernel || kernel.error().code != ErrorCode::kUnsupported) return kernel;
    if (canBeConverted(spec)) {
      auto slabs = makeInSlabs(device, spec);
      if (slabs || slabs.error().code != ErrorCode::kUnsupported) return slabs;
      auto inner = makeOn(device, widened(spec), plain);
      if (inner) return makeConvertedKernel(*this, device, spec, std::move(*inner));
      if (inner.error().code != ErrorCode::kUnsupported) return inner;
    }
  }
  if (plain) return makeOn(kReferenceDevice, spec, plain);
  // Sixteen channels that lie side by side are copied faster than single elements.
  const auto* entries = entriesOf(device, spec.domain, spec.op);
  const bool blocks =
      entries != nullptr && all_[entries->front()].entry.layouts && !takesLayouts(all_[entries->front()].entry, spec, plain);
  const KernelSpec wanted = relaid(spec, blocks ? Layout::kChannels16 : Layout::kPlain);
  SS_ASSIGN(auto inner, make(device, wanted));
  return std::make_unique<ReorderedKernel>(spec, wanted, std::move(inner));
}

const KernelRegistry& builtInKernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry made;
    SS_CHECK(made.add(kReferenceDevice, referenceKernels()));
    SS_CHECK(made.add("cpu", cpuKernels()));
    SS_CHECK(made.add("cuda", cudaKernels()));
    return made;
  }();
  return registry;
}

Result<std::unique_ptr<Kernel>> makeKernel(Backend backend, const KernelSpec& spec) {
  return builtInKernels().make(deviceName(backend), spec);
}

}  // namespace stepscope
