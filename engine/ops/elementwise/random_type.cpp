#include "engine/ops/elementwise/random_type.h"

namespace stepscope::ops {
namespace {

Result<DType> floatingType(const ShapeContext& c, DType fallback) {
  SS_ASSIGN(const DType dtype, attributeType(c, "dtype", fallback));
  if (dtype == DType::kUndefined || isFloating(dtype)) return dtype;
  return c.error("attribute dtype is " + std::string(dtypeName(dtype)) + "; a floating type is needed");
}

}  // namespace

Result<DType> attributeType(const ShapeContext& c, std::string_view name, DType fallback) {
  if (!c.attrs().has(name)) return fallback;
  const std::int64_t number = c.attrs().integer(name, 0);
  const auto dtype = dtypeFromOnnx(number >= 0 && number < 256 ? static_cast<int>(number) : 0);
  if (dtype) return *dtype;
  return c.error("attribute " + std::string(name) + " is " + std::to_string(number) + "; an element type of this build");
}

Status randomFromShape(ShapeContext& c) {
  SS_ASSIGN(const DType dtype, floatingType(c, DType::kF32));
  const std::vector<std::int64_t> dims = c.attrs().integers("shape");
  if (const auto count = checkedElementCount(dims); !count) return c.error("attribute shape: " + count.error().message);
  c.setOutput(0, dtype, shapeOf(dims));
  return {};
}

Status randomLikeInput0(ShapeContext& c) {
  SS_ASSIGN(const DType dtype, floatingType(c, c.inputDType(0)));
  c.setOutput(0, dtype, c.inputShape(0));
  return {};
}

}  // namespace stepscope::ops
