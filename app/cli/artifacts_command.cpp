// `stepscope artifacts`: a training as graphs and a checkpoint for programs that run it elsewhere.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/snapshot/alert.h"
#include "engine/snapshot/units.h"
#include "engine/train/artifacts.h"
#include "engine/train/onnxruntime_artifacts.h"
#include "engine/train/onnxruntime_folder.h"

namespace stepscope::cli {
namespace {

struct ArtifactsArguments {
  std::string model, folder;
  bool nominal = false, fused = false, onnxruntime = false, json = false;
  SharedOptions shared;
};

// What a pass writes is often an op that other programs do not know.
Status withoutOptionalPasses(TrainOptions& options) {
  for (const OptionInfo& info : optionTable())
    if (info.name.starts_with("pass.") && info.defaultValue == "on" && !options.origins.contains(std::string(info.name)))
      SS_TRY(applySetting(options, info.name, "off", "artifacts"));
  return {};
}

void tellArtifacts(const Artifacts& made, bool json) {
  for (const auto& path : made.files) {
    const std::string name = path.filename().string();
    const auto own = made.ownOps.find(name);
    std::error_code error;
    const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
    if (json) {
      nlohmann::json event = {{"event", "artifact"}, {"path", path.string()}, {"bytes", bytes}};
      if (own != made.ownOps.end()) event["own_ops"] = own->second;
      sayJson(event);
      continue;
    }
    say("{}  {}\n", path.string(), units::bytes(bytes));
    if (own == made.ownOps.end() || own->second.empty()) continue;
    std::string list;
    for (const std::string& op : own->second) list += (list.empty() ? "" : ", ") + op;
    say("  ops of Stepscope alone: {}\n", list);
  }
  if (!json && made.trained > 0) say("{} trained parameters\n", made.trained);
}

void tellFiles(const std::vector<std::filesystem::path>& files, bool json) { tellArtifacts({.files = files}, json); }

// Theirs, as a folder that trains here.
Status takeTheirs(const ArtifactsArguments& a) {
  SS_ASSIGN(const auto files, readOnnxruntimeArtifacts(a.model, a.folder));
  tellFiles(files, a.json);
  if (!a.json) say("stepscope train {} --data FILE trains on with them\n", a.folder);
  return {};
}

Status makeTheirs(const Session& session, const ArtifactsArguments& a, const Output& output) {
  SS_ASSIGN(const OnnxruntimeFiles made, writeOnnxruntimeArtifacts(session, a.folder));
  tellFiles(made.files, a.json);
  if (!a.json) say("{} trained parameters\n", made.trained);
  for (const std::string& note : made.notes)
    output.alert(makeAlert(snapshot::Alert::WARNING, "artifacts_note", "artifacts: " + note));
  return {};
}

Status makeArtifacts(const ArtifactsArguments& a, const Output& output) {
  SS_ASSIGN(TrainOptions options, a.shared.apply());
  options.ringBytes = 0;
  options.record = "off";
  if (!a.fused || a.onnxruntime) SS_TRY(withoutOptionalPasses(options));
  SS_ASSIGN(const auto session, openSession(a.model, options, output, a.shared.mapWeights || a.nominal));
  SS_TRY(prepare(*session, a.shared));
  SS_TRY(session->build());
  if (a.onnxruntime) return makeTheirs(*session, a, output);
  SS_ASSIGN(const Artifacts made, writeArtifacts(*session, a.folder, a.nominal));
  tellArtifacts(made, a.json);
  return {};
}

}  // namespace

Command artifactsCommand() {
  auto a = std::make_shared<ArtifactsArguments>();
  Command command{"artifacts",
                  "training, evaluation and optimizer graphs and a checkpoint, for programs that run the training elsewhere",
                  {{"MODEL",
                    &a->model,
                    "ONNX file, a folder of stepscope_capture, or one of ONNX Runtime's artifacts to train here",
                    {},
                    true},
                   {"-o,--output", &a->folder, "the folder", "DIR", true},
                   {"--nominal", &a->nominal, "no file has the contents of a parameter, and there is no checkpoint"},
                   {"--fused", &a->fused, "with the passes of a training here, whose ops other programs may not know"},
                   {"--onnxruntime", &a->onnxruntime,
                    "files for onnxruntime.training.api: training, evaluation and optimizer model, checkpoint"},
                   {"--json", &a->json, "one JSON object per line: every file"}}};
  a->shared.addTo(command);
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = usageError(a->shared)) return *wrong;
    if (hasOnnxruntimeArtifacts(a->model)) {
      if (Status status = takeTheirs(*a); !status) return report(status.error());
      return kSuccess;
    }
    if (Status status = makeArtifacts(*a, output); !status) return report(status.error());
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
