#include "kernels/reference/linear/conv_loops.h"
#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/quantize.h"

namespace stepscope::reference {
namespace {

bool isByte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

}  // namespace

Status convInteger(const KernelSpec& spec, const KernelCall& call) {
  if (!isByte(spec.inputs[0].dtype) || !isByte(spec.inputs[1].dtype))
    return unsupported("ConvInteger: expected int8 or uint8");
  SS_ASSIGN(const ConvGeometry g, convGeometry(spec.attrs, call.inputs[0].dims, call.inputs[1].dims, call.outputs[0].dims));
  SS_ASSIGN(const PerAxis xZero, PerAxis::read(call, 2, 1, 0));
  SS_ASSIGN(const PerAxis wZero, PerAxis::read(call, 3, g.outChannels, 0));
  const double zero = xZero[0];
  auto* y = static_cast<std::int32_t*>(call.outputs[0].data);
  convForward(
      g, [&](std::int64_t i) { return elementAsDouble(call.inputs[0], i) - zero; },
      [&](std::int64_t i, std::int64_t m) { return elementAsDouble(call.inputs[1], i) - wZero[m]; },
      [&](std::int64_t i, std::int64_t, double sum) {
        y[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum)));
      });
  return {};
}

Status qLinearConv(const KernelSpec& spec, const KernelCall& call) {
  const DType out = spec.outputs[0].dtype;
  if (!isByte(spec.inputs[0].dtype) || !isByte(spec.inputs[3].dtype) || !isByte(out))
    return unsupported("QLinearConv: expected int8 or uint8");
  SS_ASSIGN(const ConvGeometry g, convGeometry(spec.attrs, call.inputs[0].dims, call.inputs[3].dims, call.outputs[0].dims));
  SS_ASSIGN(const PerAxis xScale, PerAxis::read(call, 1, 1, 1));
  SS_ASSIGN(const PerAxis xZero, PerAxis::read(call, 2, 1, 0));
  SS_ASSIGN(const PerAxis wScale, PerAxis::read(call, 4, g.outChannels, 1));
  SS_ASSIGN(const PerAxis wZero, PerAxis::read(call, 5, g.outChannels, 0));
  SS_ASSIGN(const PerAxis yScale, PerAxis::read(call, 6, 1, 1));
  SS_ASSIGN(const PerAxis yZero, PerAxis::read(call, 7, 1, 0));
  if (call.inputPresent(8) && call.inputs[8].elements() != g.outChannels)
    return invalid("bias of shape " + dimsText(call.inputs[8].dims) + "; expected [" + std::to_string(g.outChannels) + "]");
  const double zero = xZero[0];
  convForward(
      g, [&](std::int64_t i) { return elementAsDouble(call.inputs[0], i) - zero; },
      [&](std::int64_t i, std::int64_t m) { return elementAsDouble(call.inputs[3], i) - wZero[m]; },
      [&](std::int64_t i, std::int64_t m, double sum) {
        if (call.inputPresent(8)) sum += elementAsDouble(call.inputs[8], m);
        storeElement(call.outputs[0], i, quantizeSaturated(sum * xScale[0] * wScale[m], yScale[0], yZero[0], out));
      });
  return {};
}

}  // namespace stepscope::reference
