#include "engine/ops/elementwise/contents.h"

#include <algorithm>

namespace stepscope::ops {
namespace {

// Shapes are short; a long constant vector is data, not shape arithmetic.
constexpr std::int64_t kMaxElements = 1024;

bool bothKnown(const Dim& a, const Dim& b) { return a.known() && b.known(); }
Dim truth(bool value) { return Dim(value ? 1 : 0); }

// A result that the element type cannot hold would wrap, so nothing is said about it. Truth values fit every type.
void store(ShapeContext& c, Contents contents) {
  for (const Dim& element : contents)
    if (!castDim(element, c.inputDType(0))) return;
  c.setContents(0, std::move(contents));
}

}  // namespace

std::optional<Contents> operandContents(const ShapeContext& c, std::size_t i) {
  const DType dtype = c.inputDType(i);
  if (!isInteger(dtype) && dtype != DType::kBool) return std::nullopt;
  if (auto known = c.contents(i)) return known;
  const Tensor* tensor = c.constant(i);
  if (tensor == nullptr || tensor->dims().size() > 1 || tensor->elements() > kMaxElements) return std::nullopt;
  if (tensor->dtype() == DType::kU64) return std::nullopt;
  const std::vector<std::int64_t> values = intElements(tensor->view());
  return Contents(values.begin(), values.end());
}

const Dim& broadcastElement(const Contents& contents, std::size_t i) {
  return contents.size() == 1 ? contents[0] : contents[i];
}

void foldContents(ShapeContext& c, DimUnary fold) {
  auto contents = operandContents(c, 0);
  if (!contents) return;
  for (Dim& element : *contents) {
    const auto folded = fold(element);
    if (!folded) return;
    element = *folded;
  }
  store(c, std::move(*contents));
}

void foldContents(ShapeContext& c, DimBinary fold) {
  auto result = operandContents(c, 0);
  for (std::size_t input = 1; result && input < c.inputCount(); ++input) {
    const auto operand = operandContents(c, input);
    if (!operand) return;
    if (result->size() != operand->size() && result->size() != 1 && operand->size() != 1) return;
    const std::size_t count = result->size() == 1 ? operand->size() : result->size();
    Contents next;
    next.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      auto folded = fold(broadcastElement(*result, i), broadcastElement(*operand, i));
      if (!folded) return;
      next.push_back(std::move(*folded));
    }
    result = std::move(next);
  }
  if (result) store(c, std::move(*result));
}

// Symbols are extents, so a polynomial that prints without a minus sign has only terms that are not negative.
bool nonNegative(const Dim& a) { return a.known() ? a.value() >= 0 : a.text().find('-') == std::string::npos; }

std::optional<Dim> addDims(const Dim& a, const Dim& b) {
  std::int64_t sum = 0;
  if (bothKnown(a, b)) return __builtin_add_overflow(a.value(), b.value(), &sum) ? std::nullopt : std::optional<Dim>(sum);
  return a + b;
}

std::optional<Dim> subDims(const Dim& a, const Dim& b) {
  std::int64_t difference = 0;
  if (bothKnown(a, b))
    return __builtin_sub_overflow(a.value(), b.value(), &difference) ? std::nullopt : std::optional<Dim>(difference);
  return a - b;
}

std::optional<Dim> mulDims(const Dim& a, const Dim& b) {
  std::int64_t product = 0;
  if (bothKnown(a, b))
    return __builtin_mul_overflow(a.value(), b.value(), &product) ? std::nullopt : std::optional<Dim>(product);
  return a * b;
}

std::optional<Dim> divDims(const Dim& a, const Dim& b) {
  if (b == Dim(0)) return std::nullopt;
  if (bothKnown(a, b)) {
    if (a.value() == INT64_MIN && b.value() == -1) return std::nullopt;
    return Dim(a.value() / b.value());
  }
  if (auto exact = Dim::divideExactly(a, b)) return exact;
  if (nonNegative(a) && nonNegative(b)) return Dim::floorDiv(a, b);
  return std::nullopt;
}

std::optional<Dim> modDims(const Dim& a, const Dim& b) {
  if (b == Dim(0)) return std::nullopt;
  if (bothKnown(a, b)) {
    if (b.value() == -1) return Dim(0);
    const std::int64_t rest = a.value() % b.value();
    return Dim(rest != 0 && (rest < 0) != (b.value() < 0) ? rest + b.value() : rest);
  }
  if (Dim::divideExactly(a, b)) return Dim(0);
  if (nonNegative(a) && nonNegative(b)) return a - b * Dim::floorDiv(a, b);
  return std::nullopt;
}

