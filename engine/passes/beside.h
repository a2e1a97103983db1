// Edits that passes share which take a node apart: nodes beside it, and results that change their producer.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"

namespace stepscope {

// Adds a node "<of>/<op>" that stands for a part of `of`: written in the internal opset, it runs in the phase and under the
// predicates of `of`, tells its module path and source line, and names the current pass. `outputs`: names, as for
// Graph::addNode. The caller puts it into the order.
NodeId addBeside(Graph& graph, NodeId of, std::string_view op, std::vector<ValueId> inputs, std::vector<std::string> outputs,
                 Attributes attributes = {}, std::string_view domain = "");

// The same with one output, named as the node.
ValueId emitBeside(Graph& graph, NodeId of, std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {},
                   std::string_view domain = "");

// What a lowering puts in the place of nodes, done to the whole graph at once: one walk, however many there are.
class Replacements {
 public:
  explicit Replacements(Graph& graph) : graph_(graph) {}
  // Whatever reads `from` will read `to`, which then bears its name.
  void replace(ValueId from, ValueId to);
  // The node goes; what reads its outputs must have been given another value.
  void remove(NodeId node) { removed_.push_back(node); }
  void apply();

 private:
  Graph& graph_;
  std::unordered_map<ValueId, ValueId> values_;
  std::vector<std::pair<ValueId, std::string>> names_;
  std::vector<NodeId> removed_;
};

// `result`, which another node made, is from here on what `node` makes; it keeps its id and name. In its place the other
// node makes a new value "<result>_<suffix>", returned.
ValueId takeOver(Graph& graph, NodeId node, ValueId result, std::string_view suffix);

// Whatever read `y` reads `result`, made from y by `reader`, and `result` gets y's name; y is called "<y>/<suffix>".
void putBehind(Graph& graph, ValueId y, NodeId reader, std::string_view suffix);

}  // namespace stepscope
