#include "engine/train/export_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "engine/onnx/writer.h"
#include "engine/ops/op_def.h"
#include "kernels/tensor.h"

namespace stepscope {
namespace {

tl::unexpected<Error> unsupportedNode(const Node& node, std::string_view what) {
  return fail(ErrorCode::kUnsupported, fmt::format("export for inference: {}: {}", node.label(), what));
}

// The imported graph, before shapes were inferred and anything was lowered that ONNX has a word for.
Result<Graph> importedGraph(const Session& session) {
  for (const Stage& stage : session.stages())
    if (stage.phase == "inline") return *stage.graph;
  return fail(ErrorCode::kInternal, "export for inference: no stage 'inline'; expected a model that was imported");
}

Status dropOutputs(Graph& graph, const UseTable& uses, NodeId id, std::string_view what) {
  const std::vector<ValueId> outputs = graph.node(id).outputs;
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    const auto& roots = graph.outputs();
    if (!uses.of(outputs[i]).empty() || std::ranges::find(roots, outputs[i]) != roots.end())
      return unsupportedNode(graph.node(id), what);
    graph.removeValue(outputs[i]);
  }
  graph.mutableNode(id).outputs.resize(1);
  return {};
}

// Dropout hands its input on, BatchNormalization uses its running statistics.
Status evaluate(Graph& graph) {
  const UseTable uses = graph.uses();
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node& node = graph.node(id);
    if (!node.domain.empty()) continue;
    if (node.op == "Dropout") {
      SS_TRY(dropOutputs(graph, uses, id, "its mask is read; expected a Dropout that evaluation can do without"));
      Node& changed = graph.mutableNode(id);
      changed.inputs.resize(std::min<std::size_t>(1, changed.inputs.size()));
      changed.attrs = {};
    } else if (node.op == "BatchNormalization" && node.attrs.integer("training_mode", 0) != 0) {
      SS_TRY(dropOutputs(graph, uses, id, "its running statistics are read; expected them to be outputs of nobody"));
      graph.mutableNode(id).attrs.set("training_mode", std::int64_t{0});
    }
  }
  return {};
}

// Past what only gives a number another shape or type.
const Node* producerOf(const Graph& graph, ValueId value) {
  const NodeId made = value ? graph.value(value).producer : NodeId{};
  return made ? &graph.node(made) : nullptr;
}

// The scores that a cross entropy reads, as the model had them before they were flattened.
ValueId scoresOf(const Graph& graph, ValueId loss) {
  const Node* node = producerOf(graph, loss);
  while (node && node->domain.empty() && (node->op == "Cast" || node->op == "Identity" || node->op == "Squeeze"))
    node = producerOf(graph, node->input(0));
  if (!node || !node->domain.empty()) return {};
  if (node->op != "SoftmaxCrossEntropyLoss" && node->op != "NegativeLogLikelihoodLoss") return {};
  return node->input(0);
}

Status chooseOutputs(Graph& graph, const std::string& lossName) {
  const ValueId loss = graph.findValue(lossName);
  std::vector<ValueId>& outputs = graph.mutableOutputs();
  std::erase(outputs, loss);
  if (!outputs.empty()) return {};
  const ValueId scores = scoresOf(graph, loss);
  if (!scores)
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("export for inference: '{}' is the only output, and no cross entropy; expected an output besides "
                    "the loss, or scores that it reads",
                    lossName));
  outputs.push_back(scores);
  return {};
}

void dropUnread(Graph& graph) {
  graph.stateUpdates.clear();
  graph.removeDeadNodes();
  const UseTable uses = graph.uses();
  const auto unread = [&](ValueId id) {
    return uses.of(id).empty() && std::ranges::find(graph.outputs(), id) == graph.outputs().end();
  };
  std::vector<ValueId>& inputs = graph.mutableInputs();
  std::erase_if(inputs, [&](ValueId id) {
    if (!unread(id)) return false;
    graph.removeValue(id);
    return true;
  });
  for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
    const ValueId id{static_cast<std::int32_t>(i)};
    const Value& value = graph.value(id);
    if (value.alive && value.role == ValueRole::kInitializer && unread(id)) graph.removeValue(id);
  }
}

}  // namespace

Result<ExportedModel> exportInference(const Session& session, const std::filesystem::path& path) {
  SS_ASSIGN(Graph graph, importedGraph(session));
  graph.setPass("export for inference");
  SS_TRY(evaluate(graph));
  if (const ValueId loss = session.lossValue(); loss)  // one that was attached is no value of the file
    if (const std::string& name = session.runningGraph().value(loss).name; graph.findValue(name))
      SS_TRY(chooseOutputs(graph, name));
  dropUnread(graph);
  for (const NodeId id : graph.order())
    if (const Node& node = graph.node(id); !node.predicates.empty())
      return unsupportedNode(node, "it stands in a branch of If, and branches are written out; expected a model without If");
    else if (node.domain == kInternalDomain)
      return unsupportedNode(node, "an op of Stepscope alone; expected ops that other programs know");
  ExportedModel exported;
  for (const auto& [name, trained] : session.namedState(false)) {
    const ValueId id = graph.findValue(name);
    if (!id || graph.value(id).role != ValueRole::kInitializer) continue;
    Value& value = graph.mutableValue(id);
    value.data = std::make_shared<const Tensor>(convertTensor(trained, value.type.dtype));
    ++exported.weights;
  }
  SS_TRY(writeModel(graph, path, {}));
  for (const ValueId output : graph.outputs()) exported.outputs.push_back(graph.value(output).name);
  return exported;
}

}  // namespace stepscope
