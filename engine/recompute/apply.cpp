#include "engine/recompute/apply.h"

#include <unordered_map>
#include <unordered_set>

#include "engine/ir/recomputed_copy.h"

namespace stepscope {
namespace {

class Rewriter {
 public:
  Rewriter(Graph& graph, const std::vector<const RecomputeCandidate*>& chosen) : graph_(graph) {
    for (const RecomputeCandidate* candidate : chosen) {
      for (const ValueId id : candidate->dropped) dropped_.insert(id.index);
      for (const NodeId id : candidate->repeated) repeated_.insert(id.index);
    }
    for (const StateUpdate& update : graph.stateUpdates) nextStates_.insert(update.next.index);
    const auto uses = graph.uses();
    for (const NodeId id : graph.order()) {
      if (graph.node(id).phase != Phase::kForward) continue;
      for (const ValueId out : graph.node(id).outputs)
        if (out)
          for (const Use& use : uses[static_cast<std::size_t>(out.index)])
            if (graph.node(use.node).phase != Phase::kForward) readLater_.insert(out.index);
    }
  }

  std::size_t run() {
    const std::vector<NodeId> before = graph_.order();
    for (const NodeId id : before) {
      if (graph_.node(id).phase == Phase::kBackward) {
        for (std::size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
          const ValueId in = graph_.node(id).inputs[i];
          if (in && dropped_.contains(in.index)) graph_.setInput(id, i, again(in));
        }
      }
      order_.push_back(id);
    }
    graph_.setOrder(order_);
    graph_.removeDeadNodes();
    return clones_.size();
  }

 private:
  static constexpr int kDeepest = 512;  // clones of clones; from there on originals are read, which costs memory only

  // The value as a clone makes it, with the clones that it takes put into the order here.
  ValueId again(ValueId value, int depth = 0) {
    const NodeId producer = graph_.value(value).producer;
    const auto output = static_cast<std::size_t>(graph_.value(value).outputIndex);
    if (const auto known = clones_.find(producer.index); known != clones_.end())
      return graph_.node(known->second).outputs[output];
    const Node original = graph_.node(producer);
    std::vector<ValueId> inputs = original.inputs;
    for (ValueId& in : inputs)
      if (in && graph_.value(in).role == ValueRole::kNodeOutput && depth < kDeepest && runsAgain(in))
        in = again(in, depth + 1);
    std::vector<std::string> names;
    for (const ValueId out : original.outputs)
      names.push_back(out && !nextStates_.contains(out.index) ? graph_.value(out).name + "_recompute" : std::string());
    const NodeId clone = addRecomputedCopy(graph_, producer, std::move(inputs), std::move(names));
    const Node& node = graph_.node(clone);
    for (std::size_t i = 0; i < original.outputs.size(); ++i) {
      if (!node.outputs[i]) continue;
      Value& copy = graph_.mutableValue(node.outputs[i]);
      copy.type = graph_.value(original.outputs[i]).type;
      copy.layout = graph_.value(original.outputs[i]).layout;
    }
    order_.push_back(clone);
    clones_.emplace(producer.index, clone);
    return node.outputs[output];
  }

  // What a clone reads: kept values as they are, dropped ones and what nobody kept from clones.
  bool runsAgain(ValueId value) const {
    return dropped_.contains(value.index) ||
           (repeated_.contains(graph_.value(value).producer.index) && !readLater_.contains(value.index));
  }

  Graph& graph_;
  std::unordered_set<std::int32_t> dropped_, repeated_, nextStates_, readLater_;
  std::unordered_map<std::int32_t, NodeId> clones_;  // by original node
  std::vector<NodeId> order_;
};

}  // namespace

std::size_t applyRecompute(Graph& graph, const std::vector<const RecomputeCandidate*>& chosen) {
  return chosen.empty() ? 0 : Rewriter(graph, chosen).run();
}

}  // namespace stepscope
