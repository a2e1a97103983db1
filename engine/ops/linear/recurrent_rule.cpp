#include "engine/ops/linear/recurrent_rule.h"

#include "engine/ops/linear/matmul_rule.h"

namespace stepscope::ops {
namespace {

struct Extents {
  Dim steps, batch, hidden;
  std::int64_t directions = 1;
  bool batchFirst = false;
  Shape state() const { return batchFirst ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden}; }
  Shape kept(Dim width) const {
    return batchFirst ? Shape{directions, batch, steps, width} : Shape{directions, steps, batch, width};
  }
  Shape all() const {
    return batchFirst ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden};
  }
};

Result<Extents> extentsOf(ShapeContext& c, std::size_t first, std::int64_t gates) {
  SS_TRY(requireOneType(c, {first, first + 1, first + 2, first + 3, first + 5, first + 6, first + 7}));
  for (std::size_t i = first; i < first + 3; ++i)
    if (c.rankKnown(i) && c.inputShape(i)->size() != 3)
      return c.error("input " + std::to_string(i) + " has shape " + shapeText(*c.inputShape(i)) + "; expected rank 3");
  Extents e;
  const std::string direction = c.attrs().text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return c.error("attribute 'direction' is '" + direction + "'; expected forward, reverse or bidirectional");
  e.directions = direction == "bidirectional" ? 2 : 1;
  e.batchFirst = c.attrs().integer("layout", 0) != 0;
  e.steps = c.rankKnown(first) ? (*c.inputShape(first))[e.batchFirst ? 1 : 0] : c.freshDim(0, 0);
  e.batch = c.rankKnown(first) ? (*c.inputShape(first))[e.batchFirst ? 0 : 1] : c.freshDim(0, 2);
  const std::int64_t named = c.attrs().integer("hidden_size", 0);
  e.hidden = c.rankKnown(first + 2) ? (*c.inputShape(first + 2))[2] : named > 0 ? Dim(named) : c.freshDim(0, 3);
  if (named > 0) SS_TRY(c.unify(e.hidden, Dim(named), "hidden_size and the columns of R"));
  for (std::size_t i = first + 1; i < first + 3; ++i) {
    if (!c.rankKnown(i)) continue;
    SS_TRY(c.unify((*c.inputShape(i))[0], Dim(e.directions), "directions and the first extent of a weight"));
    SS_TRY(c.unify((*c.inputShape(i))[1], Dim(gates) * e.hidden, "rows of a weight and gates times hidden_size"));
  }
  if (c.rankKnown(first) && c.rankKnown(first + 1))
    SS_TRY(c.unify((*c.inputShape(first))[2], (*c.inputShape(first + 1))[2], "input size of X and W"));
  if (c.rankKnown(first + 4) && c.inputShape(first + 4)->size() == 1)
    SS_TRY(c.unify((*c.inputShape(first + 4))[0], e.batch, "sequence_lens and the batch"));
  for (const std::size_t i : {first + 5, first + 6})
    if (c.rankKnown(i) && c.inputShape(i)->size() == 3)
      SS_TRY(c.unifyShapes(*c.inputShape(i), e.state(), "initial state and [directions, batch, hidden]:"));
  return e;
}

// Number of the output that keeps the gates: after Y, Y_h and, of LSTM, Y_c.
std::size_t firstKept(std::int64_t gates) { return gates == 4 ? 3 : 2; }

constexpr std::size_t kGradientsOfOutputs = 3;  // dY, dY_h, dY_c in front of the inputs

// Of X, W, R.
double productsOf(std::span<const std::span<const std::int64_t>> inputs) {
  const auto x = inputs[0], w = inputs[1], r = inputs[2];
  const double steps = static_cast<double>(x[0]) * static_cast<double>(x[1]);
  return 2 * steps * static_cast<double>(w[0] * w[1]) * static_cast<double>(w[2] + r[2]);
}

}  // namespace

Status inferRecurrent(ShapeContext& c, std::int64_t gates) {
  SS_ASSIGN(const Extents e, extentsOf(c, 0, gates));
  if (c.hasOutput(0)) c.setOutput(0, c.inputDType(0), e.all());
  const std::size_t kept = firstKept(gates);
  for (std::size_t i = 1; i < kept; ++i)
    if (c.hasOutput(i)) c.setOutput(i, c.inputDType(0), e.state());
  if (c.hasOutput(kept)) c.setOutput(kept, c.inputDType(0), e.kept(Dim(gates) * e.hidden));
  if (c.hasOutput(kept + 1)) c.setOutput(kept + 1, c.inputDType(0), e.kept(e.hidden));
  return {};
}

Status inferRecurrentGradient(ShapeContext& c, std::int64_t gates) {
  SS_ASSIGN(const Extents e, extentsOf(c, 3, gates));
  const DType dtype = c.inputDType(3);
  for (std::size_t i = 0; i < 3; ++i) c.setOutput(i, dtype, c.inputShape(3 + i));
  c.setOutput(3, dtype, Shape{e.directions, Dim(2 * gates) * e.hidden});
  c.setOutput(4, dtype, e.state());
  c.setOutput(5, dtype, e.state());
  if (c.hasOutput(6)) c.setOutput(6, dtype, Shape{e.directions, Dim(3) * e.hidden});
  return {};
}

Status recurrentGradient(GradientContext& g, std::string_view gradOp, std::int64_t gates) {
  // Y, Y_h and Y_c may be missing from the node; only those that carry a gradient are passed on.
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < 3; ++i)
    inputs.push_back(i < g.node().outputs.size() && g.node().outputs[i].valid() ? g.dy(i) : ValueId{});
  for (std::size_t i = 0; i < 8; ++i) inputs.push_back(i < g.node().inputs.size() ? g.x(i) : ValueId{});
  inputs.push_back(g.ensureOutput(0));
  if (gates > 1)
    for (const std::size_t i : {firstKept(gates), firstKept(gates) + 1}) inputs.push_back(g.ensureOutput(i));
  const std::vector<ValueId> gradients =
      g.emit(kInternalDomain, gradOp, inputs, g.node().input(7).valid() ? 7 : 6, g.attrs());
  constexpr std::array<std::size_t, 7> kInputs{0, 1, 2, 3, 5, 6, 7};  // input 4 holds lengths
  for (std::size_t i = 0; i < kInputs.size(); ++i)
    if (kInputs[i] < g.node().inputs.size() && g.needs(kInputs[i])) g.setGradient(kInputs[i], gradients[i]);
  return {};
}

double recurrentFlops(const OpShapes& s) { return productsOf(s.inputs); }
double recurrentGradFlops(const OpShapes& s) { return 2 * productsOf(s.inputs.subspan(kGradientsOfOutputs)); }

}  // namespace stepscope::ops
