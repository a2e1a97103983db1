#include "engine/train/onnxruntime_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/data/file.h"
#include "engine/data/onnxruntime_checkpoint.h"
#include "engine/onnx/onnxruntime_optimizer.h"
#include "engine/onnx/reader.h"
#include "engine/onnx/writer.h"
#include "engine/state/state_file.h"
#include "engine/train/saved_graph.h"
#include "engine/train/transformers_adamw.h"

namespace stepscope {
namespace {

using Json = nlohmann::ordered_json;

struct TheirFiles {
  std::filesystem::path training, checkpoint, optimizer;  // the last may be absent
};

std::optional<TheirFiles> findFiles(const std::filesystem::path& folder) {
  constexpr std::string_view kTraining = "training_model.onnx";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(kTraining)) continue;
    const std::string prefix = name.substr(0, name.size() - kTraining.size());
    TheirFiles files{entry.path(), folder / (prefix + "checkpoint"), folder / (prefix + "optimizer_model.onnx")};
    if (!isOnnxruntimeCheckpoint(files.checkpoint)) continue;
    if (!std::filesystem::exists(files.optimizer, error)) files.optimizer.clear();
    return files;
  }
  return std::nullopt;
}

// The loss and other outputs of the model; parameters are initializers again.
Status becomeModel(Graph& graph, const OnnxruntimeCheckpoint& checkpoint) {
  std::vector<ValueId>& outputs = graph.mutableOutputs();
  std::erase_if(outputs, [&](ValueId id) {
    const NodeId producer = graph.value(id).producer;
    return producer && graph.node(producer).op == "InPlaceAccumulatorV2";
  });
  if (outputs.empty()) return invalid("artifacts of ONNX Runtime: the training model has no loss among its outputs");
  for (const auto* parameters : {&checkpoint.trained, &checkpoint.frozen})
    for (const auto& [name, contents] : *parameters) {
      const ValueId id = graph.findValue(name);
      if (!id || graph.value(id).role != ValueRole::kInput)
        return invalid(
            fmt::format("artifacts of ONNX Runtime: parameter '{}' of the checkpoint is no input of the model", name));
      Value& value = graph.mutableValue(id);
      const auto dims = value.type.shape ? knownDims(*value.type.shape) : std::nullopt;
      if (value.type.dtype != contents.dtype() || (dims && *dims != contents.dims()))
        return invalid(
            fmt::format("artifacts of ONNX Runtime: parameter '{}': the checkpoint has {}{}; the model expects {}", name,
                        dtypeName(contents.dtype()), dimsText(contents.dims()), value.type.text()));
      value.role = ValueRole::kInitializer;
      value.data = std::make_shared<const Tensor>(contents);
      std::erase(graph.mutableInputs(), id);
    }
  dropUnread(graph, [&](const Value& value) {
    return checkpoint.trained.contains(value.name) || checkpoint.frozen.contains(value.name);
  });
  return {};
}

class Settings {
 public:
  void add(std::string name, std::string value) { list_.push_back(Json::array({std::move(name), std::move(value)})); }
  void add(std::string name, double value) { add(std::move(name), fmt::format("{}", value)); }
  Json take() && { return std::move(list_); }

 private:
  Json list_ = Json::array();
};

// Numbers of the file are float32: the shortest text that is the same float32 again is what somebody wrote.
double written(double number) { return std::stod(fmt::format("{}", static_cast<float>(number))); }

Status settleOptimizer(const OnnxruntimeOptimizer& optimizer, const std::filesystem::path& to, Settings& settings,
                       std::vector<std::filesystem::path>& made) {
  const bool adamw = optimizer.kind == OnnxruntimeOptimizer::Kind::kAdamw;
  if (optimizer.clipNorm > 0) settings.add("clip-grad-norm", written(optimizer.clipNorm));
  if (adamw && (optimizer.mode == OnnxruntimeOptimizer::Mode::kTransformers || !optimizer.biasCorrection)) {
    OnnxruntimeOptimizer rounded = optimizer;
    for (double* number : {&rounded.beta1, &rounded.beta2, &rounded.epsilon, &rounded.weightDecay})
      *number = written(*number);
    made.push_back(to / "optimizer.onnx");
    SS_TRY(writeModel(transformersAdamw(rounded), made.back(), {}));
    settings.add("optimizer-graph", std::string("optimizer.onnx"));
    return {};
  }
  settings.add("optimizer", std::string(adamw ? "adamw" : "sgd"));
  if (!adamw) return {};
  settings.add("betas", fmt::format("{},{}", written(optimizer.beta1), written(optimizer.beta2)));
  settings.add("eps", written(optimizer.epsilon));
  settings.add("weight-decay", written(optimizer.weightDecay));
  return {};
}

