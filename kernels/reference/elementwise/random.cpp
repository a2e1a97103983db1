// Ops that draw random numbers. Element i of the result depends on the key of the call and on i alone.
#include <bit>
#include <cmath>

#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"

namespace stepscope::reference {
namespace {

Status dropout(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  SS_TRY(checkSameElements(spec, call, 0));
  SS_TRY(checkOutputType(spec, call, 0, x.dtype));
  for (std::size_t i = 1; i <= 2; ++i)
    if (call.inputPresent(i) && (call.inputs[i].elements() != 1 || call.inputs[i].dtype == DType::kString))
      return invalid("Dropout: input " + std::to_string(i) + " has shape " + dimsText(call.inputs[i].dims) + "; a scalar");
  const bool hasMask = call.outputPresent(1);
  if (hasMask) {
    SS_TRY(checkOutputType(spec, call, 1, DType::kBool));
    SS_TRY(checkSameElements(spec, call, 0, 1));
  }
  const double ratio = call.inputPresent(1) ? elementAsDouble(call.inputs[1], 0) : 0.5;
  if (!(ratio >= 0)) return invalid("Dropout: ratio " + std::to_string(ratio) + "; 0 or more");
  const bool training = call.inputPresent(2) && elementAsDouble(call.inputs[2], 0) != 0 && ratio > 0;
  const double scale = training ? (ratio < 1 ? 1 / (1 - ratio) : 0) : 1;
  bool* mask = hasMask ? static_cast<bool*>(call.outputs[1].data) : nullptr;
  const bool done = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto in = x.as<const T>();
    const auto out = y.as<T>();
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool kept = !training || uniform01(call.random, i) >= ratio;
      out[i] = kept ? narrow<T>(widen(in[i]) * scale) : T(0.0f);
      if (hasMask) mask[i] = kept;
    }
  });
  if (!done) return wrongType(spec, x.dtype);
  return {};
}

}  // namespace

std::span<const KernelEntry> randomKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "Dropout", plain<dropout>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