std::optional<Dim> fmodDims(const Dim& a, const Dim& b) {
  if (!bothKnown(a, b)) return modDims(a, b);
  if (b == Dim(0)) return std::nullopt;
  return Dim(b.value() == -1 ? 0 : a.value() % b.value());
}

std::optional<Dim> minDims(const Dim& a, const Dim& b) {
  if (a.known() && a.value() <= 0 && nonNegative(b)) return a;
  if (b.known() && b.value() <= 0 && nonNegative(a)) return b;
  return Dim::min(a, b);
}

std::optional<Dim> maxDims(const Dim& a, const Dim& b) {
  if (a.known() && a.value() <= 0 && nonNegative(b)) return b;
  if (b.known() && b.value() <= 0 && nonNegative(a)) return a;
  return Dim::max(a, b);
}

std::optional<Dim> powDims(const Dim& a, const Dim& b) {
  if (!b.known() || b.value() < 0 || b.value() > 62) return std::nullopt;
  std::optional<Dim> power = Dim(1);
  for (std::int64_t i = 0; power && i < b.value(); ++i) power = mulDims(*power, a);
  return power;
}

std::optional<Dim> equalDims(const Dim& a, const Dim& b) {
  if (a == b) return Dim(1);
  const auto difference = subDims(a, b);
  if (difference && difference->known()) return Dim(0);
  if ((nonNegative(a) && b.known() && b.value() < 0) || (nonNegative(b) && a.known() && a.value() < 0)) return Dim(0);
  return std::nullopt;
}

std::optional<Dim> lessDims(const Dim& a, const Dim& b) {
  if (bothKnown(a, b)) return truth(a.value() < b.value());
  if (const Dim difference = a - b; difference.known()) return truth(difference.value() < 0);
  if (nonNegative(a) && b.known() && b.value() <= 0) return Dim(0);
  if (nonNegative(b) && a.known() && a.value() < 0) return Dim(1);
  return std::nullopt;
}

std::optional<Dim> greaterDims(const Dim& a, const Dim& b) { return lessDims(b, a); }

std::optional<Dim> lessOrEqualDims(const Dim& a, const Dim& b) {
  const auto greater = lessDims(b, a);
  return greater ? notDim(*greater) : std::nullopt;
}

std::optional<Dim> greaterOrEqualDims(const Dim& a, const Dim& b) { return lessOrEqualDims(b, a); }

std::optional<Dim> andDims(const Dim& a, const Dim& b) {
  return bothKnown(a, b) ? std::optional<Dim>(truth(a.value() != 0 && b.value() != 0)) : std::nullopt;
}

std::optional<Dim> orDims(const Dim& a, const Dim& b) {
  return bothKnown(a, b) ? std::optional<Dim>(truth(a.value() != 0 || b.value() != 0)) : std::nullopt;
}

std::optional<Dim> xorDims(const Dim& a, const Dim& b) {
  return bothKnown(a, b) ? std::optional<Dim>(truth((a.value() != 0) != (b.value() != 0))) : std::nullopt;
}

std::optional<Dim> negDim(const Dim& a) { return subDims(Dim(0), a); }
std::optional<Dim> absDim(const Dim& a) {
  return nonNegative(a) ? std::optional<Dim>(a) : a.known() ? negDim(a) : std::nullopt;
}
std::optional<Dim> signDim(const Dim& a) {
  return a.known() ? std::optional<Dim>(Dim((a.value() > 0) - (a.value() < 0))) : std::nullopt;
}
std::optional<Dim> notDim(const Dim& a) { return a.known() ? std::optional<Dim>(truth(a.value() == 0)) : std::nullopt; }
std::optional<Dim> sameDim(const Dim& a) { return a; }
std::optional<Dim> reluDim(const Dim& a) { return maxDims(a, Dim(0)); }

std::optional<Dim> castDim(const Dim& a, DType to) {
  if (to == DType::kI64) return a;
  if (to == DType::kBool) return a.known() ? std::optional<Dim>(truth(a.value() != 0)) : std::nullopt;
  if (!isInteger(to)) return std::nullopt;
  if (!a.known()) return to == DType::kI32 ? std::optional<Dim>(a) : std::nullopt;
  const int bits = static_cast<int>(dtypeSize(to)) * 8 - (isUnsigned(to) ? 0 : 1);
  const std::int64_t high = bits >= 63 ? INT64_MAX : (std::int64_t{1} << bits) - 1;
  const std::int64_t low = isUnsigned(to) ? 0 : -high - 1;
  return a.value() >= low && a.value() <= high ? std::optional<Dim>(a) : std::nullopt;
}

}  // namespace stepscope::ops
