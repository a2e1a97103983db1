// Choosing between operands: Where and ReluGrad by element, Select and Gate by one condition. And what else moves any
// element: StringConcat.
#include <algorithm>

#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"

namespace stepscope::reference {
namespace {

Status where(const KernelSpec& spec, const KernelCall& call) {
  if (call.inputs.size() < 3) return invalid("Where: too few inputs; three");
  SS_TRY(checkType(spec, call, 0, DType::kBool));
  SS_TRY(checkType(spec, call, 2, call.inputs[1].dtype));
  SS_TRY(checkOutputType(spec, call, 0, call.inputs[1].dtype));
  for (std::size_t i = 0; i < 3; ++i) SS_TRY(checkBroadcasts(spec, call, i));
  const TensorView& y = call.outputs[0];
  const BroadcastIndex c(y.dims, call.inputs[0].dims), a(y.dims, call.inputs[1].dims), b(y.dims, call.inputs[2].dims);
  const bool done = dispatchAll(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto* condition = static_cast<const bool*>(call.inputs[0].data);
    const auto* left = static_cast<const T*>(call.inputs[1].data);
    const auto* right = static_cast<const T*>(call.inputs[2].data);
    auto* out = static_cast<T*>(y.data);
    const std::int64_t count = y.elements();
    for (std::int64_t i = 0; i < count; ++i) {
      T value = condition[c(i)] ? left[a(i)] : right[b(i)];
      out[i] = std::move(value);
    }
  });
  if (!done) return wrongType(spec, y.dtype);
  return {};
}

Result<bool> condition(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkType(spec, call, 0, DType::kBool));
  if (call.inputs[0].elements() != 1)
    return invalid(spec.op + ": condition has shape " + dimsText(call.inputs[0].dims) + "; a scalar");
  return *static_cast<const bool*>(call.inputs[0].data);
}

Status copyInput(const KernelSpec& spec, const KernelCall& call, std::size_t input) {
  const TensorView &x = call.inputs[input], &y = call.outputs[0];
  SS_TRY(checkType(spec, call, input, y.dtype));
  SS_TRY(checkSameElements(spec, call, input));
  if (x.data == y.data) return {};
  const bool done = dispatchAll(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    std::ranges::copy(x.as<const T>(), y.as<T>().begin());
  });
  if (!done) return wrongType(spec, y.dtype);
  return {};
}

Status select(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const bool chosen, condition(spec, call));
  return copyInput(spec, call, chosen ? 1 : 2);
}

Status gate(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const bool open, condition(spec, call));
  if (open == (spec.attrs.integer("expected", 1) != 0)) return copyInput(spec, call, 1);
  const bool done = dispatchAll(call.outputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    std::ranges::fill(call.outputs[0].as<T>(), T{});
  });
  if (!done) return wrongType(spec, call.outputs[0].dtype);
  return {};
}

// dy, y → dx
Status reluGrad(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkSameElements(spec, call, 0));
  SS_TRY(checkSameElements(spec, call, 1));
  SS_TRY(checkType(spec, call, 1, call.inputs[0].dtype));
  SS_TRY(checkOutputType(spec, call, 0, call.inputs[0].dtype));
  const bool done = dispatchNumeric(call.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    broadcastLoop<T, T>(call.inputs[0], call.inputs[1], call.outputs[0],
                        [](auto dy, auto y) { return y <= 0 ? decltype(dy){} : dy; });
  });
  if (!done) return wrongType(spec, call.inputs[0].dtype);
  return {};
}

Status stringConcat(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkVariadic(spec, call));
  SS_TRY(checkType(spec, call, 0, DType::kString));
  if (call.inputs.size() < 2) return invalid("StringConcat: one input; two");
  broadcastLoop<std::string, std::string>(call.inputs[0], call.inputs[1], call.outputs[0], std::plus<>{});
  return {};
}

}  // namespace

std::span<const KernelEntry> selectKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "StringConcat", reading<2, stringConcat>}, {"", "Where", reading<3, where>},
      {"stepscope", "Gate", reading<2, gate>},        {"stepscope", "ReluGrad", reading<2, reluGrad>},
      {"stepscope", "Select", reading<3, select>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
