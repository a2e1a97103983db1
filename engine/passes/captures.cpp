#include "engine/passes/captures.h"

#include <algorithm>

namespace stepscope {

std::size_t formalInputs(const Node& node, const Graph& subgraph) {
  if (!node.domain.empty()) return 0;
  const std::size_t formals = node.op == "Loop"                               ? std::max<std::size_t>(2, node.inputs.size())
                              : node.op == "Scan" || node.op == "SequenceMap" ? node.inputs.size()
                                                                              : 0;
  return std::min(formals, subgraph.inputs().size());
}

void renameCaptures(Node& node, const std::function<std::string(const std::string&)>& rename) {
  for (auto& [attribute, subgraph] : node.subgraphs.edit()) {
    if (!subgraph) continue;
    auto copy = std::make_shared<Graph>(*subgraph);
    std::unordered_map<std::string, std::string> renamed;
    for (std::size_t i = formalInputs(node, *copy); i < copy->inputs().size(); ++i) {
      const ValueId captured = copy->inputs()[i];
      const std::string before = copy->value(captured).name, after = rename(before);
      if (before == after) continue;
      if (const ValueId taken = copy->findValue(after)) {
        const std::string was = copy->value(taken).name;
        copy->renameValue(taken, was + "_inner");
        renamed[was] = copy->value(taken).name;
      }
      copy->renameValue(captured, after);
      renamed[before] = copy->value(captured).name;
    }
    if (renamed.empty()) continue;
    const auto inner = [&renamed](const std::string& name) {
      const auto it = renamed.find(name);
      return it == renamed.end() ? name : it->second;
    };
    for (const NodeId id : copy->order())
      if (!copy->node(id).subgraphs.empty()) renameCaptures(copy->mutableNode(id), inner);
    subgraph = std::move(copy);
  }
}

}  // namespace stepscope
