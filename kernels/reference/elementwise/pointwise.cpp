// A chain of elementwise steps, each done by the reference kernel of its op.
#include <algorithm>
#include <array>

#include "kernels/pointwise_program.h"
#include "kernels/reference/elementwise/families.h"

namespace stepscope::reference {
namespace {

Status pointwise(const KernelSpec& spec, const KernelCall& call) {
  std::vector<bool> masks;
  std::vector<TensorView> values(call.inputs.begin(), call.inputs.end());
  for (const TensorView& view : values) masks.push_back(view.dtype == DType::kBool);
  SS_ASSIGN(const PointwiseProgram program, PointwiseProgram::of(spec.attrs, masks));
  std::vector<Tensor> results;
  for (const PointwiseStep& step : program.steps) {
    const PointwiseOpInfo& info = infoOf(step.op);
    KernelSpec one;
    one.op = std::string(info.name);
    std::vector<TensorView> inputs;
    Dims dims;
    for (std::size_t i = 0; i < info.arity; ++i) {
      inputs.push_back(values[step.operands[i]]);
      one.inputs.push_back({inputs.back().dtype, inputs.back().dims, false, {}});
      SS_ASSIGN(dims, broadcastDims(dims, inputs.back().dims));
    }
    const bool last = results.size() + 1 == program.steps.size();
    const DType dtype = info.mask ? DType::kBool : spec.outputs[0].dtype;
    if (last && dims != call.outputs[0].dims)
      return invalid("Pointwise: steps give " + dimsText(dims) + "; expected " + dimsText(call.outputs[0].dims));
    // Also the last one goes through memory of its own: the output may be the memory of an input.
    results.emplace_back(dtype, dims);
    one.outputs.push_back({dtype, dims, false, {}});
    SS_ASSIGN(const auto kernel, makeKernel(Backend::kReference, one));
    std::vector<TensorView> outputs{results.back().view()};
    std::vector<std::byte> workspace(kernel->workspaceBytes());
    SS_TRY(kernel->run({inputs, outputs, workspace, call.random, {}}));
    values.push_back(results.back().view());
  }
  std::copy_n(static_cast<const std::byte*>(results.back().data()), results.back().bytes(),
              static_cast<std::byte*>(call.outputs[0].data));
  return {};
}

}  // namespace

std::span<const KernelEntry> pointwiseKernels() {
  static constexpr std::array<KernelEntry, 1> kernels{{{"stepscope", "Pointwise", reading<1, pointwise>}}};
  return kernels;
}

}  // namespace stepscope::reference
