#include "engine/train/onnxruntime_artifacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/build/evaluation_graph.h"
#include "engine/data/file.h"
#include "engine/data/onnxruntime_checkpoint.h"
#include "engine/onnx/onnxruntime_optimizer.h"
#include "engine/onnx/writer.h"
#include "engine/train/onnxruntime_ops.h"
#include "engine/train/saved_graph.h"

namespace stepscope {
namespace {

Result<OnnxruntimeOptimizer> optimizerOf(const TrainOptions& options) {
  const auto refuse = [](std::string_view option, std::string_view why) {
    return failOption(ErrorCode::kUnsupported, option, why);
  };
  if (!options.optimizerGraph.empty())
    return refuse("optimizer-graph", "ONNX Runtime has no op for it; expected adamw or sgd");
  if (!options.groups.empty()) return refuse("group", "ONNX Runtime trains one group; expected none");
  OnnxruntimeOptimizer optimizer;
  optimizer.clipNorm = options.clipGradNorm;
  const double decay = options.weightDecay.value_or(options.optimizer == "adamw" ? 0.01 : 0.0);
  if (options.optimizer == "sgd") {
    if (options.momentum != 0) return refuse("momentum", "ONNX Runtime's sgd has none; expected 0");
    if (decay != 0) return refuse("weight-decay", "ONNX Runtime's sgd has none; expected 0");
    optimizer.kind = OnnxruntimeOptimizer::Kind::kSgd;
    return optimizer;
  }
  if (options.optimizer == "adam" && decay != 0)
    return refuse("weight-decay", "ONNX Runtime decays beside the gradient alone; expected 0, or adamw");
  if (options.optimizer != "adam" && options.optimizer != "adamw")
    return refuse("optimizer",
                  fmt::format("'{}': ONNX Runtime has no op for it; expected adamw, adam or sgd", options.optimizer));
  optimizer.beta1 = options.beta1;
  optimizer.beta2 = options.beta2;
  optimizer.epsilon = options.eps;
  optimizer.weightDecay = decay;
  return optimizer;
}

std::vector<std::string> trainedNames(const Session& session) {
  std::vector<std::string> names;
  for (const ParameterChoice& parameter : session.plans().parameters())
    if (parameter.trained) names.push_back(session.plans().valueOf(parameter).name);
  return names;
}

// Trained parameters become inputs behind those of the batch; what else the file holds has the contents of now.
Status useParametersAsInputs(Graph& graph, const std::vector<std::string>& trained, const Session& session) {
  takeContents(graph, session);
  for (const std::string& name : trained) {
    ValueId id = graph.findValue(name);
    if (!id) return fail(ErrorCode::kNotFound, fmt::format("artifacts: no parameter '{}' in the graph", name));
    Value& value = graph.mutableValue(id);
    if (value.type.dtype != DType::kF32)
      return unsupported(
          fmt::format("artifacts for ONNX Runtime: parameter '{}' is {}; expected float32", name, value.type.text()));
    value.role = ValueRole::kInput;
    value.data = nullptr;
    graph.mutableInputs().push_back(id);
  }
  return {};
}

// Sums of gradients, a flag for each: they take the place of the gradients among the outputs.
Status accumulateGradients(Graph& graph, const std::vector<std::string>& trained) {
  std::vector<ValueId> buffers, flags, gradients;
  const ValueId reset =
      graph.addValue("lazy_reset_grad", {.dtype = DType::kBool, .shape = Shape{Dim(1)}}, ValueRole::kInput);
  for (const std::string& name : trained) {
    const ValueId gradient = graph.findValue(name + "_grad");
    if (!gradient) return fail(ErrorCode::kNotFound, fmt::format("artifacts: no gradient of parameter '{}'", name));
    const ValueType type = graph.value(graph.findValue(name)).type;
    const std::string sum = name + "_grad.accumulation";
    buffers.push_back(graph.addValue(sum + ".buffer", type, ValueRole::kInput));
    const NodeId node =
        graph.addNode(sum, "com.microsoft", "InPlaceAccumulatorV2", {buffers.back(), gradient, reset}, {sum + ".out"});
    graph.mutableNode(node).sinceVersion = 1;
    flags.push_back(graph.node(node).output(0));
    graph.mutableValue(flags.back()).type = {.dtype = DType::kBool, .shape = Shape{Dim(1)}};
    gradients.push_back(gradient);
  }
  std::vector<ValueId>& outputs = graph.mutableOutputs();
  std::erase_if(outputs, [&](ValueId id) { return std::ranges::find(gradients, id) != gradients.end(); });
  outputs.insert(outputs.end(), flags.begin(), flags.end());
  std::vector<ValueId>& inputs = graph.mutableInputs();
  inputs.insert(inputs.end(), buffers.begin(), buffers.end());
  inputs.push_back(reset);
  return {};
}

// The loss first.
void loseFirst(Graph& graph, const std::string& loss) {
  std::vector<ValueId>& outputs = graph.mutableOutputs();
  const ValueId id = graph.findValue(loss);
  std::erase(outputs, id);
  outputs.insert(outputs.begin(), id);
}

// How many updates the moments of each parameter have had, fewest first: moments that began later have had fewer than the
// run. Empty where no parameter has some.
std::map<std::int64_t, std::vector<std::string>> momentAges(const Session& session,
                                                            const std::vector<std::string>& trained) {
  std::map<std::int64_t, std::vector<std::string>> ages;
  const auto state = session.trained().named(true);
  for (const std::string& name : trained)
    if (const std::string moment = name + std::string(kAdamMoments[0]); state.contains(moment))
      ages[session.counters().updatesOf(moment)].push_back(name);
  return ages;
}

OnnxruntimeCheckpoint checkpointOf(const Session& session, const std::vector<std::string>& trained,
                                   const OnnxruntimeOptimizer& optimizer) {
  const auto owned = [](const TensorView& view) { return convertTensor(view, DType::kF32); };
  OnnxruntimeCheckpoint checkpoint;
  const auto state = session.trained().named(true);
  OnnxruntimeCheckpoint::Group group;
  const auto ages = momentAges(session, trained);
  const bool adam = optimizer.kind != OnnxruntimeOptimizer::Kind::kSgd;
  group.step = !adam ? session.counters().updates : ages.empty() ? 0 : ages.rbegin()->first;
  group.initialLearningRate = static_cast<float>(session.options().lr);
  for (const std::string& name : trained) {
    checkpoint.trained[name] = owned(state.at(name));
    if (!adam) continue;
    for (const std::string_view moment : kAdamMoments)
      if (const auto it = state.find(name + std::string(moment)); it != state.end())
        group.moments[name].push_back(owned(it->second));
  }
  checkpoint.groups.push_back(std::move(group));
  for (const auto& [name, value] : session.trained().properties()) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) checkpoint.ints[name] = *number;
    if (const auto* number = std::get_if<double>(&value)) checkpoint.floats[name] = static_cast<float>(*number);
    if (const auto* text = std::get_if<std::string>(&value)) checkpoint.texts[name] = *text;
  }
  return checkpoint;
}

