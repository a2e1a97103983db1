#include "engine/onnx/type_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string_view>

#include "engine/data/limits.h"
#include "kernels/onnx_type_text.h"

namespace stepscope {
namespace {

constexpr std::int64_t kUnknownExtent = -1;    // what old exporters of Paddle write for an extent without a name
constexpr std::size_t kExpressionBytes = 256;  // longer names are symbols
constexpr int kExpressionTerms = 32;
constexpr int kLargestPower = 8;
// Extents saturate (engine/ir/dim.h), so larger numbers could not do harm; they are no extents either.
constexpr std::int64_t kLargestNumber = std::int64_t{1} << 40;

// Rational arithmetic as sympy prints it, which PyTorch's exporters write, and as Dim::text() does:
//
//   sum := term (('+' | '-') term)*       term := ['-'] power (('*' | '/' | '//') power)*      power := factor ['**' number]
//   factor := number | name | '(' sum ')' | function '(' sum (',' sum)* ')' | name '(' balanced ')'
//
// Functions are floor, ceil, ceiling, min, Min, max, Max; what another one gives is a symbol.
class DimParser {
 public:
  explicit DimParser(const std::string& text) : text_(text) {}

  // Nothing for what does not read as an expression, or gives no whole number.
  std::optional<Dim> parse() {
    const auto read = sum();
    if (!read || !atEnd()) return std::nullopt;
    return whole(*read);
  }

 private:
  struct Fraction {
    Dim above, below = 1;
  };

  static std::optional<Dim> whole(const Fraction& x) { return Dim::divideExactly(x.above, x.below); }

  static Fraction add(const Fraction& a, const Fraction& b, std::int64_t sign) {
    if (a.below == b.below) return {a.above + Dim(sign) * b.above, a.below};
    if (!a.below.known() || !b.below.known()) return {a.above * b.below + Dim(sign) * b.above * a.below, a.below * b.below};
    const std::int64_t common = std::lcm(a.below.value(), b.below.value());
    return {Dim(common / a.below.value()) * a.above + Dim(sign * (common / b.below.value())) * b.above, common};
  }

