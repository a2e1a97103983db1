// What became of the nodes and values of a build: which value stands for one that passes replaced, and which node took over
// what a removed one computed. Read from the edit log, provenance.sources and what Graph::recordBirths remembers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"

namespace stepscope {

class Lineage {
 public:
  // `graph` has to outlive it and stay as it is. O(n + length of the edit log).
  explicit Lineage(const Graph& graph);

  // Whether it was a node or value of the imported graph (one that inlining and lowering left).
  bool imported(NodeId node) const;
  bool imported(ValueId value) const;
  // The values that the node made first, by output.
  std::span<const ValueId> outputsOf(NodeId node) const;
  // The value that stands for it: itself while it lives, else what replaced it, and so on. May be dead.
  ValueId now(ValueId value) const;
  // The pass that replaced it last; empty.
  std::string_view replacedBy(ValueId value) const;
  // The node that computes what `node` was made for: itself, or what makes the value that stands for its first result.
  // Invalid where that is no node's result; may be dead.
  NodeId home(NodeId node) const;
  // The pass that had merged a value of another computation into it before the gradient was taken; empty. Its gradient is
  // the sum of both then.
  std::string_view mergedBy(ValueId value) const;
  std::string_view addedBy(NodeId node) const;
  std::string_view removedBy(NodeId node) const;  // empty while it lives

  struct Carrier {
    NodeId node;            // invalid: none
    std::string_view pass;  // that put the computation there
  };
  // The live node that contains what `node` was made for. The first call costs O(n log n). Not thread-safe before it
  // returned.
  Carrier carrier(NodeId node) const;

 private:
  struct Readers;
  Carrier carrier(NodeId node, int depth) const;
  const Readers& readers() const;
  ValueId last(ValueId value) const;  // as now(), whether it lives or not
  bool handsOn(ValueId from, ValueId to) const;
  void readLog();

  // How a removed node's readers are found: by what they read before passes rewrote them.
  struct Readers {
    std::vector<std::uint32_t> first;  // by value, and one more
    std::vector<NodeId> nodes;
    std::vector<std::pair<NodeId, NodeId>> sources;            // (source, node), sorted
    std::vector<std::pair<NodeId, std::string_view>> touched;  // (node, pass that added or changed it), sorted
  };

  const Graph& graph_;
  std::vector<std::uint32_t> firstOutput_;  // by node, and one more
  std::vector<ValueId> outputs_;
  std::vector<ValueId> instead_;                // by value
  std::vector<std::string_view> insteadBy_;     // by value
  std::vector<std::string_view> added_, gone_;  // by node
  std::map<ValueId, std::string_view> merged_;
  mutable std::unique_ptr<Readers> readers_;
};

}  // namespace stepscope
