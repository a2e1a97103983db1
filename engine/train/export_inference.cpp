#include "engine/train/export_inference.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/build/evaluation_graph.h"
#include "engine/onnx/writer.h"
#include "engine/ops/op_def.h"
#include "engine/passes/raise_if.h"
#include "engine/train/saved_graph.h"

namespace stepscope {
namespace {

tl::unexpected<Error> unsupportedNode(const Node& node, std::string_view what) {
  return fail(ErrorCode::kUnsupported, fmt::format("export for inference: {}: {}", node.label(), what));
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
  // The imported graph, before shapes were inferred and anything was lowered that ONNX has a word for.
  SS_ASSIGN(Graph graph, copyOfStage(session, "inline", "export for inference"));
  graph.setPass("export for inference");
  SS_TRY(evaluateGraph(graph, "export for inference"));
  if (const ValueId loss = session.lossValue(); loss)  // one that was attached is no value of the file
    if (const std::string& name = session.runningGraph().value(loss).name; graph.findValue(name))
      SS_TRY(chooseOutputs(graph, name));
  graph.stateUpdates.clear();
  dropUnread(graph);
  SS_TRY(raiseIf(graph));
  SS_TRY(checkKnownOps(graph));
  ExportedModel exported;
  exported.weights = takeContents(graph, session);
  SS_TRY(writeModel(graph, path, {}));
  for (const ValueId output : graph.outputs()) exported.outputs.push_back(graph.value(output).name);
  return exported;
}

}  // namespace stepscope
