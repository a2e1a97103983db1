#include "engine/passes/token_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/ops/class_loss.h"
#include "engine/passes/token_axes.h"

namespace stepscope {

ValueId inputBehindViews(const Graph& graph, ValueId value) {
  while (const NodeId made = graph.value(value).producer) {
    const Node& node = graph.node(made);
    if (!isView(node) && !isOp(node, "Cast") && !isOp(node, "Identity")) return {};
    value = node.input(0);
  }
  return graph.value(value).role == ValueRole::kInput ? value : ValueId{};
}

TokenFlow::TokenFlow(const Graph& graph, const Inference& inference, const TokenInput& input)
    : graph_(graph),
      inference_(inference),
      input_(input),
      readers_(graph),
      states_(graph.valueCapacity()),
      tokenwise_(graph.nodeCapacity(), false) {
  const Shape& shape = *graph.value(input.ids).type.shape;
  batch_ = shape[0];
  length_ = shape[1];
  if (input.mask) states_[static_cast<std::size_t>(input.mask.index)] = State{{Held::kNothing, Held::kMask}};
  for (const NodeId id : graph.order()) {
    visit(graph.node(id));
    if (refusal_) return;
  }
}

const Shape* TokenFlow::shapeOf(ValueId id) const {
  if (!id) return nullptr;
  const ValueType& type = graph_.value(id).type;
  return type.kind == ValueKind::kTensor && type.shape ? &*type.shape : nullptr;
}

const TokenFlow::State* TokenFlow::stateOf(ValueId id) const {
  if (!id || static_cast<std::size_t>(id.index) >= states_.size()) return nullptr;
  const auto& state = states_[static_cast<std::size_t>(id.index)];
  return state ? &*state : nullptr;
}

TokenFlow::Held TokenFlow::heldAt(ValueId id, std::size_t axis) const {
  const State* state = stateOf(id);
  return state && axis < state->held.size() ? state->held[axis] : Held::kNothing;
}

bool TokenFlow::dependsOnPadding(ValueId value) const {
  const State* state = stateOf(value);
  return state && std::ranges::any_of(state->held, [](Held h) { return h != Held::kNothing && h != Held::kMask; });
}

TokenForm TokenFlow::shaped(ValueId value) const {
  const Shape* shape = shapeOf(value);
  if (!shape) return TokenForm::kNone;
  if (shape->size() >= 2 && (*shape)[0] == batch_ && (*shape)[1] == length_) return TokenForm::kGrid;
  return !shape->empty() && (*shape)[0] == batch_ * length_ ? TokenForm::kFlat : TokenForm::kNone;
}

TokenForm TokenFlow::form(ValueId value) const {
  const State* state = stateOf(value);
  if (!state || !dependsOnPadding(value)) return TokenForm::kNone;
  if (state->flat) return TokenForm::kFlat;
  const auto others = [&](std::size_t axis) { return axis != 1 && state->held[axis] != Held::kNothing; };
  for (std::size_t axis = 0; axis < state->held.size(); ++axis)
    if (others(axis)) return TokenForm::kNone;
  return shaped(value) == TokenForm::kGrid ? TokenForm::kGrid : TokenForm::kNone;
}

void TokenFlow::setState(ValueId id, State state) {
  if (!id) return;
  if (std::ranges::all_of(state.held, [](Held h) { return h == Held::kNothing; })) return;
  states_[static_cast<std::size_t>(id.index)] = std::move(state);
  if (dependsOnPadding(id) && readers_.isKept(id))
    refuse(graph_.value(id).producer,
           fmt::format("'{}' is an output or is watched, with the numbers of padded tokens", graph_.value(id).name));
}

void TokenFlow::refuse(NodeId node, std::string reason) {
  if (!refusal_) refusal_ = Refusal{node, std::move(reason)};
}

void TokenFlow::visit(const Node& node) {
  if (isEmbedding(node)) {
    tokenwise_[static_cast<std::size_t>(node.id.index)] = true;
    return setState(node.output(0), {{Held::kNothing, Held::kAnything, Held::kNothing}});
  }
  if (isPadComparison(node)) return setState(node.output(0), {{Held::kNothing, Held::kMask}});
  bool depends = false, masks = false;
  for (const ValueId in : node.inputs) {
    depends = depends || dependsOnPadding(in);
    masks = masks || stateOf(in) != nullptr;
  }
  if (!masks) return;
  if (isOp(node, "Shape") || isOp(node, "Size")) return;
  if (depends) {
    if (!node.predicates.empty()) return refuse(node.id, "it belongs to a branch of If");
    TokenForm rows = TokenForm::kNone;
    bool alike = true;
    for (const ValueId in : node.inputs) {
      if (!dependsOnPadding(in)) continue;
      alike = alike && form(in) != TokenForm::kNone && (rows == TokenForm::kNone || rows == form(in));
      rows = form(in);
    }
    if (alike && tokenwise(node, rows)) {
      tokenwise_[static_cast<std::size_t>(node.id.index)] = true;
      products_ += isOp(node, "MatMul") || isOp(node, "Gemm") ? 1 : 0;
      if (isCrossEntropy(node)) return;
      if (inference_.ops().isPointwise(node)) return pointwise(node);
      if (isView(node)) return reshaped(node);
      for (const ValueId out : node.outputs) {
        if (!out) continue;
        State state{std::vector<Held>(shapeOf(out)->size(), Held::kNothing), rows == TokenForm::kFlat};
        state.held[rows == TokenForm::kFlat ? 0 : 1] = Held::kAnything;
        setState(out, std::move(state));
      }
      return;
    }
    if (losesNothing(node)) return;
    if (rows == TokenForm::kFlat && !isView(node) && !isOp(node, "Gather") && !isOp(node, "Dropout") &&
        !inference_.ops().isPointwise(node))
      return refuse(node.id, fmt::format("{} reads the rows of all tokens together", node.label()));
  }
  if (inference_.ops().isPointwise(node) || isOp(node, "Dropout") || node.op == "DropoutPart" || isOp(node, "Expand"))
    return pointwise(node);
  if (isView(node)) return reshaped(node);
  if (isOp(node, "Transpose")) return transposed(node);
  if (isOp(node, "Slice") || isOp(node, "Split")) return cut(node);
  if (!depends) return;  // what else is made of a mask is no mask
  if (isOp(node, "MatMul")) return multiplied(node);
  if (isOp(node, "Softmax")) return normalised(node);
  if (isOp(node, "ReduceSum") || isOp(node, "ReduceMean")) return reduced(node);
  if (isOp(node, "Gather")) return picked(node);
  if (isOp(node, "Concat")) return joined(node);
  refuse(node.id, fmt::format("{} reads padded tokens", node.label()));
}

// One row of a table for every token: from here on there are numbers of padded tokens. Ids and what is counted of them are
// computed for all tokens.
bool TokenFlow::isEmbedding(const Node& node) const {
  if (!isOp(node, "Gather") || node.attrs.integer("axis", 0) != 0 || !node.predicates.empty()) return false;
  const Shape *table = shapeOf(node.input(0)), *ids = shapeOf(node.input(1));
  return table && table->size() == 2 && isFloating(graph_.value(node.input(0)).type.dtype) && ids && ids->size() == 2 &&
         shaped(node.input(1)) == TokenForm::kGrid && !stateOf(node.input(0)) && !dependsOnPadding(node.input(1));
}

// Whether the ids are compared with the padding value.
bool TokenFlow::isPadComparison(const Node& node) const {
  if (!isOp(node, "Equal") || input_.mask) return false;
  for (const std::size_t side : {0u, 1u}) {
    const auto number = inference_.integers(node.input(1 - side));
    if (node.input(side) == input_.ids && number && number->size() == 1 && number->front() == input_.pad) return true;
  }
  return false;
}

bool TokenFlow::tokenwise(const Node& node, TokenForm form) const {
  const std::size_t leading = form == TokenForm::kGrid ? 2 : 1;
  for (const ValueId out : node.outputs)
    if (out && !shapeOf(out)) return false;
  if (node.outputs.empty() || !node.output(0)) return false;
  const Shape& result = *shapeOf(node.output(0));
  const auto trails = [&](std::int64_t axis, std::size_t rank) {
    const auto known = axisOf(axis, rank);
    return known && *known >= leading;
  };
  const auto allTrail = [&](ValueId axes, std::size_t rank) {
    const auto numbers = axes ? inference_.integers(axes) : std::nullopt;
    return numbers && std::ranges::all_of(*numbers, [&](std::int64_t axis) { return trails(axis, rank); });
  };
  if (inference_.ops().isPointwise(node)) {
    for (const ValueId in : node.inputs) {
      if (!in) continue;
      const Shape* shape = shapeOf(in);
      if (!shape || shape->size() > result.size()) return false;
      if (dependsOnPadding(in)) {
        if (shape->size() != result.size()) return false;
      } else if (shape->size() + leading > result.size()) {
        // Its own rows, one for all, one for each position, or one for each batch entry.
        const std::size_t missing = result.size() - shape->size();
        for (std::size_t axis = missing; axis < leading; ++axis)
          if (!((*shape)[axis - missing] == Dim(1)) && !((*shape)[axis - missing] == result[axis])) return false;
      }
    }
    return shaped(node.output(0)) == form;
  }
  if (isOp(node, "Dropout")) {
    const bool maskRead = node.output(1) && !readers_.of(node.output(1)).empty();
    return dependsOnPadding(node.input(0)) && !maskRead && shaped(node.output(0)) == form;
  }
  if (isCrossEntropy(node) || !node.domain.empty()) return false;  // losesNothing() judges the loss
  const Shape* x = shapeOf(node.input(0));
  if (node.op == "Gather")  // an embedding
    return dependsOnPadding(node.input(1)) && !dependsOnPadding(node.input(0)) && node.attrs.integer("axis", 0) == 0;
  if (!x || !dependsOnPadding(node.input(0))) return false;
  for (std::size_t i = 1; i < node.inputs.size(); ++i)
    if (dependsOnPadding(node.input(i)) && node.op != "Concat") return false;
  if (node.op == "MatMul") return shapeOf(node.input(1)) && shapeOf(node.input(1))->size() == 2 && x->size() > leading;
  if (node.op == "Gemm")
    return form == TokenForm::kFlat && node.attrs.integer("transA", 0) == 0 &&
           (!node.input(2) || (shapeOf(node.input(2)) && shapeOf(node.input(2))->size() <= 1));
  if (node.op == "LayerNormalization" || node.op == "RMSNormalization")
    return node.outputs.size() == 1 && trails(node.attrs.integer("axis", -1), x->size());
  if (node.op == "Softmax" || node.op == "LogSoftmax") return trails(node.attrs.integer("axis", -1), x->size());
  if (node.op == "ReduceMean" || node.op == "ReduceSum") return allTrail(node.input(1), x->size());
  if (node.op == "Split") return trails(node.attrs.integer("axis", 0), x->size());
  if (node.op == "Slice") return allTrail(node.input(3), x->size());
  if (node.op == "Concat")
    return trails(node.attrs.integer("axis", 0), x->size()) &&
           std::ranges::all_of(node.inputs, [&](ValueId in) { return dependsOnPadding(in); });
  if (isView(node)) {  // the rows stay rows
    const TokenForm to = shaped(node.output(0));
    if (to == TokenForm::kNone) return false;
    const std::size_t behind = to == TokenForm::kGrid ? 2 : 1;
    for (std::size_t axis = behind; axis < result.size(); ++axis)
      if (!result[axis].known()) return false;
    return productOf(*x, leading, x->size()) == productOf(result, behind, result.size());
  }
  return false;
}

// A loss that ignores the labels of padded tokens reads none of their scores. True where the node is such a loss, or is
// refused because it is another one.
bool TokenFlow::losesNothing(const Node& node) {
  if (!isCrossEntropy(node)) return false;
  const ValueId labels = dependsOnPadding(node.input(1)) ? ValueId{} : inputBehindViews(graph_, node.input(1));
  std::string reason;
  if (!ignoredLabel(graph_, node))
    reason = "the loss ignores no label";
  else if (node.attrs.text("reduction", "mean") == "none")
    reason = "the loss of every token is an output";
  else if (node.output(1))
    reason = "the log-probabilities of all tokens are an output";
  else if (form(node.input(0)) != TokenForm::kFlat || shapeOf(node.input(0))->size() != 2)
    reason = "its scores are no rows of tokens";
  else if (!labels || shaped(node.input(1)) != TokenForm::kFlat ||
           std::ranges::find(input_.labels, graph_.value(labels).name) == input_.labels.end())
    reason = "its labels are no input with one for every token";
  if (reason.empty())
    tokenwise_[static_cast<std::size_t>(node.id.index)] = true;
  else
    refuse(node.id, std::move(reason));
  return true;
}

}  // namespace stepscope
