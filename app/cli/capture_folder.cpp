#include "app/cli/capture_folder.h"

#include <fmt/format.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/data/safetensors.h"
#include "engine/train/onnxruntime_folder.h"

namespace stepscope::cli {
namespace {

std::string escapeRegex(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view(".^$|()[]{}*+?\\/").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

bool isTrained(const nlohmann::json& parameter) {
  const auto trained = parameter.find("trained");
  return trained == parameter.end() || !trained->is_boolean() || trained->get<bool>();
}

// Absent: an empty object.
Result<nlohmann::json> readJson(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return nlohmann::json::object();
  std::ifstream stream(path);
  auto json = nlohmann::json::parse(stream, nullptr, false);
  if (!json.is_object()) return fail(ErrorCode::kCorrupt, fmt::format("capture '{}': not a JSON object", path.string()));
  return json;
}

// The options of a case, "--lr", "0.1", where the user set nothing.
Status takeArguments(const nlohmann::json& arguments, TrainOptions& options) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_string()) continue;
    const std::string word = arguments[i].get<std::string>();
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(2);
    const bool valued =
        i + 1 < arguments.size() && arguments[i + 1].is_string() && !arguments[i + 1].get<std::string>().starts_with("--");
    const std::string value = valued ? arguments[i + 1].get<std::string>() : "on";
    if (!options.origins.contains(name)) SS_TRY(applySetting(options, name, value, "case"));
  }
  return {};
}

