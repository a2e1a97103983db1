#include "engine/lab/sub_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace stepscope {

std::vector<NodeId> nodesBetween(const Graph& graph, ValueId output, const std::set<ValueId>& cuts) {
  std::set<NodeId> found;
  std::vector<ValueId> open{output};
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (!id || (id != output && cuts.contains(id)) || graph.value(id).role != ValueRole::kNodeOutput) continue;
    const NodeId made = graph.value(id).producer;
    if (!found.insert(made).second) continue;
    const Node& node = graph.node(made);
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  std::vector<NodeId> nodes;
  std::ranges::copy_if(graph.order(), std::back_inserter(nodes), [&](NodeId id) { return found.contains(id); });
  return nodes;
}

namespace {

class Extraction {
 public:
  Extraction(const Graph& from, const std::function<Result<Tensor>(const Value&)>& parameter)
      : from_(from), parameter_(parameter) {
    sub_.graph.name = "sub-graph";
    sub_.graph.opsets = from.opsets;
    sub_.graph.setPass("import");
  }

  Status add(const Node& node) {
    if (!node.subgraphs.empty() || !node.predicates.empty())
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{}: a node with a body or a condition; expected one that stands for itself", node.label()));
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      SS_ASSIGN(const ValueId input, known(id));
      inputs.push_back(input);
    }
    std::vector<std::string> names;
    for (const ValueId id : node.outputs) names.push_back(id ? from_.value(id).name : std::string());
    const NodeId made = sub_.graph.addNode(node.name, node.domain, node.op, std::move(inputs), std::move(names), node.attrs);
    Node& copy = sub_.graph.mutableNode(made);
    copy.sinceVersion = node.sinceVersion;
    copy.phase = node.phase;
    copy.provenance.pass = InternedText("import");
    copy.provenance.modulePath = node.provenance.modulePath;
    copy.provenance.sourceFile = node.provenance.sourceFile;
    copy.provenance.sourceLine = node.provenance.sourceLine;
    copy.provenance.sourceCode = node.provenance.sourceCode;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i]) continue;
      const ValueId output = sub_.graph.node(made).output(i);
      sub_.graph.mutableValue(output).type = from_.value(node.outputs[i]).type;
      copies_[node.outputs[i]] = output;
    }
    return {};
  }

  Result<SubGraph> finish(ValueId output) && {
    sub_.graph.mutableOutputs() = {copies_.at(output)};
    return std::move(sub_);
  }

 private:
  Result<ValueId> known(ValueId id) {
    if (!id) return ValueId{};
    if (const auto it = copies_.find(id); it != copies_.end()) return it->second;
    const Value& value = from_.value(id);
    if (value.type.kind != ValueKind::kTensor || !value.type.shape || !knownDims(*value.type.shape))
      return fail(ErrorCode::kUnsupported,
                  fmt::format("value '{}': {}; expected a tensor whose extents are numbers", value.name, value.type.text()));
    ValueId copy;
    if (value.role == ValueRole::kConstant) {
      copy = sub_.graph.addConstant(value.name, value.data->clone());
    } else if (value.role == ValueRole::kInitializer) {
      copy = sub_.graph.addValue(value.name, value.type, ValueRole::kInitializer);
      SS_ASSIGN(Tensor contents, parameter_(value));
      sub_.graph.mutableValue(copy).data = std::make_shared<const Tensor>(std::move(contents));
    } else {
      copy = sub_.graph.addValue(value.name, value.type, ValueRole::kInput);
      sub_.graph.mutableInputs().push_back(copy);
      sub_.inputs[sub_.graph.value(copy).name] = id;
    }
    copies_[id] = copy;
    return copy;
  }

  const Graph& from_;
  const std::function<Result<Tensor>(const Value&)>& parameter_;
  std::unordered_map<ValueId, ValueId> copies_;
  SubGraph sub_;
};

}  // namespace

Result<SubGraph> extract(const Graph& graph, const std::vector<NodeId>& nodes, ValueId output,
                         const std::function<Result<Tensor>(const Value&)>& parameter) {
  Extraction extraction(graph, parameter);
  for (const NodeId id : nodes) SS_TRY(extraction.add(graph.node(id)));
  return std::move(extraction).finish(output);
}

}  // namespace stepscope