std::vector<std::string> notesOf(const Session& session, const Graph& training, const std::vector<std::string>& trained) {
  std::vector<std::string> notes;
  const auto has = [&](std::string_view op) {
    return std::ranges::any_of(training.order(), [&](NodeId id) { return training.node(id).op == op; });
  };
  if (has("BatchNormInternal")) notes.push_back("running statistics stay as they are: ONNX Runtime's training stores none");
  if (has("Dropout")) notes.push_back("dropout draws other masks there");
  const TrainOptions& options = session.options();
  if (options.lrSchedule != "constant")
    notes.push_back(
        fmt::format("lr-schedule {} is not in the files; its programs set the learning rate", options.lrSchedule));
  if (options.accumulate > 1)
    notes.push_back(fmt::format("accumulate {} is not in the files, and gradients are added up there, not averaged",
                                options.accumulate));
  if (const auto ages = momentAges(session, trained); ages.size() > 1)
    notes.push_back(fmt::format(
        "moments have had {} to {} updates, '{}' the fewest; the files have one number for all of them, which is {}",
        ages.begin()->first, ages.rbegin()->first, ages.begin()->second.front(), ages.rbegin()->first));
  for (const auto& [name, value] : session.trained().properties())
    if (std::holds_alternative<Tensor>(value)) notes.push_back(fmt::format("property '{}' is a tensor and left out", name));
  return notes;
}

}  // namespace

Result<OnnxruntimeFiles> writeOnnxruntimeArtifacts(const Session& session, const std::filesystem::path& folder) {
  SS_ASSIGN(const OnnxruntimeOptimizer optimizer, optimizerOf(session.options()));
  SS_ASSIGN(Graph training, copyOfStage(session, "gradient", "artifacts"));
  SS_ASSIGN(Graph evaluation, copyOfStage(session, "attach loss", "artifacts"));
  const std::string loss = session.runningGraph().value(session.lossValue()).name;
  const std::vector<std::string> trained = trainedNames(session);
  for (Graph* graph : {&training, &evaluation}) {
    graph->setPass("artifacts");
    graph->stateUpdates.clear();
    graph->removeDeadNodes();
  }
  SS_TRY(evaluateGraph(evaluation, "artifacts"));
  evaluation.removeDeadNodes();
  SS_TRY(useOnnxruntimeOps(training));
  for (Graph* graph : {&training, &evaluation}) {
    SS_TRY(useParametersAsInputs(*graph, trained, session));
    loseFirst(*graph, loss);
  }
  SS_TRY(accumulateGradients(training, trained));
  SS_TRY(createFolder(folder));
  OnnxruntimeFiles made;
  made.trained = trained.size();
  made.notes = notesOf(session, training, trained);
  made.files = {folder / "training_model.onnx", folder / "eval_model.onnx", folder / "optimizer_model.onnx",
                folder / "checkpoint"};
  SS_TRY(writeModel(training, made.files[0], {}));
  SS_TRY(writeModel(evaluation, made.files[1], {}));
  SS_TRY(writeOnnxruntimeOptimizer(made.files[2], optimizer));
  SS_TRY(writeOnnxruntimeCheckpoint(made.files[3], checkpointOf(session, trained, optimizer)));
  return made;
}

}  // namespace stepscope
