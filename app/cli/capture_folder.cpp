#include "app/cli/capture_folder.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

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

}  // namespace

Result<std::filesystem::path> openCaptureFolder(const std::filesystem::path& folder, TrainOptions& options) {
  const std::filesystem::path model = folder / "model.onnx", data = folder / "batches.npz",
                              description = folder / "capture.json";
  std::error_code error;
  if (!std::filesystem::exists(model, error))
    return fail(
        ErrorCode::kNotFound,
        fmt::format("folder '{}': no model.onnx; expected an ONNX file or a folder of stepscope_capture", folder.string()));
  if (options.data.empty() && std::filesystem::exists(data, error))
    SS_TRY(applySetting(options, "data", data.string(), "capture"));
  if (!std::filesystem::exists(description, error)) return model;
  std::ifstream stream(description);
  const auto json = nlohmann::json::parse(stream, nullptr, false);
  if (!json.is_object())
    return fail(ErrorCode::kCorrupt, fmt::format("capture '{}': not a JSON object", description.string()));
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
  return model;
}

std::optional<double> capturedLoss(const std::filesystem::path& folder) {
  std::ifstream stream(folder / "capture.json");
  const auto json = nlohmann::json::parse(stream, nullptr, false);
  if (!json.is_object() || !json.contains("losses") || !json["losses"].is_array() || json["losses"].empty() ||
      !json["losses"][0].is_number())
    return std::nullopt;
  return json["losses"][0].get<double>();
}

}  // namespace stepscope::cli