  bool atEnd() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ == text_.size();
  }
  bool take(std::string_view token) {
    if (atEnd() || text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }

  std::optional<Fraction> sum() {
    auto total = term();
    while (total && !atEnd() && (text_[at_] == '+' || text_[at_] == '-')) {
      const std::int64_t sign = text_[at_++] == '+' ? 1 : -1;
      const auto next = term();
      if (!next || ++terms_ > kExpressionTerms) return std::nullopt;
      total = add(*total, *next, sign);
    }
    return total;
  }

  std::optional<Fraction> term() {
    const bool negative = take("-");
    auto product = power();
    if (product && negative) product->above = Dim(0) - product->above;
    while (product && !atEnd() && (text_[at_] == '*' || text_[at_] == '/')) {
      const bool floored = take("//"), divided = floored || take("/");
      if (!divided) ++at_;
      const auto next = power();
      if (!next || ++terms_ > kExpressionTerms) return std::nullopt;
      if (!divided) {
        product = Fraction{product->above * next->above, product->below * next->below};
        continue;
      }
      if (next->above.known() && next->above.value() < 1) return std::nullopt;
      product = Fraction{product->above * next->below, product->below * next->above};
      if (floored) product = Fraction{Dim::floorDiv(product->above, product->below)};
    }
    return product;
  }

  std::optional<Fraction> power() {
    auto base = factor();
    if (!base || !take("**")) return base;
    const auto exponent = number();
    if (!exponent || *exponent < 1 || *exponent > kLargestPower) return std::nullopt;
    Fraction result = *base;
    for (std::int64_t i = 1; i < *exponent; ++i) result = {result.above * base->above, result.below * base->below};
    return result;
  }

  std::optional<std::int64_t> number() {
    if (atEnd() || !digit(at_)) return std::nullopt;
    std::int64_t number = 0;
    for (; at_ < text_.size() && digit(at_); ++at_) {
      number = number * 10 + (text_[at_] - '0');
      if (number > kLargestNumber) return std::nullopt;
    }
    if (at_ < text_.size() && text_[at_] != '/' && nameByte(text_[at_])) return std::nullopt;
    return number;
  }

  std::optional<Fraction> factor() {
    if (atEnd()) return std::nullopt;
    if (digit(at_)) {
      const auto found = number();
      return found ? std::optional(Fraction{*found}) : std::nullopt;
    }
    if (take("(")) {
      const auto inner = sum();
      return take(")") ? inner : std::nullopt;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && nameByte(text_[at_]) && !divides(at_)) ++at_;
    if (at_ == begin) return std::nullopt;
    const std::string name = text_.substr(begin, at_ - begin);
    if (at_ == text_.size() || text_[at_] != '(') return Fraction{Dim::symbol(name)};
    if (name == "floor" || name == "ceil" || name == "ceiling") return rounded(name == "floor");
    if (name == "min" || name == "Min" || name == "max" || name == "Max") return extreme(name.back() == 'n');
    if (!balanced()) return std::nullopt;
    return Fraction{Dim::symbol(text_.substr(begin, at_ - begin))};
  }

  std::optional<Fraction> rounded(bool down) {
    ++at_;
    const auto inner = sum();
    if (!inner || !take(")")) return std::nullopt;
    return Fraction{down ? Dim::floorDiv(inner->above, inner->below) : Dim::ceilDiv(inner->above, inner->below)};
  }

  std::optional<Fraction> extreme(bool least) {
    ++at_;
    std::optional<Dim> result;
    do {
      const auto next = sum();
      const auto value = next ? whole(*next) : std::nullopt;
      if (!value || ++terms_ > kExpressionTerms) return std::nullopt;
      result = !result ? *value : least ? Dim::min(*result, *value) : Dim::max(*result, *value);
    } while (take(","));
    return take(")") ? std::optional(Fraction{*result}) : std::nullopt;
  }

  bool balanced() {
    int depth = 0;
    do {
      depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
      ++at_;
    } while (depth > 0 && at_ < text_.size());
    return depth == 0;
  }

  bool digit(std::size_t at) const { return std::isdigit(static_cast<unsigned char>(text_[at])) != 0; }
  // Whether a '/' divides: names of TensorFlow have it too, before another name.
  bool divides(std::size_t at) const {
    if (text_[at] != '/' || at + 1 == text_.size()) return false;
    if (text_[at + 1] == '/' || text_[at + 1] == '(') return true;
    std::size_t end = at + 1;
    while (end < text_.size() && digit(end)) ++end;
    return end > at + 1 && (end == text_.size() || !nameByte(text_[end]));
  }
  static bool nameByte(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ':' || c == '/' || c == '[' ||
           c == ']' || c == '?' || static_cast<unsigned char>(c) >= 0x80;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int terms_ = 0;
};

Result<Shape> shapeFromProto(const onnx::TensorShapeProto& proto, const std::string& name) {
  if (proto.dim_size() > limits::kTensorRank)
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("rank {}; at most {} axes are supported", proto.dim_size(), limits::kTensorRank));
  Shape shape;
  for (int axis = 0; axis < proto.dim_size(); ++axis) {
    const auto& dim = proto.dim(axis);
    if (dim.has_dim_value() && dim.dim_value() != kUnknownExtent) {
      if (dim.dim_value() < 0)
        return invalid(fmt::format("extent {} of axis {}; expected 0 or more, or a name", dim.dim_value(), axis));
      if (dim.dim_value() > limits::kTensorBytes)
        return fail(ErrorCode::kLimitExceeded, fmt::format("extent {} of axis {}; at most {} fit in memory", dim.dim_value(),
                                                           axis, limits::kTensorBytes));
      shape.emplace_back(dim.dim_value());
    } else if (!dim.has_dim_value() && !dim.dim_param().empty()) {
      shape.push_back(dimFromText(dim.dim_param()));
    } else {
      shape.push_back(Dim::symbol(fmt::format("{}.dim{}", name, axis)));
    }
  }
  return shape;
}

Result<DType> elementType(int number) {
  const auto dtype = dtypeFromOnnx(number);
  if (!dtype)
    return unsupported(
        fmt::format("element type {}; expected one of float32, float64, float16, bfloat16, (u)int8..64, bool, string",
                    onnxTypeText(number)));
  return *dtype;
}

std::size_t unknownExtents(const onnx::TypeProto& type) {
  const auto& dims = type.tensor_type().shape().dim();
  return static_cast<std::size_t>(std::count_if(
      dims.begin(), dims.end(), [](const auto& dim) { return dim.has_dim_value() && dim.dim_value() == kUnknownExtent; }));
}

}  // namespace

std::size_t unknownExtents(const onnx::GraphProto& graph) {
  std::size_t count = 0;
  for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const onnx::ValueInfoProto& info : *list) count += unknownExtents(info.type());
  return count;
}

