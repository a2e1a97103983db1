#include "app/cli/open_session.h"

#include <fmt/format.h>

#include "app/cli/capture_folder.h"
#include "app/cli/terminal.h"
#include "engine/plugin/plugin_registry.h"
#include "engine/snapshot/alert.h"

namespace stepscope::cli {

Result<std::unique_ptr<Session>> openSession(const std::string& model, TrainOptions& options, const Output& output,
                                             bool mapWeights, Progress progress) {
  std::filesystem::path path = model;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    SS_ASSIGN(path, openCaptureFolder(path, options));
  }
  LoadOptions load;
  load.mapWeights = mapWeights;
  load.loopIterations = options.loopIterations;
  if (options.missingWeights == "random") load.missingWeights = LoadOptions::MissingWeights::kRandom;
  Observer observer;
  observer.phase = [&output](const snapshot::PhaseSpan& span) { output.phase(span); };
  observer.alert = [&output](const snapshot::Alert& alert) { output.alert(alert); };
  observer.progress = std::move(progress);
  SS_ASSIGN(auto registry, registryOf(options));
  std::vector<Problem> problems;
  auto session = Session::open(path, load, std::move(observer), &problems, std::move(registry));
  if (!session) {
    for (std::size_t i = 1; i < problems.size() && i < 50; ++i)
      tell("problem: {}: {}{}{}\n", problems[i].where, problems[i].message,
           problems[i].hint.empty() ? "" : "; hint: ", problems[i].hint);
    return session;
  }
  SS_TRY((*session)->setOptions(options));
  if (std::filesystem::is_directory(model, error)) {
    SS_ASSIGN(const auto notes, captureNotes(model));
    for (const std::string& note : notes)
      output.alert(makeAlert(snapshot::Alert::WARNING, "capture_note", "capture: " + note));
  }
  return session;
}

Status prepare(Session& session, const SharedOptions& shared) {
  if (shared.initFrom.empty()) return {};
  TrainOptions options = session.options();
  options.startState.clear();  // a capture's; the user asked for another one
  SS_TRY(session.setOptions(std::move(options)));
  SS_TRY(session.trained().load(shared.initFrom, shared.resume));
  return {};
}

}  // namespace stepscope::cli
