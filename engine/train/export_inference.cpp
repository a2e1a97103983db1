#include "engine/train/export_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "engine/build/evaluation_graph.h"
#include "engine/onnx/writer.h"
#include "engine/ops/op_def.h"
#include "engine/passes/raise_if.h"
#include "kernels/tensor.h"

namespace stepscope {
namespace {

tl::unexpected<Error> unsupportedNode(const Node& node, std::string_view what) {
  return fail(ErrorCode::kUnsupported, fmt::format("export for inference: {}: {}", node.label(), what));
}

// The imported graph, before shapes were inferred and anything was lowered that ONNX has a word for.
Result<Graph> importedGraph(const Session& session) {
  for (const Stage& stage : session.plans().stages())
    if (stage.phase == "inline") return *stage.graph;
  return fail(ErrorCode::kInternal, "export for inference: no stage 'inline'; expected a model that was imported");
}

Status chooseOutputs(Graph& graph, const std::string& lossName) {
  const ValueId loss = graph.findValue(lossName);
  std::vector<ValueId>& outputs = graph.mutableOutputs();
  std::erase(outputs, loss);
  if (!outputs.empty()) return {};
  const auto scored = scoredLabels(graph, loss);
  if (!scored)
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("export for inference: '{}' is the only output, and no cross entropy; expected an output besides "
                    "the loss, or scores that it reads",
                    lossName));
  outputs.push_back(scored->scores);
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
    if (graph.alive(id) && value.role == ValueRole::kInitializer && unread(id)) graph.removeValue(id);
  }
}

Status checkKnownOps(const Graph& graph) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.domain == kInternalDomain)
      return unsupportedNode(node, "an op of Stepscope alone; expected ops that other programs know");
    for (const auto& [name, body] : node.subgraphs) SS_TRY(checkKnownOps(*body));
  }
  return {};
}

}  // namespace

Result<ExportedModel> exportInference(const Session& session, const std::filesystem::path& path) {
  SS_ASSIGN(Graph graph, importedGraph(session));
  graph.setPass("export for inference");
  SS_TRY(evaluateGraph(graph, "export for inference"));
  if (const ValueId loss = session.lossValue(); loss)  // one that was attached is no value of the file
    if (const std::string& name = session.runningGraph().value(loss).name; graph.findValue(name))
      SS_TRY(chooseOutputs(graph, name));
  dropUnread(graph);
  SS_TRY(raiseIf(graph));
  SS_TRY(checkKnownOps(graph));
  ExportedModel exported;
  for (const auto& [name, trained] : session.trained().named(false)) {
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
