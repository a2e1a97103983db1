// What walks the whole graph: who reads what, the topological order, dead nodes.
#include <algorithm>
#include <limits>
#include <queue>

#include "engine/ir/graph.h"

namespace stepscope {
namespace {

// Whether producers come before consumers already; subgraphs count as reading what they capture.
bool isSorted(const Graph& graph) {
  std::vector<bool> made(graph.nodeCapacity(), false);
  const auto ready = [&](ValueId on) {
    const NodeId producer = on ? graph.value(on).producer : NodeId{};
    return !producer || made[static_cast<std::size_t>(producer.index)];
  };
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!node.subgraphs.empty()) return false;  // the sort looks closer
    for (const ValueId in : node.inputs)
      if (!ready(in)) return false;
    for (const Predicate& predicate : node.predicates)
      if (!ready(predicate.condition)) return false;
    made[static_cast<std::size_t>(id.index)] = true;
  }
  return true;
}

}  // namespace

UseTable Graph::uses() const {
  const auto forEach = [&](auto&& body) {
    for (const NodeId id : order()) {
      const Node& node = this->node(id);
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i]) body(node.inputs[i], Use{id, i});
      for (const Predicate& predicate : node.predicates)
        body(predicate.condition, Use{id, std::numeric_limits<std::size_t>::max()});
    }
  };
  std::vector<std::size_t> begins(values_.size() + 1, 0);
  forEach([&](ValueId value, Use) { ++begins[static_cast<std::size_t>(value.index) + 1]; });
  for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  std::vector<Use> uses(begins.back());
  std::vector<std::size_t> next(begins.begin(), begins.end() - 1);
  forEach([&](ValueId value, Use use) { uses[next[static_cast<std::size_t>(value.index)]++] = use; });
  return {std::move(begins), std::move(uses)};
}

Status Graph::sortTopologically() {
  if (isSorted(*this)) return {};
  // Kahn's algorithm with the present position as priority: stable, and linear but for the heap.
  std::vector<std::size_t> position(nodes_.size(), 0);
  std::vector<int> pending(nodes_.size(), 0);
  std::vector<std::vector<NodeId>> consumers(nodes_.size());
  for (std::size_t i = 0; i < order().size(); ++i) position[static_cast<std::size_t>(order()[i].index)] = i;
  const auto depend = [&](const Node& node, ValueId on) {
    if (!on) return;
    const NodeId producer = value(on).producer;
    if (!producer) return;
    consumers[static_cast<std::size_t>(producer.index)].push_back(node.id);
    ++pending[static_cast<std::size_t>(node.id.index)];
  };
  for (const NodeId id : order()) {
    for (const ValueId in : node(id).inputs) depend(node(id), in);
    for (const Predicate& predicate : node(id).predicates) depend(node(id), predicate.condition);
    // What a branch takes from outside of it is an input of the branch, under the outer name.
    for (const auto& [attribute, body] : node(id).subgraphs)
      for (const ValueId captured : body->inputs()) {
        const ValueId outer = findValue(body->value(captured).name);
        if (outer && value(outer).producer != id) depend(node(id), outer);
      }
  }
  using Entry = std::pair<std::size_t, NodeId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (const NodeId id : order())
    if (pending[static_cast<std::size_t>(id.index)] == 0) ready.emplace(position[static_cast<std::size_t>(id.index)], id);
  std::vector<NodeId> sorted;
  sorted.reserve(order().size());
  while (!ready.empty()) {
    const NodeId id = ready.top().second;
    ready.pop();
    sorted.push_back(id);
    for (const NodeId next : consumers[static_cast<std::size_t>(id.index)])
      if (--pending[static_cast<std::size_t>(next.index)] == 0)
        ready.emplace(position[static_cast<std::size_t>(next.index)], next);
  }
  if (sorted.size() != order().size()) {
    std::string names;
    int shown = 0;
    for (const NodeId id : order())
      if (pending[static_cast<std::size_t>(id.index)] > 0 && shown++ < 5)
        names += (names.empty() ? "" : ", ") + node(id).label();
    return invalid("graph '" + name + "': nodes form a cycle or wait for one: " + names + "; expected an acyclic graph");
  }
  setOrder(std::move(sorted));
  return {};
}

std::size_t Graph::removeDeadNodes(const std::vector<ValueId>& keep) {
  std::vector<bool> needed(values_.size(), false);
  for (const ValueId id : outputs_)
    if (id) needed[static_cast<std::size_t>(id.index)] = true;
  for (const StateUpdate& update : stateUpdates) needed[static_cast<std::size_t>(update.next.index)] = true;
  for (const ValueId id : keep)
    if (id) needed[static_cast<std::size_t>(id.index)] = true;
  std::vector<NodeId> kept;
  std::vector<NodeId> dead;
  for (std::size_t i = order().size(); i-- > 0;) {
    const Node& node = this->node(order()[i]);
    const bool live = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId out) { return out && needed[static_cast<std::size_t>(out.index)]; });
    if (!live) {
      dead.push_back(order()[i]);
      continue;
    }
    kept.push_back(order()[i]);
    for (const ValueId in : node.inputs)
      if (in) needed[static_cast<std::size_t>(in.index)] = true;
    for (const Predicate& predicate : node.predicates) needed[static_cast<std::size_t>(predicate.condition.index)] = true;
  }
  if (dead.empty()) return 0;
  std::reverse(kept.begin(), kept.end());
  setOrder(std::move(kept));
  for (const NodeId id : dead) kill(id);
  return dead.size();
}

}  // namespace stepscope