Dim dimFromText(const std::string& text) {
  if (text.size() > kExpressionBytes) return Dim::symbol(text);
  // A '-' between two letters belongs to a name more often than to a difference, unless other operators show otherwise.
  const bool dashed = text.find_first_of("+* (") == std::string::npos && text.find('-', 1) != std::string::npos &&
                      !std::isdigit(static_cast<unsigned char>(text.back()));
  if (dashed) return Dim::symbol(text);
  if (const auto dim = DimParser(text).parse()) return *dim;
  return Dim::symbol(text);
}

Result<ValueType> valueTypeFromProto(const onnx::TypeProto& proto, const std::string& name) {
  ValueType type;
  const onnx::TypeProto* tensor = &proto;
  if (proto.value_case() == onnx::TypeProto::kOptionalType) {
    type.kind = ValueKind::kOptional;
    tensor = &proto.optional_type().elem_type();
    if (tensor->value_case() == onnx::TypeProto::kSequenceType) {
      type.optionalOfSequence = true;
      tensor = &tensor->sequence_type().elem_type();
    }
  } else if (proto.value_case() == onnx::TypeProto::kSequenceType) {
    type.kind = ValueKind::kSequence;
    tensor = &proto.sequence_type().elem_type();
  } else if (proto.value_case() == onnx::TypeProto::VALUE_NOT_SET) {
    return type;
  }
  if (tensor->value_case() != onnx::TypeProto::kTensorType)
    return unsupported("type other than tensor, sequence of tensors or optional of these; expected one of them");
  const auto& tensorType = tensor->tensor_type();
  SS_ASSIGN(type.dtype, elementType(tensorType.elem_type()));
  if (tensorType.has_shape()) {
    SS_ASSIGN(type.shape, shapeFromProto(tensorType.shape(), name));
  }
  return type;
}

void valueTypeToProto(const ValueType& type, onnx::TypeProto& proto) {
  if (type.dtype == DType::kUndefined) return;
  onnx::TypeProto* tensor = &proto;
  if (type.kind == ValueKind::kOptional) tensor = tensor->mutable_optional_type()->mutable_elem_type();
  if (type.kind == ValueKind::kSequence || type.optionalOfSequence)
    tensor = tensor->mutable_sequence_type()->mutable_elem_type();
  auto* tensorType = tensor->mutable_tensor_type();
  tensorType->set_elem_type(static_cast<int>(type.dtype));
  if (!type.shape) return;
  auto* shape = tensorType->mutable_shape();
  for (const Dim& dim : *type.shape) {
    auto* written = shape->add_dim();
    if (dim.known())
      written->set_dim_value(dim.value());
    else
      written->set_dim_param(dim.text());
  }
}

}  // namespace stepscope
