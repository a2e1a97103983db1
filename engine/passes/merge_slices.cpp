#include "engine/passes/merge_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/passes/beside.h"
#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

// Elements begin … end of one axis of a value.
struct Part {
  NodeId node;
  std::int64_t begin = 0, end = 0;
  bool gather = false;  // of one place; the axis is dropped
};

struct Axis {
  ValueId of;
  std::size_t axis = 0;
  friend bool operator<(const Axis& a, const Axis& b) {
    return std::pair(a.of.index, a.axis) < std::pair(b.of.index, b.axis);
  }
};

class SliceMerger {
 public:
  SliceMerger(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Status run() {
    std::map<Axis, std::vector<Part>> groups;
    for (const NodeId id : graph_.order()) {
      place_.emplace(id, place_.size());
      read(id, groups);
    }
    std::vector<NodeId> gone;
    for (auto& [axis, parts] : groups) {
      if (parts.size() < 2) continue;
      std::ranges::sort(parts, {}, &Part::begin);
      if (std::string reason = refusal(axis, parts); !reason.empty())
        context_.miss(parts.front().node, std::move(reason));
      else
        SS_TRY(merge(axis, parts, gone));
    }
    if (context_.result.matches == 0) return {};
    std::vector<NodeId> order;
    for (const NodeId id : graph_.order()) {
      if (!place_.contains(id)) continue;  // a Split: it goes before the first of its parts
      const auto [first, last] = before_.equal_range(id);
      for (auto it = first; it != last; ++it) order.push_back(it->second);
      order.push_back(id);
    }
    graph_.setOrder(std::move(order));
    graph_.removeNodes(gone);
    return {};
  }

 private:
  const std::optional<Shape>& shapeOf(ValueId id) const { return graph_.value(id).type.shape; }

  std::optional<std::int64_t> one(ValueId id) const {
    const auto numbers = id ? context_.inference.integers(id) : std::nullopt;
    return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
  }

  // A slice along one axis of known extent, or one place of it.
  void read(NodeId id, std::map<Axis, std::vector<Part>>& groups) const {
    const Node& node = graph_.node(id);
    const bool gather = isOp(node, "Gather");
    if (!gather && !isOp(node, "Slice")) return;
    const ValueId of = node.input(0);
    if (!shapeOf(of) || shapeOf(of)->empty()) return;
    const auto rank = static_cast<std::int64_t>(shapeOf(of)->size());
    const auto named = gather ? std::optional(node.attrs.integer("axis", 0)) : one(node.input(3));
    if (!named || *named < -rank || *named >= rank) return;
    const auto axis = static_cast<std::size_t>(*named < 0 ? *named + rank : *named);
    const auto extent = (*shapeOf(of))[axis].asKnown();
    if (!extent) return;
    const auto within = [&](std::int64_t place) {
      return std::clamp<std::int64_t>(place < 0 ? place + *extent : place, 0, *extent);
    };
    Part part{.node = id, .gather = gather};
    if (gather) {
      const auto& indices = shapeOf(node.input(1));
      const auto place = one(node.input(1));
      if (!indices || !indices->empty() || !place || *place < -*extent || *place >= *extent) return;
      part.begin = within(*place);
      part.end = part.begin + 1;
    } else {
      const auto begin = one(node.input(1)), end = one(node.input(2)), step = node.input(4) ? one(node.input(4)) : 1;
      if (!begin || !end || !step || *step != 1) return;
      part.begin = within(*begin);
      part.end = within(*end);
    }
    groups[{of, axis}].push_back(part);
  }

  std::string refusal(const Axis& axis, const std::vector<Part>& parts) const {
    const Node& first = graph_.node(parts.front().node);
    std::int64_t covered = 0;
    for (const Part& part : parts) {
      const Node& node = graph_.node(part.node);
      if (node.predicates != first.predicates || node.phase != first.phase) return "they stand in different branches of If";
      if (part.begin < covered) return "they overlap";
      if (part.begin > covered) break;
      covered = part.end;
    }
    const std::int64_t extent = *(*shapeOf(axis.of))[axis.axis].asKnown();
    if (covered != extent || parts.back().end != extent)
      return fmt::format("they do not cover axis {} of '{}', which has {} elements", axis.axis, graph_.value(axis.of).name,
                         extent);
    if (!isFloating(graph_.value(axis.of).type.dtype))
      return "no gradient goes through it, and slices cost no more than a Split";
    return {};
  }

  Status merge(const Axis& axis, const std::vector<Part>& parts, std::vector<NodeId>& gone) {
    const NodeId first = parts.front().node;
    const ValueId whole = graph_.node(first).input(0);  // another group may have replaced what was read
    std::vector<std::int64_t> sizes;
    std::vector<std::string> names;
    for (const Part& part : parts) {
      sizes.push_back(part.end - part.begin);
      names.push_back(graph_.value(whole).name + "_part");
    }
    const ValueId lengths = graph_.addConstant("parts", Tensor::ints(sizes));
    const NodeId split = addBeside(graph_, first, "Split", {whole, lengths}, std::move(names),
                                   {{"axis", static_cast<std::int64_t>(axis.axis)}});
    for (const Part& part : parts) graph_.mutableNode(split).provenance.sources.push_back(part.node);
    before_.emplace(std::ranges::min(parts, {}, [&](const Part& part) { return place_.at(part.node); }).node, split);
    SS_TRY(context_.inference.inferNode(split));
    Replacements replacements(graph_);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const ValueId result = graph_.node(split).output(i);
      if (!parts[i].gather) {
        replacements.replace(graph_.node(parts[i].node).output(0), result);
        gone.push_back(parts[i].node);
        continue;
      }
      const std::int64_t dropped = static_cast<std::int64_t>(axis.axis);
      const ValueId axes = graph_.addConstant("axis", Tensor::ints({&dropped, 1}));
      Node& node = graph_.mutableNode(parts[i].node);
      node.op = "Squeeze";
      node.inputs = {result, axes};
      node.attrs = {};
      node.provenance.pass = graph_.pass();
      graph_.logChange(parts[i].node);
    }
    replacements.apply();
    context_.match();
    return {};
  }

  Graph& graph_;
  PassContext& context_;
  std::unordered_map<NodeId, std::size_t> place_;   // in the order as it came
  std::unordered_multimap<NodeId, NodeId> before_;  // by the first of its parts: the Split that goes before it
};

}  // namespace

Status mergeSlices(Graph& graph, PassContext& context) { return SliceMerger(graph, context).run(); }

}  // namespace stepscope
