#include "engine/ops/linear/einsum_rule.h"

#include <algorithm>
#include <map>

#include "kernels/einsum_equation.h"

namespace stepscope::ops {
namespace {

using Extents = std::map<int, std::int64_t>;  // by label

void addLabels(const EinsumTerm& term, std::span<const std::int64_t> dims, Extents& extents) {
  const auto labels = einsumLabels(term, dims.size());
  if (!labels) return;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    std::int64_t& extent = extents.emplace((*labels)[axis], 1).first->second;
    if (dims[axis] != 1) extent = dims[axis];
  }
}

double flopsOf(const Extents& extents, std::size_t operands) {
  double points = 1;
  for (const auto& [label, extent] : extents) points *= static_cast<double>(extent);
  return points * static_cast<double>(operands);
}

}  // namespace

double einsumFlops(const OpShapes& s) {
  const auto equation = parseEinsum(s.attrs->text("equation", ""), s.inputs.size());
  if (!equation) return 0;
  Extents extents;
  for (std::size_t i = 0; i < s.inputs.size(); ++i) addLabels(equation->operands[i], s.inputs[i], extents);
  return flopsOf(extents, s.inputs.size());
}

double einsumGradFlops(const OpShapes& s) {
  const std::size_t count = s.inputs.size() - 1;
  const auto equation = parseEinsum(s.attrs->text("equation", ""), count);
  if (!equation) return 0;
  const auto own = static_cast<std::size_t>(s.attrs->integer("operand", 0));
  Extents extents;
  addLabels(equation->output, s.inputs[0], extents);
  addLabels(equation->operands[own], s.outputs[0], extents);
  for (std::size_t i = 0, next = 2; i < count; ++i)
    if (i != own) addLabels(equation->operands[i], s.inputs[next++], extents);
  return flopsOf(extents, count);
}

}  // namespace stepscope::ops
