// Conversion between all element types, and Identity.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "kernels/integer_of.h"
#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"

namespace stepscope::reference {
namespace {

// A float as the shortest text that reads back as the same value of its own type.
template <typename From>
std::string textOf(From value) {
  if constexpr (std::is_same_v<From, bool>) {
    return value ? "1" : "0";
  } else if constexpr (kIsFloat<From>) {
    const double wide = widen(value);
    if (std::isnan(wide)) return "NaN";
    if (std::isinf(wide)) return wide > 0 ? "INF" : "-INF";
    if constexpr (std::is_same_v<From, double>) return fmt::format("{}", wide);
    return fmt::format("{}", static_cast<float>(wide));
  } else {
    return fmt::format("{}", static_cast<std::conditional_t<std::is_signed_v<From>, std::int64_t, std::uint64_t>>(value));
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\n").find(text.front()) != text.npos) text.remove_prefix(1);
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos) text.remove_suffix(1);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  return text;
}

// "3.5", "1e-5", "INF", "-inf", "NaN" …; nothing when it is no number. Integers keep all their digits.
template <typename To>
std::optional<To> parsedNumber(std::string_view text) {
  text = trimmed(text);
  if constexpr (!kIsFloat<To> && !std::is_same_v<To, bool>) {
    std::conditional_t<std::is_signed_v<To>, std::int64_t, std::uint64_t> whole = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), whole);
    if (end.ec == std::errc{} && end.ptr == text.data() + text.size()) return static_cast<To>(whole);
  }
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ptr != text.data() + text.size() || text.empty()) return std::nullopt;
  if (end.ec == std::errc::result_out_of_range) return std::nullopt;
  if (end.ec != std::errc{}) return std::nullopt;
  if constexpr (std::is_same_v<To, bool>)
    return value != 0;
  else if constexpr (kIsFloat<To>)
    return narrow<To>(value);
  else
    return integerOf<To>(value);
}

template <typename From, typename To>
Status convert(const KernelSpec& spec, const TensorView& x, const TensorView& y) {
  const auto in = x.as<const From>();
  const auto out = y.as<To>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    if constexpr (std::is_same_v<From, To>) {
      out[i] = in[i];
    } else if constexpr (std::is_same_v<To, std::string>) {
      out[i] = textOf(in[i]);
    } else if constexpr (std::is_same_v<From, std::string>) {
      const auto value = parsedNumber<To>(in[i]);
      if (!value) return invalid(spec.op + ": element " + std::to_string(i) + " is '" + in[i] + "'; the text of a number");
      out[i] = *value;
    } else if constexpr (std::is_same_v<To, bool>) {
      out[i] = widen(in[i]) != 0;
    } else if constexpr (kIsFloat<From> && !kIsFloat<To>) {
      out[i] = integerOf<To>(widen(in[i]));
    } else {
      out[i] = narrow<To>(widen(in[i]));
    }
  }
  return {};
}

// The type of the output decides: attribute `to` and the type of CastLike's second input are what it was inferred from.
Status cast(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  SS_TRY(checkSameElements(spec, call, 0));
  Status status;
  bool targetFits = false;
  const bool done = dispatchAll(x.dtype, [&](auto from) {
    targetFits = dispatchAll(y.dtype, [&](auto to) { status = convert<decltype(from), decltype(to)>(spec, x, y); });
  });
  if (!done) return wrongType(spec, x.dtype);
  if (!targetFits) return wrongType(spec, y.dtype);
  return status;
}

Status identity(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkOutputType(spec, call, 0, call.inputs[0].dtype));
  if (call.inputs[0].data == call.outputs[0].data) return {};
  return cast(spec, call);
}

}  // namespace

std::span<const KernelEntry> castKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "Cast", reading<1, cast>},
      {"", "CastLike", reading<2, cast>},
      {"", "Identity", reading<1, identity>},
      {"stepscope", "CustomGradient", reading<1, identity>},
      {"stepscope", "GradientOf", reading<1, identity>},
      {"stepscope", "StopGradient", reading<1, identity>},
      {"stepscope", "StraightThrough", reading<1, identity>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
