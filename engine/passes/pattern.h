// What passes that look for patterns ask of a graph: who makes a value, who reads it, whether it may disappear.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"

namespace stepscope {

// An op of the default domain.
inline bool isOp(const Node& node, std::string_view op) { return node.domain.empty() && node.op == op; }

// The node that makes the value, if it is `op`; else null.
const Node* producerOf(const Graph& graph, ValueId value, std::string_view op);

// `target` becomes another node: op and attributes of `model`, these inputs. It remembers `absorbed`, which it stands for
// too, and the current pass; its outputs stay.
void becomeLike(Graph& graph, NodeId target, const Node& model, std::vector<ValueId> inputs,
                std::span<const NodeId> absorbed);

// The readers of every value as the graph was when this was made.
class Readers {
 public:
  explicit Readers(const Graph& graph);

  std::span<const Use> of(ValueId value) const { return uses_.of(value); }
  // Whether the value outlives its readers: an output of the graph or the next contents of a state.
  bool isKept(ValueId value) const { return kept_[static_cast<std::size_t>(value.index)]; }
  // Whether one input of one node is all that reads it.
  bool single(ValueId value) const { return of(value).size() == 1 && of(value)[0].input != SIZE_MAX && !isKept(value); }
  // The node whose input is all that reads the value; null where there are more readers, or none.
  const Node* only(ValueId value) const { return single(value) ? &graph_->node(of(value)[0].node) : nullptr; }

 private:
  const Graph* graph_;
  UseTable uses_;
  std::vector<bool> kept_;
};

}  // namespace stepscope
