#include "kernels/converted_kernel.h"

#include <algorithm>
#include <array>

#include "kernels/kernel_registry.h"

namespace stepscope {
namespace {

class ConvertedKernel final : public Kernel {
 public:
  explicit ConvertedKernel(std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {}

  // onHost: it is not where the other operands are.
  Status add(const KernelRegistry& kernels, std::string_view device, const OperandSpec& operand, int threads, bool isInput,
             bool onHost) {
    Operand& added = (isInput ? inputs_ : outputs_).emplace_back();
    if (!isLow(operand.dtype)) return {};
    if (onHost) {
      added.host = Tensor(DType::kF32, operand.dims);
      return {};
    }
    KernelSpec cast;
    cast.op = "Cast";
    cast.threads = threads;
    OperandSpec wide{.dtype = DType::kF32, .dims = operand.dims}, low{.dtype = operand.dtype, .dims = operand.dims};
    cast.inputs = {isInput ? low : wide};
    cast.outputs = {isInput ? wide : low};
    cast.attrs.set("to", static_cast<std::int64_t>(cast.outputs[0].dtype));
    SS_ASSIGN(added.cast, kernels.make(device, cast));
    added.offset = copies_;
    copies_ += (static_cast<std::size_t>(elementCount(operand.dims)) * sizeof(float) + 63) / 64 * 64;
    return {};
  }
  void finish() {
    wideInputs_.resize(inputs_.size());
    wideOutputs_.resize(outputs_.size());
  }

  std::size_t workspaceBytes() const override { return copies_ + inner_->workspaceBytes(); }

  Status run(const KernelCall& call) override {
    const auto wideOf = [&](TensorView view, const Operand& operand) {
      if (operand.cast) {
        view.dtype = DType::kF32;
        view.data = call.workspace.data() + operand.offset;
      }
      return view;
    };
    const auto convert = [&](Kernel& cast, const TensorView& from, TensorView to) {
      return cast.run({std::span(&from, 1), std::span(&to, 1), {}, call.random, call.stream, {}});
    };
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].host.valid()) {
        wideInputs_[i] = inputs_[i].host.view();
        for (std::int64_t e = 0; e < wideInputs_[i].elements(); ++e)
          storeElement(wideInputs_[i], e, elementAsDouble(call.inputs[i], e));
        continue;
      }
      wideInputs_[i] = wideOf(call.inputs[i], inputs_[i]);
      if (inputs_[i].cast) SS_TRY(convert(*inputs_[i].cast, call.inputs[i], wideInputs_[i]));
    }
    for (std::size_t o = 0; o < outputs_.size(); ++o) wideOutputs_[o] = wideOf(call.outputs[o], outputs_[o]);
    SS_TRY(
        inner_->run({wideInputs_, wideOutputs_, call.workspace.subspan(copies_), call.random, call.stream, call.allocate}));
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      if (outputs_[o].cast) SS_TRY(convert(*outputs_[o].cast, wideOutputs_[o], call.outputs[o]));
    return {};
  }
  bool mayFail() const override { return inner_->mayFail(); }
  std::string implementation() const override { return inner_->implementation() + " in float32"; }
  Determinism determinism() const override { return inner_->determinism(); }

 private:
  struct Operand {
    std::unique_ptr<Kernel> cast;  // null: it is used as it is, or converted here
    std::size_t offset = 0;        // of the copy in the workspace
    Tensor host;                   // the copy of an operand that a kernel of a device reads on the host
  };
  std::unique_ptr<Kernel> inner_;
  std::vector<Operand> inputs_, outputs_;
  std::size_t copies_ = 0;  // bytes
  std::vector<TensorView> wideInputs_, wideOutputs_;
};

}  // namespace

bool canBeConverted(const KernelSpec& spec) {
  if (spec.op == "Cast" || spec.op == "CastLike") return false;
  bool low = false;
  for (const auto* operands : {&spec.inputs, &spec.outputs})
    for (const OperandSpec& operand : *operands) {
      if (operand.dynamic) return false;
      low |= isLow(operand.dtype);
    }
  return low;
}

KernelSpec widened(const KernelSpec& spec) {
  KernelSpec wide = spec;
  for (auto* operands : {&wide.inputs, &wide.outputs})
    for (OperandSpec& operand : *operands) {
      if (!isLow(operand.dtype)) continue;
      operand.dtype = DType::kF32;
      if (operand.constant.valid()) operand.constant = convertTensor(operand.constant.view(), DType::kF32);
    }
  return wide;
}

Result<std::unique_ptr<Kernel>> makeConvertedKernel(const KernelRegistry& kernels, std::string_view device, KernelSpec spec,
                                                    std::unique_ptr<Kernel> inner) {
  auto made = std::make_unique<ConvertedKernel>(std::move(inner));
  const auto onDevice = [](const OperandSpec& operand) { return operand.space == Space::kDevice; };
  const bool apart = std::ranges::any_of(spec.inputs, onDevice);
  for (const OperandSpec& input : spec.inputs)
    SS_TRY(made->add(kernels, device, input, spec.threads, true, apart && !onDevice(input)));
  for (const OperandSpec& output : spec.outputs) SS_TRY(made->add(kernels, device, output, spec.threads, false, false));
  made->finish();
  return made;
}

}  // namespace stepscope
