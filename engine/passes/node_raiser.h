// What the rules of raise_early and raise_microsoft share: the node at hand is rewritten in its place, and nodes are put
// before and behind it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "kernels/status.h"

namespace stepscope {

class NodeRaiser {
 protected:
  explicit NodeRaiser(Graph& graph) : graph_(graph) {}

  // Calls `raise` for every node, in order, as the node at hand; it says whether it rewrote the node. Graphs that hang at
  // nodes are copied and handed to `inside`, which answers how many of their nodes it rewrote. Returns how many were
  // rewritten.
  Result<std::size_t> walk(const std::function<Result<bool>()>& raise,
                           const std::function<Result<std::size_t>(Graph&)>& inside);

  const Node& node() const { return graph_.node(node_); }
  // kUnsupported, with the name of the node.
  tl::unexpected<Error> error(std::string message) const;

  // The node from here on is `op` of ONNX, in the form of `opset`.
  Status become(const char* op, int opset);
  void setAttribute(const char* name, AttrValue value);
  void eraseAttribute(std::string_view name);

  // A node before the one at hand; its result.
  ValueId emit(const char* op, std::vector<ValueId> inputs, Attributes attributes = {});
  // The same with several results.
  std::vector<ValueId> emitAll(const char* op, std::vector<ValueId> inputs, std::size_t results, Attributes attributes);
  // A factor in the type of `like`, which is not inferred yet.
  ValueId factor(const char* name, float value, ValueId like);
  ValueId ints(const char* name, const std::vector<std::int64_t>& values);
  // What the node gives goes through `op` before anything else; `others` follow it as operands. The last call comes first.
  void behind(const char* op, std::vector<ValueId> others, Attributes attributes = {});
  // `output`, which the node gave, is from here on what `value` holds; the node gives it no more.
  void handOn(ValueId output, ValueId value);
  // Whether a node reads the value, or the graph gives it.
  bool isRead(ValueId value);

  Graph& graph_;
  NodeId node_;
  std::vector<NodeId> before_, after_;

 private:
  std::optional<UseTable> uses_;  // of what the file has; made once it is asked for
};

}  // namespace stepscope
