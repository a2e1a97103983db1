#include "engine/train/artifacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "engine/build/evaluation_graph.h"
#include "engine/data/file.h"
#include "engine/onnx/writer.h"
#include "engine/ops/op_def.h"
#include "engine/train/saved_graph.h"

namespace stepscope {
namespace {

using Json = nlohmann::ordered_json;

// Contents of now, or none of parameters.
void settleWeights(Graph& graph, const Session& session, bool nominal) {
  takeContents(graph, session);
  if (!nominal) return;
  for (const ParameterChoice& parameter : session.plans().parameters()) {
    const ValueId id = graph.findValue(session.plans().valueOf(parameter).name);
    if (id && graph.value(id).role == ValueRole::kInitializer && parameter.trained) graph.mutableValue(id).data = nullptr;
  }
}

// The update as a function: what it reads of other phases and of state is an input.
class OptimizerFunction {
 public:
  explicit OptimizerFunction(const Graph& step) : step_(step) {
    graph_.name = "optimizer";
    graph_.opsets = step.opsets;
    graph_.setPass("import");
  }

  Result<Graph> make(Json& updates) && {
    for (const NodeId id : step_.order())
      if (step_.node(id).phase == Phase::kOptimizer) SS_TRY(add(step_.node(id)));
    for (const StateUpdate& update : step_.stateUpdates) {
      const auto next = copies_.find(update.next);
      if (next == copies_.end()) continue;  // a running statistic
      const std::string name = step_.value(update.state).name + ".next";
      graph_.renameValue(next->second, name);
      graph_.mutableOutputs().push_back(next->second);
      updates.push_back({{"state", step_.value(update.state).name},
                         {"next", graph_.value(next->second).name},
                         {"parameter", step_.value(update.state).role == ValueRole::kInitializer}});
    }
    graph_.removeDeadNodes();
    return std::move(graph_);
  }

 private:
  Status add(const Node& node) {
    if (!node.subgraphs.empty() || !node.predicates.empty())
      return fail(ErrorCode::kUnsupported,
                  fmt::format("artifacts: {}: an update with a condition; expected option loss-scale "
                              "off and nodes that stand for themselves",
                              node.label()));
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(known(id));
    std::vector<std::string> names;
    for (const ValueId id : node.outputs) names.push_back(id ? step_.value(id).name : std::string());
    const NodeId made = graph_.addNode(node.name, node.domain, node.op, std::move(inputs), std::move(names), node.attrs);
    graph_.mutableNode(made).sinceVersion = node.sinceVersion;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i]) continue;
      copies_[node.outputs[i]] = graph_.node(made).output(i);
      graph_.mutableValue(graph_.node(made).output(i)).type = step_.value(node.outputs[i]).type;
    }
    return {};
  }

  ValueId known(ValueId id) {
    if (!id) return {};
    if (const auto it = copies_.find(id); it != copies_.end()) return it->second;
    const Value& value = step_.value(id);
    ValueId copy;
    if (value.role == ValueRole::kConstant) {
      copy = graph_.addConstant(value.name, value.data->clone());
    } else {
      // What the step feeds itself is named so that no data feeds it; here it is data.
      constexpr std::string_view kFedByTheStep = "stepscope.";
      const std::string name = value.name.substr(value.name.starts_with(kFedByTheStep) ? kFedByTheStep.size() : 0);
      copy = graph_.addValue(name, value.type, ValueRole::kInput);
      graph_.mutableInputs().push_back(copy);
    }
    copies_[id] = copy;
    return copy;
  }

  const Graph& step_;
  Graph graph_;
  std::unordered_map<ValueId, ValueId> copies_;
};

std::set<std::string> ownOpsOf(const Graph& graph) {
  std::set<std::string> ops;
  for (const NodeId id : graph.order())
    if (graph.node(id).domain == kInternalDomain) ops.insert(graph.node(id).op);
  return ops;
}

Json valuesOf(const Graph& graph, const std::vector<ValueId>& ids) {
  Json values = Json::array();
  for (const ValueId id : ids) values.push_back({{"name", graph.value(id).name}, {"type", graph.value(id).type.text()}});
  return values;
}

}  // namespace

Result<Artifacts> writeArtifacts(const Session& session, const std::filesystem::path& folder, bool nominal) {
  SS_ASSIGN(Graph training, copyOfStage(session, "gradient", "artifacts"));
  SS_ASSIGN(Graph evaluation, copyOfStage(session, "attach loss", "artifacts"));
  SS_ASSIGN(const Graph step, copyOfStage(session, "optimizer", "artifacts"));
  evaluation.setPass("artifacts");
  evaluation.stateUpdates.clear();
  evaluation.removeDeadNodes();
  SS_TRY(evaluateGraph(evaluation, "artifacts"));
  evaluation.removeDeadNodes();
  Json updates = Json::array();
  SS_ASSIGN(const Graph optimizer, OptimizerFunction(step).make(updates));
  settleWeights(training, session, nominal);
  settleWeights(evaluation, session, nominal);

  SS_TRY(createFolder(folder));
  Artifacts made;
  Json description = {{"loss", session.runningGraph().value(session.lossValue()).name}, {"nominal", nominal}};
  const std::vector<std::pair<const char*, const Graph*>> graphs{
      {"training", &training}, {"evaluation", &evaluation}, {"optimizer", &optimizer}};
  for (const auto& [name, graph] : graphs) {
    made.files.push_back(folder / fmt::format("{}.onnx", name));
    SS_TRY(writeModel(*graph, made.files.back(), {}));
    const std::set<std::string> own = ownOpsOf(*graph);
    made.ownOps[made.files.back().filename().string()] = own;
    description[name] = {
        {"inputs", valuesOf(*graph, graph->inputs())}, {"outputs", valuesOf(*graph, graph->outputs())}, {"own_ops", own}};
  }
  description["optimizer"]["updates"] = std::move(updates);
  Json parameters = Json::array();
  for (const ParameterChoice& parameter : session.plans().parameters()) {
    const Value& value = session.plans().valueOf(parameter);
    parameters.push_back({{"name", value.name}, {"type", value.type.text()}, {"trained", parameter.trained}});
    made.trained += parameter.trained ? 1 : 0;
  }
  description["parameters"] = std::move(parameters);
  if (!nominal) {
    made.files.push_back(folder / "checkpoint.safetensors");
    SS_TRY(session.trained().save(made.files.back()));
  }
  made.files.push_back(folder / "artifacts.json");
  SS_TRY(writeTextFile(made.files.back(), description.dump(1) + "\n"));
  return made;
}

}  // namespace stepscope
