#include "engine/profile/compare_tensors.h"

#include <fmt/format.h>

#include <cstring>

#include "engine/snapshot/number_rule.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

std::string indexText(std::int64_t element, const Dims& dims) {
  std::string text;
  std::int64_t rest = elementCount(dims);
  for (const std::int64_t dim : dims) {
    rest /= dim;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", element / rest);
    element %= rest;
  }
  return '[' + text + ']';
}

}  // namespace

snapshot::ComparisonResult compareTensors(const std::string& name, const TensorView& a, const TensorView& b) {
  snapshot::ComparisonResult result;
  result.set_name(toUtf8(name));
  result.set_elements(a.elements());
  const bool text = a.dtype == DType::kString || b.dtype == DType::kString;
  if (a.dims != b.dims || (text && a.dtype != b.dtype)) {
    result.set_max_abs(INFINITY);
    result.set_max_rel(INFINITY);
    result.set_differing(std::max(a.elements(), b.elements()));
    return result;
  }
  std::int64_t differing = 0;
  if (text) {
    for (std::int64_t i = 0; i < a.elements(); ++i)
      differing += a.as<std::string>()[static_cast<std::size_t>(i)] != b.as<std::string>()[static_cast<std::size_t>(i)];
    result.set_differing(differing);
    result.set_equal_bits(differing == 0);
    return result;
  }
  const bool sameType = a.dtype == b.dtype;
  result.set_equal_bits(a.elements() == 0 || (sameType && std::memcmp(a.data, b.data, a.bytes()) == 0));
  if (result.equal_bits()) return result;
  const std::size_t size = dtypeSize(a.dtype);
  const auto* left = static_cast<const std::byte*>(a.data);
  const auto* right = static_cast<const std::byte*>(b.data);
  WorstElement worst;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const std::size_t at = size * static_cast<std::size_t>(i);
    if (sameType && std::memcmp(left + at, right + at, size) == 0) continue;
    const double x = elementAsDouble(a, i), y = elementAsDouble(b, i);
    differing += sameType || !sameNumber(x, y);
    worst.add(i, x, y);
  }
  result.set_differing(differing);
  result.set_equal_bits(differing == 0 && !sameType);
  worst.write(a.dims, &result);
  return result;
}

Result<Tensor> convertExactly(const std::string& what, const TensorView& contents, DType dtype) {
  if (contents.dtype == dtype) return Tensor(contents.dtype, contents.dims, nullptr, contents.data).clone();
  const auto refuse = [&](const std::string& found, const char* hint) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}; expected {}{}", what, found, dtypeName(dtype), hint));
  };
  if (contents.dtype == DType::kString || dtype == DType::kString)
    return refuse(fmt::format("found {}", dtypeName(contents.dtype)), "");
  const Tensor out = convertTensor(contents, dtype);
  for (std::int64_t i = 0; i < contents.elements(); ++i) {
    const double wanted = elementAsDouble(contents, i);
    bool held = sameNumber(elementAsDouble(out.view(), i), wanted);
    // 64-bit integers have more digits than a double.
    if (held && isInteger(contents.dtype)) held = elementAsInt(out.view(), i) == elementAsInt(contents, i);
    if (!held)
      return refuse(
          fmt::format("element {} is {} of type {}", indexText(i, contents.dims), wanted, dtypeName(contents.dtype)),
          ", which cannot hold it exactly; convert the file");
  }
  return out;
}

}  // namespace stepscope
