#include "engine/step/pointed_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/snapshot/utf8.h"
#include "engine/step/breakpoint.h"

namespace stepscope {
namespace {

// A view may show a node that later passes took away: its key is that of the last stage that had it.
NodeKey keyOf(NodeId node, const Stepper& stepper, std::span<const Stage> stages) {
  if (!node || static_cast<std::size_t>(node.index) >= stepper.graph().nodeCapacity()) return {};
  if (stepper.graph().alive(node)) return stepper.keys().keyOf(node);
  for (std::size_t i = stages.size(); i-- > 0;) {
    const Graph& graph = *stages[i].graph;
    if (static_cast<std::size_t>(node.index) < graph.nodeCapacity() && graph.alive(node)) return KeyIndex(graph).keyOf(node);
  }
  return {};
}

}  // namespace

std::vector<NodeId> nodesOf(const ExecutionPlan& plan) {
  std::vector<NodeId> nodes;
  nodes.reserve(plan.instructions.size());
  // Copies and commits only serve a node, which has an instruction of its own.
  for (const Instruction& instruction : plan.instructions)
    nodes.push_back(instruction.kind == InstructionKind::kKernel ? instruction.node : NodeId{});
  return nodes;
}

void PointedPlaces::setBreakpoints(const std::vector<snapshot::Breakpoint>& breakpoints, const Stepper& stepper,
                                   std::span<const Stage> stages) {
  breakpoints_.clear();
  for (const snapshot::Breakpoint& b : breakpoints) {
    Place place;
    if (b.condition_case() == snapshot::Breakpoint::kNode) place.node = keyOf(NodeId{b.node()}, stepper, stages);
    if (b.condition_case() == snapshot::Breakpoint::kInstruction && b.instruction() >= 0)
      place.instruction = placeOf(stepper.keys(), nodesOf(stepper.plan()), std::min<int>(b.instruction(), stepper.count()));
    if (b.condition_case() == snapshot::Breakpoint::kPredicate)
      if (const auto predicate = parsePredicate(b.predicate()))
        if (const ValueId value = stepper.graph().findValue(predicate->value)) place.value = stepper.keys().keyOf(value);
    breakpoints_.push_back(std::move(place));
  }
}

void PointedPlaces::setWatched(const std::vector<ValueId>& values, const Stepper& stepper) {
  watched_.clear();
  for (const ValueId value : values) watched_.push_back(stepper.keys().keyOf(value));
}

std::vector<std::string> PointedPlaces::resolve(const Stepper& stepper, StepContext& context) const {
  std::vector<std::string> nowhere;
  if (breakpoints_.empty() && watched_.empty()) return nowhere;
  const KeyIndex& keys = stepper.keys();
  for (std::size_t i = 0; i < std::min(breakpoints_.size(), context.breakpoints.size()); ++i) {
    snapshot::Breakpoint& b = context.breakpoints[i];
    const Place& place = breakpoints_[i];
    if (place.node) {
      const NodeId node = keys.carrier(place.node);
      b.set_node(node.index);
      if (!node)
        nowhere.push_back(toUtf8(fmt::format("breakpoint {}: {} does not run in this plan: {}", b.id(), place.node.text(),
                                             keys.absence(place.node))));
    } else if (b.condition_case() == snapshot::Breakpoint::kInstruction) {
      b.set_instruction(findPlace(place.instruction, keys, nodesOf(stepper.plan())));
    } else if (place.value) {
      const auto predicate = parsePredicate(b.predicate());
      const ValueId value = keys.find(place.value);
      if (predicate && value && !stepper.graph().findValue(predicate->value))
        b.set_predicate(stepper.graph().value(value).name + b.predicate().substr(predicate->value.size()));
    }
  }
  if (watched_.size() != context.watched.all().size()) return nowhere;  // they were named while there was no plan
  std::vector<ValueId> watched;
  for (const ValueKey& key : watched_) watched.push_back(keys.find(key));
  context.watched.rename(watched);
  return nowhere;
}

}  // namespace stepscope