// NaN and infinities are strings, because JSON has no word for them.
std::optional<double> numberOf(const nlohmann::json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string word = json.is_string() ? json.get<std::string>() : "";
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (word == "Infinity") return std::numeric_limits<double>::infinity();
  if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

void readNumbers(const nlohmann::json& from, Golden& golden) {
  const auto losses = from.find("losses");
  if (losses != from.end() && losses->is_array())
    for (const auto& loss : *losses) {
      const auto number = numberOf(loss);
      if (!number) break;
      golden.losses.push_back(*number);
    }
  if (const auto it = from.find("loss_tolerance"); it != from.end() && it->is_number())
    golden.lossTolerance = it->get<double>();
  if (const auto it = from.find("tolerances"); it != from.end() && it->is_object())
    for (const auto& [name, tolerance] : it->items())
      if (tolerance.is_number()) golden.tolerances[name] = tolerance.get<double>();
  if (const auto it = from.find("unused"); it != from.end() && it->is_array())
    for (const auto& name : *it)
      if (name.is_string()) golden.unused.insert(name.get<std::string>());
  const auto draws = from.find("draws");
  const std::string word = draws != from.end() && draws->is_string() ? draws->get<std::string>() : "";
  golden.draws = word == "none"           ? GoldenDraws::kNone
                 : word == "switched off" ? GoldenDraws::kSwitchedOff
                 : word == "drawn"        ? GoldenDraws::kDrawn
                                          : GoldenDraws::kUnknown;
}

// Optimizer, schedule and state of the run that was captured: name and value, a name may stand several times.
Status takeSettings(const nlohmann::json& settings, const std::filesystem::path& folder, TrainOptions& options) {
  const auto asked = options.origins;
  for (const auto& setting : settings) {
    if (!setting.is_array() || setting.size() != 2 || !setting[0].is_string() || !setting[1].is_string()) continue;
    const std::string name = setting[0].get<std::string>(), value = setting[1].get<std::string>();
    if (asked.contains(name)) continue;
    const bool isFile = name == "start-state" || name == "optimizer-graph";
    SS_TRY(applySetting(options, name, isFile ? (folder / value).string() : value, "capture"));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> captureNotes(const std::filesystem::path& folder) {
  SS_ASSIGN(const nlohmann::json json, readJson(folder / "capture.json"));
  std::vector<std::string> notes;
  if (const auto it = json.find("notes"); it != json.end() && it->is_array())
    for (const auto& note : *it)
      if (note.is_string()) notes.push_back(note.get<std::string>());
  return notes;
}

Result<std::filesystem::path> openCaptureFolder(const std::filesystem::path& folder, TrainOptions& options) {
  const std::filesystem::path model = folder / "model.onnx", data = folder / "batches.npz",
                              description = folder / "capture.json";
  std::error_code error;
  if (!std::filesystem::exists(model, error) && hasOnnxruntimeArtifacts(folder))
    return fail(
        ErrorCode::kNotFound,
        fmt::format("folder '{0}': files of a training with ONNX Runtime; hint: stepscope artifacts {0} -o FOLDER makes one "
                    "that trains here",
                    folder.string()));
  if (!std::filesystem::exists(model, error))
    return fail(
        ErrorCode::kNotFound,
        fmt::format("folder '{}': no model.onnx; expected an ONNX file or a folder of stepscope_capture", folder.string()));
  if (options.data.empty() && std::filesystem::exists(data, error))
    SS_TRY(applySetting(options, "data", data.string(), "capture"));
  SS_ASSIGN(const nlohmann::json ofCase, readJson(folder / "case.json"));
  if (const auto it = ofCase.find("arguments"); it != ofCase.end() && it->is_array()) SS_TRY(takeArguments(*it, options));
  SS_ASSIGN(const nlohmann::json json, readJson(description));
  if (options.loss.empty() && options.lossFn.empty() && json.contains("loss") && json["loss"].is_string())
    SS_TRY(applySetting(options, "loss", json["loss"].get<std::string>(), "capture"));
  if (options.freeze.empty() && options.train.empty() && json.contains("parameters") && json["parameters"].is_array()) {
    std::string frozen;
    for (const auto& parameter : json["parameters"]) {
      if (!parameter.is_object() || isTrained(parameter) || !parameter.contains("name") || !parameter["name"].is_string())
        continue;
      frozen += (frozen.empty() ? "^(" : "|") + escapeRegex(parameter["name"].get<std::string>());
    }
    if (!frozen.empty()) SS_TRY(applySetting(options, "freeze", frozen + ")$", "capture"));
  }
  if (const auto it = json.find("settings"); it != json.end() && it->is_array()) SS_TRY(takeSettings(*it, folder, options));
  return model;
}

Result<std::optional<CapturedGolden>> readGolden(const std::filesystem::path& folder, const TrainOptions& options) {
  CapturedGolden captured;
  Golden& golden = captured.golden;
  SS_ASSIGN(const nlohmann::json ofCase, readJson(folder / "case.json"));
  SS_ASSIGN(const nlohmann::json ofCapture, readJson(folder / "capture.json"));
  captured.ofRun = ofCapture.empty() && ofCase.contains("losses");
  readNumbers(captured.ofRun ? ofCase : ofCapture, golden);
  if (captured.ofRun && ofCase.contains("steps") && ofCase["steps"].is_number_integer())
    captured.steps = ofCase["steps"].get<std::int64_t>();
  if (captured.ofRun) golden.gradientFactor = 1.0 / static_cast<double>(options.accumulate);
  std::error_code error;
  if (const auto path = folder / "golden.safetensors"; std::filesystem::exists(path, error)) {
    SS_ASSIGN(SafetensorsFile file, readSafetensors(path));
    for (auto& [name, tensor] : file.tensors) {
      const auto slash = name.find('/');
      const std::string kind = name.substr(0, slash), of = slash == std::string::npos ? "" : name.substr(slash + 1);
      if (!isFloating(tensor.dtype())) continue;
      if (kind == "grad")
        golden.gradients[of] = std::move(tensor);
      else if (kind == "state")
        golden.statistics[of] = std::move(tensor);
      else if (kind == "state2")
        golden.later[of] = std::move(tensor);
      else if (kind == "output")
        golden.outputs[of] = std::move(tensor);
      else if (kind == "param")
        captured.parameters[of] = std::move(tensor);
    }
  }
  if (golden.losses.empty() && golden.gradients.empty()) return std::optional<CapturedGolden>();
  return std::optional(std::move(captured));
}

}  // namespace stepscope::cli
