// Comparisons and logic; the result is bool.
#include <cmath>

#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"

namespace stepscope::reference {
namespace {

Status checkPair(const KernelSpec& spec, const KernelCall& call) {
  if (call.inputs.size() < 2) return invalid(spec.op + ": one input; two");
  SS_TRY(checkType(spec, call, 1, call.inputs[0].dtype));
  for (std::size_t i = 0; i < 2; ++i) SS_TRY(checkBroadcasts(spec, call, i));
  return checkOutputType(spec, call, 0, DType::kBool);
}

// Strings, too: they have an order.
template <typename F>
Status compare(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkPair(spec, call));
  const bool done = dispatchAll(call.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    broadcastLoop<T, bool>(call.inputs[0], call.inputs[1], call.outputs[0], F{});
  });
  if (!done) return wrongType(spec, call.inputs[0].dtype);
  return {};
}

template <bool (*kF)(bool, bool)>
Status logical(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkPair(spec, call));
  SS_TRY(checkType(spec, call, 0, DType::kBool));
  broadcastLoop<bool, bool>(call.inputs[0], call.inputs[1], call.outputs[0], kF);
  return {};
}

bool both(bool a, bool b) { return a && b; }
bool either(bool a, bool b) { return a || b; }
bool differ(bool a, bool b) { return a != b; }

Status logicalNot(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkType(spec, call, 0, DType::kBool));
  SS_TRY(checkSameElements(spec, call, 0));
  SS_TRY(checkOutputType(spec, call, 0, DType::kBool));
  const auto in = call.inputs[0].as<const bool>();
  const auto out = call.outputs[0].as<bool>();
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = !in[i];
  return {};
}

// bool from one float.
template <typename F>
Status test(const KernelSpec& spec, const KernelCall& call, F f) {
  SS_TRY(checkSameElements(spec, call, 0));
  SS_TRY(checkOutputType(spec, call, 0, DType::kBool));
  const bool done = dispatchFloat(call.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto in = call.inputs[0].as<const T>();
    const auto out = call.outputs[0].as<bool>();
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = f(widen(in[i]));
  });
  if (!done) return wrongType(spec, call.inputs[0].dtype);
  return {};
}

Status isNaN(const KernelSpec& spec, const KernelCall& call) {
  return test(spec, call, [](double x) { return std::isnan(x); });
}

Status isInf(const KernelSpec& spec, const KernelCall& call) {
  const bool negative = spec.attrs.integer("detect_negative", 1) != 0,
             positive = spec.attrs.integer("detect_positive", 1) != 0;
  return test(spec, call, [=](double x) { return std::isinf(x) && (x < 0 ? negative : positive); });
}

}  // namespace

std::span<const KernelEntry> compareKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "And", reading<2, logical<both>>},
      {"", "Equal", reading<2, compare<std::equal_to<>>>},
      {"", "Greater", reading<2, compare<std::greater<>>>},
      {"", "GreaterOrEqual", reading<2, compare<std::greater_equal<>>>},
      {"", "IsInf", reading<1, isInf>},
      {"", "IsNaN", reading<1, isNaN>},
      {"", "Less", reading<2, compare<std::less<>>>},
      {"", "LessOrEqual", reading<2, compare<std::less_equal<>>>},
      {"", "Not", reading<1, logicalNot>},
      {"", "Or", reading<2, logical<either>>},
      {"", "Xor", reading<2, logical<differ>>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
