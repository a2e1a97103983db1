// A chain of elementwise steps, each done by the reference kernel of its op.
#include <algorithm>
#include <array>

#include "kernels/pointwise_program.h"
#include "kernels/reference/elementwise/families.h"
#include "kernels/strided_view.h"

namespace stepscope::reference {
namespace {

// The op that does a step, where it is not the public one of the step's name.
KernelSpec chainStepOp(PointwiseOp step) {
  KernelSpec one;
  one.op = std::string(infoOf(step).name);
  const bool gradient = step == PointwiseOp::kGeluGrad || step == PointwiseOp::kGeluTanhGrad;
  if (gradient || step == PointwiseOp::kReluGrad) one.domain = "stepscope";
  if (gradient) one.op = "GeluGrad";
  if (step == PointwiseOp::kGeluTanh) one.op = "Gelu";
  if (step == PointwiseOp::kGeluTanh || step == PointwiseOp::kGeluTanhGrad)
    one.attrs.set("approximate", std::string("tanh"));
  return one;
}

// The low type that a step rounds to; nothing for others.
std::optional<DType> chainRounding(PointwiseOp step) {
  if (step == PointwiseOp::kToBFloat16) return DType::kBF16;
  return step == PointwiseOp::kToFloat16 ? std::optional(DType::kF16) : std::nullopt;
}

Result<Tensor> chainConverted(const TensorView& from, DType to) {
  KernelSpec cast;
  cast.op = "Cast";
  cast.attrs.set("to", static_cast<std::int64_t>(to));
  cast.inputs = {{from.dtype, from.dims, false, {}}};
  cast.outputs = {{to, from.dims, false, {}}};
  SS_ASSIGN(const auto kernel, makeKernel(Backend::kReference, cast));
  Tensor result(to, from.dims);
  std::vector<TensorView> inputs{from}, outputs{result.view()};
  SS_TRY(kernel->run({inputs, outputs, {}, {}, {}}));
  return result;
}

// The elements of a view side by side.
Tensor chainOperand(const TensorView& from, const StridedView& view) {
  Tensor copy(from.dtype, view.dims);
  const std::size_t size = dtypeSize(from.dtype);
  const auto* elements = static_cast<const std::byte*>(from.data);
  for (std::int64_t i = 0; i < copy.elements(); ++i) {
    std::int64_t at = view.offset, rest = i;
    for (std::size_t axis = view.dims.size(); axis-- > 0; rest /= view.dims[axis])
      at += rest % view.dims[axis] * view.strides[axis];
    std::copy_n(elements + static_cast<std::size_t>(at) * size, size,
                static_cast<std::byte*>(copy.data()) + static_cast<std::size_t>(i) * size);
  }
  return copy;
}

Status pointwise(const KernelSpec& spec, const KernelCall& call) {
  std::vector<bool> masks;
  std::vector<TensorView> values(call.inputs.begin(), call.inputs.end());
  const DType wide = isLow(spec.outputs[0].dtype) ? DType::kF32 : spec.outputs[0].dtype;
  std::vector<Tensor> results, copies;
  copies.reserve(2 * values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!seesView(spec.domain, spec.op, i, spec.attrs)) continue;
    SS_ASSIGN(const StridedView view, seenOperand(spec.domain, spec.op, i, values[i].dims, spec.attrs));
    copies.push_back(chainOperand(values[i], view));
    values[i] = copies.back().view();
  }
  for (TensorView& view : values) {
    masks.push_back(view.dtype == DType::kBool);
    if (masks.back() || view.dtype == wide) continue;
    SS_ASSIGN(Tensor copy, chainConverted(view, wide));
    copies.push_back(std::move(copy));
    view = copies.back().view();
  }
  SS_ASSIGN(const PointwiseProgram program, PointwiseProgram::of(spec.attrs, masks));
  for (const PointwiseStep& step : program.steps) {
    const PointwiseOpInfo& info = infoOf(step.op);
    KernelSpec one = chainStepOp(step.op);
    std::vector<TensorView> inputs;
    Dims dims;
    for (std::size_t i = 0; i < info.arity; ++i) {
      inputs.push_back(values[step.operands[i]]);
      one.inputs.push_back({inputs.back().dtype, inputs.back().dims, false, {}});
      SS_ASSIGN(dims, broadcastDims(dims, inputs.back().dims));
    }
    const bool last = results.size() + 1 == program.steps.size();
    const DType dtype = info.mask ? DType::kBool : wide;
    if (last && dims != call.outputs[0].dims)
      return invalid("Pointwise: steps give " + dimsText(dims) + "; expected " + dimsText(call.outputs[0].dims));
    if (const auto low = chainRounding(step.op); low || step.op == PointwiseOp::kFromMask) {
      SS_ASSIGN(const Tensor rounded, chainConverted(inputs[0], low.value_or(wide)));
      SS_ASSIGN(Tensor widened, chainConverted(rounded.view(), wide));
      results.push_back(std::move(widened));
      values.push_back(results.back().view());
      continue;
    }
    // Also the last one goes through memory of its own: the output may be the memory of an input.
    results.emplace_back(dtype, dims);
    one.outputs.push_back({dtype, dims, false, {}});
    SS_ASSIGN(const auto kernel, makeKernel(Backend::kReference, one));
    std::vector<TensorView> outputs{results.back().view()};
    std::vector<std::byte> workspace(kernel->workspaceBytes());
    SS_TRY(kernel->run({inputs, outputs, workspace, call.random, {}}));
    values.push_back(results.back().view());
  }
  SS_ASSIGN(const Tensor last, chainConverted(results.back().view(), spec.outputs[0].dtype));
  std::copy_n(static_cast<const std::byte*>(last.data()), last.bytes(), static_cast<std::byte*>(call.outputs[0].data));
  return {};
}

}  // namespace

std::span<const KernelEntry> pointwiseKernels() {
  static constexpr std::array<KernelEntry, 1> kernels{{{"stepscope", "Pointwise", reading<1, pointwise>}}};
  return kernels;
}

}  // namespace stepscope::reference
