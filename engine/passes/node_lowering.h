// The frame of passes that write an operator as the public ops it means, so that gradients, fusions and plans come with
// them: the walk over the graph, the place of new nodes, and what most of them write.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/passes/beside.h"
#include "engine/passes/pass.h"

namespace stepscope {

class NodeLowering {
 public:
  NodeLowering(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}
  NodeLowering(const NodeLowering&) = delete;
  NodeLowering& operator=(const NodeLowering&) = delete;
  virtual ~NodeLowering() = default;

  // Every node for which `lower` gives results goes, and counts as a match; what read its outputs reads the results. One
  // walk and one edit of the graph, however many there are.
  Status run();

 protected:
  using Integers = std::vector<std::int64_t>;

  // New values for the outputs of `node()`, in their order; trailing ones may be left out where nobody reads them. Empty:
  // the node stays, without a word where it is another op, else after `stay`.
  virtual std::vector<ValueId> lower() = 0;

  const Node& node() const { return graph_.node(node_); }
  bool is(std::string_view op) const { return node().domain.empty() && node().op == op; }
  std::optional<Shape> shapeOf(std::size_t input) const;
  // Why the node stays: blocks it under its label. Returns what `lower` returns then.
  std::vector<ValueId> stay(const std::string& reason);

  // A node beside the one that goes, and its output.
  ValueId emit(const char* op, std::vector<ValueId> inputs, Attributes attributes = {});
  ValueId ints(const Integers& values);  // constant int64 [n]
  ValueId integer(std::int64_t value);   // constant int64 scalar
  ValueId real(DType type, double value);

  Graph& graph_;
  PassContext& context_;

 private:
  Replacements replacements_{graph_};
  NodeId node_;
  std::vector<NodeId> order_;
};

}  // namespace stepscope
