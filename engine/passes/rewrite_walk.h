// What passes share that join neighbouring nodes: the graph, what they are told, who reads a value and where a node stands.
// The last two are as they were when the pass began.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/passes/pass.h"
#include "engine/passes/pattern.h"

namespace stepscope {

class RewriteWalk {
 public:
  // Both outlive it.
  RewriteWalk(Graph& graph, PassContext& context)
      : graph_(graph), context_(context), readers_(graph), places_(graph.nodeCapacity(), 0) {
    for (std::size_t i = 0; i < graph.order().size(); ++i) places_[static_cast<std::size_t>(graph.order()[i].index)] = i;
  }

 protected:
  // In the order of the graph, from 0.
  std::size_t place(NodeId node) const { return places_[static_cast<std::size_t>(node.index)]; }

  Graph& graph_;
  PassContext& context_;
  const Readers readers_;

 private:
  std::vector<std::size_t> places_;
};

}  // namespace stepscope
