#include "engine/passes/eliminate_concats.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

// Where the parts of a Concat begin along its axis; one more than parts. Nothing where an extent is not known.
std::optional<std::vector<std::int64_t>> bordersOf(const Graph& graph, const Node& concat, std::size_t axis) {
  std::vector<std::int64_t> borders{0};
  for (const ValueId part : concat.inputs) {
    const auto& shape = graph.value(part).type.shape;
    const auto extent = shape && axis < shape->size() ? (*shape)[axis].asKnown() : std::nullopt;
    if (!extent) return std::nullopt;
    borders.push_back(borders.back() + *extent);
  }
  return borders;
}

std::optional<std::int64_t> one(const Inference& inference, ValueId id) {
  const auto numbers = id ? inference.integers(id) : std::nullopt;
  return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

class Eliminator {
 public:
  Eliminator(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Status run() {
    std::vector<bool> output(graph_.valueCapacity(), false);
    for (const ValueId id : graph_.outputs()) output[static_cast<std::size_t>(id.index)] = true;
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      const Node* concat = node.input(0) ? producerOf(graph_, node.input(0), "Concat") : nullptr;
      if (!concat || (!isOp(node, "Slice") && !isOp(node, "Split"))) continue;
      std::unordered_map<ValueId, ValueId> found;
      std::string why = isOp(node, "Slice") ? readSlice(node, *concat, found) : readSplit(node, *concat, found);
      if (why.empty() && node.predicates != concat->predicates) why = "the Concat belongs to another branch of If";
      for (const auto& [from, to] : found)
        if (why.empty() && output[static_cast<std::size_t>(from.index)]) why = "its result is an output of the graph";
      if (!why.empty()) {
        context_.miss(id, why);
        continue;
      }
      replacements_.insert(found.begin(), found.end());
      gone_.push_back(id);
      context_.match();
    }
    if (context_.result.matches == 0) return {};
    graph_.replaceAllUses(replacements_);
    graph_.removeNodes(gone_);
    graph_.removeDeadNodes();
    return {};
  }

 private:
  std::optional<std::size_t> axisOf(const Node& concat) const {
    const auto& shape = graph_.value(concat.output(0)).type.shape;
    if (!shape) return std::nullopt;
    const std::int64_t axis = concat.attrs.integer("axis", 0);
    return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape->size()) : axis);
  }

  std::string readSlice(const Node& slice, const Node& concat, std::unordered_map<ValueId, ValueId>& found) const {
    const auto axis = axisOf(concat);
    const auto borders = axis ? bordersOf(graph_, concat, *axis) : std::nullopt;
    if (!borders) return "the extents of the parts are not known";
    const auto along = slice.input(3) ? one(context_.inference, slice.input(3)) : 0;
    const auto rank = static_cast<std::int64_t>(graph_.value(concat.output(0)).type.shape->size());
    if (!along || static_cast<std::size_t>(*along < 0 ? *along + rank : *along) != *axis)
      return "it slices another axis than the parts were joined along";
    const auto begin = one(context_.inference, slice.input(1)), end = one(context_.inference, slice.input(2));
    const auto step = slice.input(4) ? one(context_.inference, slice.input(4)) : 1;
    if (!begin || !end || step != 1) return "where it begins and ends is not known, or it steps";
    const std::int64_t extent = borders->back();
    const auto within = [&](std::int64_t place) {
      return std::clamp<std::int64_t>(place < 0 ? place + extent : place, 0, extent);
    };
    for (std::size_t i = 0; i < concat.inputs.size(); ++i)
      if ((*borders)[i] == within(*begin) && (*borders)[i + 1] == within(*end)) {
        found[slice.output(0)] = concat.inputs[i];
        return {};
      }
    return fmt::format("places {} to {} are no part that was joined", within(*begin), within(*end));
  }

  std::string readSplit(const Node& split, const Node& concat, std::unordered_map<ValueId, ValueId>& found) const {
    const auto axis = axisOf(concat);
    const auto rank = static_cast<std::int64_t>(axis ? graph_.value(concat.output(0)).type.shape->size() : 0);
    const std::int64_t along = split.attrs.integer("axis", 0);
    if (!axis || static_cast<std::size_t>(along < 0 ? along + rank : along) != *axis)
      return "it splits another axis than the parts were joined along";
    if (split.outputs.size() != concat.inputs.size()) return "it makes another number of parts than were joined";
    for (std::size_t i = 0; i < split.outputs.size(); ++i) {
      if (!split.outputs[i]) continue;
      const auto &to = graph_.value(split.outputs[i]).type.shape, &from = graph_.value(concat.inputs[i]).type.shape;
      if (!to || !from || *to != *from) return fmt::format("part {} has another extent than the one that was joined", i);
      found[split.outputs[i]] = concat.inputs[i];
    }
    return {};
  }

  Graph& graph_;
  PassContext& context_;
  std::unordered_map<ValueId, ValueId> replacements_;
  std::vector<NodeId> gone_;
};

}  // namespace

Status eliminateConcats(Graph& graph, PassContext& context) { return Eliminator(graph, context).run(); }

}  // namespace stepscope
