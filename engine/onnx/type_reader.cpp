#include "engine/onnx/type_reader.h"

#include <fmt/format.h>

#include <cctype>

#include "engine/data/limits.h"

namespace stepscope {
namespace {

constexpr std::size_t kExpressionBytes = 256;  // longer names are symbols
constexpr int kExpressionTerms = 32;
// With one number per term and the bounds above no coefficient can overflow.
constexpr std::int64_t kLargestNumber = std::int64_t{1} << 40;

// expression := term (('+' | '-') term)*;  term := ['-'] factor ('*' factor)*;  factor := number | name | name '(' balanced
// ')'
class DimParser {
 public:
  explicit DimParser(const std::string& text) : text_(text) {}

  std::optional<Dim> parse() {
    auto sum = term();
    while (sum && !atEnd()) {
      const char sign = text_[at_];
      if (sign != '+' && sign != '-') return std::nullopt;
      ++at_;
      auto next = term();
      if (!next || ++terms_ > kExpressionTerms) return std::nullopt;
      sum = sign == '+' ? *sum + *next : *sum - *next;
    }
    return sum;
  }

 private:
  bool atEnd() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ == text_.size();
  }

  std::optional<Dim> term() {
    if (atEnd()) return std::nullopt;
    numbersInTerm_ = 0;
    const bool negative = text_[at_] == '-';
    if (negative) ++at_;
    auto product = factor();
    while (product && !atEnd() && text_[at_] == '*') {
      ++at_;
      const auto next = factor();
      if (!next || ++terms_ > kExpressionTerms) return std::nullopt;
      product = *product * *next;
    }
    if (product && negative) product = Dim(0) - *product;
    return product;
  }

  std::optional<Dim> factor() {
    if (atEnd()) return std::nullopt;
    const std::size_t begin = at_;
    if (std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      std::int64_t number = 0;
      for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_) {
        number = number * 10 + (text_[at_] - '0');
        if (number > kLargestNumber) return std::nullopt;
      }
      if (at_ < text_.size() && nameByte(text_[at_])) return std::nullopt;
      if (++numbersInTerm_ > 1) return std::nullopt;
      return Dim(number);
    }
    while (at_ < text_.size() && nameByte(text_[at_])) ++at_;
    if (at_ == begin) return std::nullopt;
    if (at_ < text_.size() && text_[at_] == '(' && !balanced()) return std::nullopt;
    return Dim::symbol(text_.substr(begin, at_ - begin));
  }

  bool balanced() {
    int depth = 0;
    do {
      depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
      ++at_;
    } while (depth > 0 && at_ < text_.size());
    return depth == 0;
  }

  static bool nameByte(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ':' || c == '/' || c == '[' ||
           c == ']' || c == '?' || static_cast<unsigned char>(c) >= 0x80;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int terms_ = 0;
  int numbersInTerm_ = 0;
};

Result<Shape> shapeFromProto(const onnx::TensorShapeProto& proto, const std::string& name) {
  if (proto.dim_size() > limits::kTensorRank)
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("rank {}; at most {} axes are supported", proto.dim_size(), limits::kTensorRank));
  Shape shape;
  for (int axis = 0; axis < proto.dim_size(); ++axis) {
    const auto& dim = proto.dim(axis);
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0)
        return invalid(fmt::format("extent {} of axis {}; expected 0 or more, or a name", dim.dim_value(), axis));
      if (dim.dim_value() > limits::kTensorBytes)
        return fail(ErrorCode::kLimitExceeded, fmt::format("extent {} of axis {}; at most {} fit in memory", dim.dim_value(),
                                                           axis, limits::kTensorBytes));
      shape.emplace_back(dim.dim_value());
    } else if (!dim.dim_param().empty()) {
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
    return unsupported(fmt::format(
        "element type {}; expected one of float32, float64, float16, bfloat16, (u)int8..64, bool, string", number));
  return *dtype;
}

}  // namespace

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
