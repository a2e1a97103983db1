#include "engine/plan/spec_table.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace stepscope {
namespace {

bool sameContents(const Tensor& a, const Tensor& b) {
  if (a.valid() != b.valid()) return false;
  if (!a.valid() || a.data() == b.data()) return true;
  return a.dtype() == b.dtype() && a.dims() == b.dims() && a.dtype() != DType::kString &&
         std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

// Axes, pads and shapes are compared by contents; what may be as large as a weight is the same when its memory is.
bool isSmall(const Tensor& constant) { return constant.dtype() != DType::kString && constant.bytes() <= 256; }

bool sameConstant(const Tensor& a, const Tensor& b) {
  if (a.valid() && b.valid() && isSmall(a)) return sameContents(a, b);
  return a.valid() == b.valid() && (!a.valid() || (a.data() == b.data() && a.dtype() == b.dtype() && a.dims() == b.dims()));
}

std::size_t hashOf(const Tensor& constant) {
  if (!constant.valid()) return 0;
  if (!isSmall(constant)) return std::hash<const void*>{}(constant.data());
  return std::hash<std::string_view>{}({static_cast<const char*>(constant.data()), constant.bytes()});
}

template <typename SameTensor>
bool same(const KernelSpec& a, const KernelSpec& b, SameTensor&& sameTensor) {
  const auto sameOperand = [&](const OperandSpec& x, const OperandSpec& y) {
    return x.dtype == y.dtype && x.dims == y.dims && x.dynamic == y.dynamic && x.layout == y.layout && x.space == y.space &&
           sameTensor(x.constant, y.constant);
  };
  return a.domain == b.domain && a.op == b.op && a.threads == b.threads && a.user == b.user && a.attrs == b.attrs &&
         std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), sameOperand) &&
         std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(), sameOperand);
}

std::size_t hashOf(const KernelSpec& spec) {
  std::size_t hash = std::hash<std::string_view>{}(spec.op);
  const auto mix = [&](std::size_t part) { hash = (hash ^ (hash >> 29)) * 0x9e3779b97f4a7c15u + part; };
  for (const auto* operands : {&spec.inputs, &spec.outputs})
    for (const OperandSpec& operand : *operands) {
      mix(static_cast<std::size_t>(operand.dtype));
      mix(hashOf(operand.constant));
      for (const std::int64_t dim : operand.dims) mix(static_cast<std::size_t>(dim));
    }
  return hash;
}

}  // namespace

bool sameSpec(const KernelSpec& a, const KernelSpec& b) { return &a == &b || same(a, b, sameContents); }

std::shared_ptr<const KernelSpec> SpecTable::share(KernelSpec spec) {
  const std::size_t hash = hashOf(spec);
  const auto [begin, end] = specs_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (same(*it->second, spec, sameConstant)) return it->second;
  return specs_.emplace(hash, std::make_shared<const KernelSpec>(std::move(spec)))->second;
}

}  // namespace stepscope
