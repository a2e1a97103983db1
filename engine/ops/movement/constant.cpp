#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferConstantShape(ShapeContext& c) {
  const Attributes& attrs = c.attrs();
  if (const Tensor* value = attrs.tensor("value")) {
    c.setOutput(0, value->dtype(), shapeOf(value->dims()));
    if (value->dims().size() > 1 || !isInteger(value->dtype()) ||
        value->elements() > static_cast<std::int64_t>(kMaxContents))
      return {};
    const std::vector<std::int64_t> numbers = intElements(value->view());
    c.setContents(0, Contents(numbers.begin(), numbers.end()));
    return {};
  }
  const auto vector = [&](std::size_t count) { return Shape{Dim(static_cast<std::int64_t>(count))}; };
  const AttrValue* found = nullptr;
  const auto has = [&](const char* name) { return (found = attrs.find(name)) != nullptr; };
  const auto wrong = [&] { return c.error("attribute of another type than its name says"); };
  if (has("value_int")) {
    const auto* value = std::get_if<std::int64_t>(found);
    if (value == nullptr) return wrong();
    c.setOutput(0, DType::kI64, Shape{});
    c.setContents(0, {Dim(*value)});
  } else if (has("value_ints")) {
    const auto* values = std::get_if<std::vector<std::int64_t>>(found);
    if (values == nullptr) return wrong();
    c.setOutput(0, DType::kI64, vector(values->size()));
    if (values->size() <= kMaxContents) c.setContents(0, Contents(values->begin(), values->end()));
  } else if (has("value_float")) {
    if (!std::holds_alternative<float>(*found)) return wrong();
    c.setOutput(0, DType::kF32, Shape{});
  } else if (has("value_floats")) {
    const auto* values = std::get_if<std::vector<float>>(found);
    if (values == nullptr) return wrong();
    c.setOutput(0, DType::kF32, vector(values->size()));
  } else if (has("value_string")) {
    if (!std::holds_alternative<std::string>(*found)) return wrong();
    c.setOutput(0, DType::kString, Shape{});
  } else if (has("value_strings")) {
    const auto* values = std::get_if<std::vector<std::string>>(found);
    if (values == nullptr) return wrong();
    c.setOutput(0, DType::kString, vector(values->size()));
  } else {
    return c.error(
        "no value, value_int, value_ints, value_float, value_floats, value_string or value_strings (sparse values are not "
        "supported)");
  }
  return {};
}

}  // namespace

constexpr OpDef kConstantOp{
    .name = "Constant",
    .sinceVersion = 21,
    .doc = "The tensor of an attribute.",
    .inputs = {0, 0},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferConstantShape,
    .noGradientReason = "no inputs",
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