// Moments and counters, for --resume.
Result<bool> writeState(const std::filesystem::path& path, const OnnxruntimeCheckpoint& checkpoint) {
  if (checkpoint.groups.empty()) return false;
  const OnnxruntimeCheckpoint::Group& group = checkpoint.groups.front();
  PropertyBag properties;
  for (const auto& [name, value] : checkpoint.ints) properties[name] = value;
  for (const auto& [name, value] : checkpoint.floats) properties[name] = static_cast<double>(value);
  for (const auto& [name, value] : checkpoint.texts) properties[name] = value;
  if (group.step == 0 && properties.empty()) return false;
  std::map<std::string, TensorView> tensors;
  for (const auto* parameters : {&checkpoint.trained, &checkpoint.frozen})
    for (const auto& [name, contents] : *parameters) tensors[name] = contents.view();
  for (const auto& [name, moments] : group.moments)
    for (std::size_t i = 0; i < moments.size() && i < std::size(kAdamMoments); ++i)
      tensors[name + std::string(kAdamMoments[i])] = moments[i].view();
  StateCounters counters;
  counters.step = counters.entry = counters.updates = group.step;
  SS_TRY(saveStateFile(path, tensors, counters, properties));
  return true;
}

}  // namespace

bool hasOnnxruntimeArtifacts(const std::filesystem::path& folder) { return findFiles(folder).has_value(); }

Result<std::vector<std::filesystem::path>> readOnnxruntimeArtifacts(const std::filesystem::path& from,
                                                                    const std::filesystem::path& to) {
  const auto files = findFiles(from);
  if (!files)
    return fail(ErrorCode::kNotFound, fmt::format("folder '{}': no training_model.onnx with its checkpoint", from.string()));
  SS_ASSIGN(const OnnxruntimeCheckpoint checkpoint, readOnnxruntimeCheckpoint(files->checkpoint));
  if (checkpoint.nominal)
    return invalid(
        fmt::format("checkpoint '{}' is nominal; expected one with the contents of parameters", files->checkpoint.string()));
  SS_ASSIGN(LoadedModel model, loadModel(files->training));
  SS_TRY(becomeModel(model.graph, checkpoint));
  SS_TRY(createFolder(to));
  std::vector<std::filesystem::path> made;
  made.push_back(to / "model.onnx");
  SS_TRY(writeModel(model.graph, made.back(), {}));
  Settings settings;
  if (!files->optimizer.empty()) {
    SS_ASSIGN(const OnnxruntimeOptimizer optimizer, readOnnxruntimeOptimizer(files->optimizer));
    SS_TRY(settleOptimizer(optimizer, to, settings, made));
  }
  if (!checkpoint.groups.empty()) settings.add("lr", written(static_cast<double>(checkpoint.groups[0].initialLearningRate)));
  SS_ASSIGN(const bool hasState, writeState(to / "state.safetensors", checkpoint));
  if (hasState) {
    made.push_back(to / "state.safetensors");
    settings.add("start-state", std::string("state.safetensors"));
  }
  Json parameters = Json::array();
  for (const auto& [name, contents] : checkpoint.trained) parameters.push_back({{"name", name}, {"trained", true}});
  for (const auto& [name, contents] : checkpoint.frozen) parameters.push_back({{"name", name}, {"trained", false}});
  const Json description = {{"loss", model.graph.value(model.graph.outputs().front()).name},
                            {"parameters", std::move(parameters)},
                            {"settings", std::move(settings).take()}};
  made.push_back(to / "capture.json");
  SS_TRY(writeTextFile(made.back(), description.dump(1) + "\n"));
  return made;
}

}  // namespace stepscope
