#include <map>

#include "engine/ops/gradient_context.h"
#include "engine/ops/linear/einsum_rule.h"
#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"
#include "engine/ops/shape_context.h"
#include "kernels/einsum_equation.h"

namespace stepscope::ops {
namespace {

Result<EinsumEquation> equationOf(ShapeContext& c) {
  auto equation = parseEinsum(c.attrs().text("equation", ""), c.inputCount());
  if (!equation) return c.error(equation.error().message);
  return equation;
}

Status inferEinsumShape(ShapeContext& c) {
  SS_ASSIGN(const EinsumEquation equation, equationOf(c));
  for (std::size_t i = 1; i < c.inputCount(); ++i) SS_TRY(requireOneType(c, {0, i}));
  std::map<int, Dim> extents;
  std::size_t ellipsisRank = 0;
  for (std::size_t i = 0; i < c.inputCount(); ++i) {
    if (!c.rankKnown(i)) {
      c.setOutput(0, c.inputDType(0), std::nullopt);
      return {};
    }
    const Shape shape = *c.inputShape(i);
    const EinsumTerm& term = equation.operands[i];
    const auto labels = einsumLabels(term, shape.size());
    if (!labels) return c.error(labels.error().message);
    if (term.ellipsis >= 0) ellipsisRank = std::max(ellipsisRank, shape.size() - term.letters.size());
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const auto [it, inserted] = extents.emplace((*labels)[axis], shape[axis]);
      if (inserted || shape[axis] == Dim(1)) continue;
      if (it->second == Dim(1))
        it->second = shape[axis];
      else
        SS_TRY(c.unify(it->second, shape[axis], "extents of one einsum letter"));
    }
  }
  const std::size_t rank = equation.output.letters.size() + (equation.output.ellipsis >= 0 ? ellipsisRank : 0);
  SS_ASSIGN(const std::vector<int> labels, einsumLabels(equation.output, rank));
  Shape y;
  for (const int label : labels) y.push_back(extents.at(label));
  c.setOutput(0, c.inputDType(0), std::move(y));
  return {};
}

bool contains(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

// Whether axis `letter` of a term is known to have extent 1, so that it broadcasts.
bool isBroadcast(const GradientContext& g, const EinsumEquation& equation, std::size_t operand, char letter) {
  const std::optional<Shape>& shape = g.shape(g.x(operand));
  if (!shape) return false;
  const EinsumTerm& term = equation.operands[operand];
  std::size_t axis = term.letters.find(letter);
  if (term.ellipsis >= 0 && axis >= static_cast<std::size_t>(term.ellipsis)) axis += shape->size() - term.letters.size();
  return axis < shape->size() && (*shape)[axis] == Dim(1);
}

// Whether dx_i = Einsum(dy, the other operands): every letter of operand i is once in it, and the result or another operand
// has its full extent.
bool swaps(const GradientContext& g, const EinsumEquation& equation, std::size_t i) {
  const EinsumTerm& own = equation.operands[i];
  if (own.ellipsis >= 0 && equation.output.ellipsis < 0) return false;
  for (std::size_t k = 0; k < own.letters.size(); ++k) {
    const char letter = own.letters[k];
    if (contains(own.letters.substr(k + 1), letter)) return false;
    bool elsewhere = contains(equation.output.letters, letter);
    for (std::size_t j = 0; j < equation.operands.size() && !elsewhere; ++j)
      elsewhere = j != i && contains(equation.operands[j].letters, letter) &&
                  (!isBroadcast(g, equation, j, letter) || isBroadcast(g, equation, i, letter));
    if (!elsewhere) return false;
  }
  return true;
}

Status einsumGradient(GradientContext& g) {
  const std::size_t count = g.node().inputs.size();
  SS_ASSIGN(const EinsumEquation equation, parseEinsum(g.attrs().text("equation", ""), count));
  for (std::size_t i = 0; i < count; ++i) {
    if (!g.needs(i)) continue;
    if (swaps(g, equation, i)) {
      std::vector<ValueId> inputs{g.dy(0)};
      std::string text = equation.output.text();
      for (std::size_t j = 0; j < count; ++j) {
        if (j == i) continue;
        inputs.push_back(g.x(j));
        text += "," + equation.operands[j].text();
      }
      // Other operands may have an ellipsis that operand i lacks; it is summed then.
      text += "->" + equation.operands[i].text();
      g.setGradient(i, g.reduceTo(g.op("Einsum", inputs, {{"equation", text}}), g.x(i)));
    } else {
      std::vector<ValueId> inputs{g.dy(0), g.shapeOf(g.x(i))};
      for (std::size_t j = 0; j < count; ++j)
        if (j != i) inputs.push_back(g.x(j));
      g.setGradient(i,
                    g.internal("EinsumGrad", inputs,
                               {{"equation", g.attrs().text("equation", "")}, {"operand", static_cast<std::int64_t>(i)}}));
    }
  }
  return {};
}

}  // namespace

constexpr OpDef kEinsumOp{
    .name = "Einsum",
    .sinceVersion = 12,
    .doc = "Sum of products over the letters that the result of the equation does not have.",
    .inputs = {1, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kMatmul,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferEinsumShape,
    .gradient = einsumGradient,
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
    .flops = einsumFlops,
};

}  // namespace stepscope::ops
