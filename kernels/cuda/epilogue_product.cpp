#include "kernels/cuda/epilogue_product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/converted_kernel.h"
#include "kernels/cuda/library_form.h"
#include "kernels/kernel_registry.h"
#include "kernels/matmul_shape.h"

namespace stepscope::cuda {
namespace {

using Made = std::unique_ptr<Kernel>;

// By the factory itself, so that a part never is a kernel of the host.
Result<Made> partOf(KernelFactory make, const KernelSpec& spec) {
  auto made = make(spec);
  if (made || made.error().code != ErrorCode::kUnsupported || !canBeConverted(spec)) return made;
  SS_ASSIGN(Made wide, make(widened(spec)));
  return makeConvertedKernel(builtInKernels(), "cuda", spec, std::move(wide));
}

class EpilogueProduct final : public Kernel {
 public:
  std::optional<LibraryForm> form;
  Made product, after, sum;
  bool slope = false;      // `after` multiplies by the slope at input 3
  std::size_t summed = 0;  // input of `sum`
  Dims sumDims;            // of what it writes

  std::size_t workspaceBytes() const override {
    std::size_t most = 0;
    for (const Made* part : {&product, &after, &sum}) most = std::max(most, *part ? (*part)->workspaceBytes() : 0);
    return most;
  }

  Status run(const KernelCall& call) override {
    if (form) {
      SS_ASSIGN(const bool done, runByLibrary(*form, call));
      if (done) return {};
    }
    // Gelu keeps what it is applied to where somebody reads that; else it works in place, as its slope does.
    const TensorView y = call.outputs[0], linear = after && !slope && call.outputPresent(1) ? call.outputs[1] : y;
    SS_TRY(launch(*product, call, call.inputs.first(std::min<std::size_t>(3, call.inputs.size())), linear));
    if (after && slope) SS_TRY(launch(*after, call, std::array{linear, call.inputs[3]}, y));
    if (after && !slope) SS_TRY(launch(*after, call, std::array{linear}, y));
    if (!sum) return {};
    TensorView sums = call.outputs[1];
    sums.dims = sumDims;
    return launch(*sum, call, call.inputs.subspan(summed, 1), sums);
  }
  std::string implementation() const override {
    return product->implementation() + (after ? slope ? ", slope of Gelu" : ", Gelu" : "") + (sum ? ", sums" : "") +
           (form ? "; by cuBLASLt at once where it can" : "");
  }
  Determinism determinism() const override { return product->determinism(); }

 private:
  static Status launch(Kernel& part, const KernelCall& call, std::span<const TensorView> inputs, const TensorView& output) {
    std::array outputs{output};
    return part.run({inputs, outputs, call.workspace, call.random, call.stream, {}});
  }
};

// A sum over the axis of a two-dimensional operand along which the product adds.
struct Summed {
  Dims result;
  bool possible = false;
};
Summed summedOf(const KernelSpec& spec, bool left) {
  const OperandSpec& operand = spec.inputs[left ? 0 : 1];
  if (operand.dims.size() != 2 || spec.attrs.has(left ? "viewA" : "viewB")) return {};
  Dims perm = spec.attrs.integers(left ? "permA" : "permB");
  if (perm.empty()) perm = {0, 1};
  const auto along = static_cast<std::size_t>(perm[left ? 1 : 0]);
  return {along == 0 ? Dims{operand.dims[1]} : Dims{operand.dims[0], 1}, true};
}

}  // namespace

Result<Made> makeProductWithEpilogue(const KernelSpec& spec, const EpilogueParts& parts) {
  const std::string activation = spec.attrs.text("activation", ""), sums = spec.attrs.text("sums", "");
  auto made = std::make_unique<EpilogueProduct>();
  made->form = libraryForm(spec);
  made->slope = activation == "GeluGrad";
  KernelSpec product = spec;
  product.op = "Product";
  product.attrs.erase("activation");
  product.attrs.erase("sums");
  product.inputs.resize(std::min<std::size_t>(3, spec.inputs.size()));
  product.outputs.resize(1);
  SS_ASSIGN(made->product, partOf(parts.product, product));
  if (!activation.empty()) {
    KernelSpec after;
    after.op = made->slope ? "GeluGrad" : "Gelu";
    if (made->slope) after.domain = "stepscope";
    after.attrs.set("approximate", std::string("tanh"));
    after.inputs = {spec.outputs[0]};
    after.inputs[0].constant = {};
    if (made->slope) {
      if (!spec.inputPresent(3)) return unsupported("EpilogueProduct: GeluGrad without input 3");
      after.inputs.push_back(spec.inputs[3]);
    }
    after.outputs = {spec.outputs[0]};
    after.threads = spec.threads;
    SS_ASSIGN(made->after, partOf(parts.elementwise, after));
  }
  if (!sums.empty()) {
    made->summed = sums == "a" ? 0 : 1;
    auto [result, possible] = summedOf(spec, sums == "a");
    if (!possible || !spec.outputPresent(1)) return unsupported("EpilogueProduct: sums of an operand that is no matrix");
    KernelSpec sum;
    sum.domain = "stepscope";
    sum.op = "ReduceToShape";
    sum.inputs = {spec.inputs[made->summed]};
    sum.outputs = {spec.outputs[1]};
    sum.outputs[0].dims = made->sumDims = std::move(result);
    sum.threads = spec.threads;
    SS_ASSIGN(made->sum, partOf(parts.reduce, sum));
  }
  return made;
}

}  // namespace stepscope::cuda
