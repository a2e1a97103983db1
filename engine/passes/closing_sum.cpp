#include "engine/passes/closing_sum.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/op_def.h"
#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

// Axes of x that a value of extents y was broadcast along.
std::vector<std::int64_t> broadcastAxes(const Dims& x, const Dims& y) {
  std::vector<std::int64_t> axes;
  const std::size_t lead = x.size() - y.size();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i < lead || (y[i - lead] == 1 && x[i] != 1)) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

}  // namespace

std::optional<ClosingSum> closingSumOf(const Graph& graph, const Inference& inference, const Node& node) {
  ClosingSum sum;
  sum.mean = isOp(node, "ReduceMean");
  const bool toShape = node.domain == kInternalDomain && node.op == "ReduceToShape";
  if (!sum.mean && !toShape && !isOp(node, "ReduceSum")) return std::nullopt;
  const auto dimsOf = [&](ValueId id) {
    const auto& shape = graph.value(id).type.shape;
    return shape ? knownDims(*shape) : std::nullopt;
  };
  const auto x = dimsOf(node.input(0)), y = dimsOf(node.output(0));
  if (!x || !y || elementCount(*x) <= elementCount(*y) || y->size() > x->size()) return std::nullopt;
  if (toShape) {
    sum.axes = broadcastAxes(*x, *y);
  } else {
    const auto given = node.input(1) ? inference.integers(node.input(1)) : std::optional(std::vector<std::int64_t>());
    if (!given) return std::nullopt;
    for (std::size_t i = 0; i < x->size(); ++i) {
      const auto axis = static_cast<std::int64_t>(i), fromEnd = axis - static_cast<std::int64_t>(x->size());
      if (given->empty() || std::ranges::find(*given, axis) != given->end() ||
          std::ranges::find(*given, fromEnd) != given->end())
        sum.axes.push_back(axis);
    }
  }
  std::vector<bool> summed;  // of axes with several elements
  for (std::size_t i = 0; i < x->size(); ++i)
    if ((*x)[i] != 1) summed.push_back(std::ranges::find(sum.axes, static_cast<std::int64_t>(i)) != sum.axes.end());
  if (!std::ranges::is_sorted(summed) && !std::ranges::is_sorted(summed.rbegin(), summed.rend()))
    sum.refusal = fmt::format("it sums along axes between those that stay: {} of {}", dimsText(sum.axes), dimsText(*x));
  return sum;
}

}  // namespace stepscope
