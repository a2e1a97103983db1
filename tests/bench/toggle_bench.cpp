// How long an option takes to come into force in the middle of a paused step: every pass of a model is switched and
// switched back while the step stands at its first instruction, so that no kernel runs and the plan alone is timed.
//
//   toggle_bench MODEL.onnx [SETTING=VALUE …]      settings as on the command line: dim=batch=2, missing-weights=random …
//
// Numbers of a run belong into RESULTS.md with date, machine and command.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/train/session.h"

namespace stepscope {
namespace {

struct Turn {
  std::string option, value;
  double ms = 0;
};

double msSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

Status change(Session& session, const std::string& option, const std::string& value) {
  TrainOptions options = session.options();
  SS_TRY(applySetting(options, option, value, "bench"));
  SS_TRY(session.setOptions(std::move(options)));
  return session.applyOptions();
}

Status run(const std::string& model, const std::vector<std::string>& settings) {
  TrainOptions options;
  for (const std::string& setting : settings) {
    const std::size_t at = setting.find('=');
    if (at == std::string::npos) return invalid(fmt::format("setting '{}': expected NAME=VALUE", setting));
    SS_TRY(applySetting(options, setting.substr(0, at), setting.substr(at + 1), "bench"));
  }
  LoadOptions load;
  if (options.missingWeights == "random") load.missingWeights = LoadOptions::MissingWeights::kRandom;
  SS_ASSIGN(const std::unique_ptr<Session> session, Session::open(model, load, {}));
  SS_TRY(session->setOptions(std::move(options)));
  SS_TRY(session->build());
  SS_TRY(session->beginStep());
  std::vector<Turn> turns;
  for (const OptionInfo& info : optionTable()) {
    if (!info.name.starts_with("pass.")) continue;
    const bool on = info.defaultValue == "on";
    for (const char* value : {on ? "off" : "on", on ? "on" : "off"}) {
      const auto begin = std::chrono::steady_clock::now();
      SS_TRY(change(*session, std::string(info.name), value));
      turns.push_back({std::string(info.name), value, msSince(begin)});
    }
  }
  std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.ms > b.ms; });
  for (const Turn& turn : turns) fmt::print("{:<34} {:<4} {:8.1f} ms\n", turn.option, turn.value, turn.ms);
  if (!turns.empty())
    fmt::print("{} changes of a plan of {} instructions: median {:.1f} ms, longest {:.1f} ms\n", turns.size(),
               session->stepper().count(), turns[turns.size() / 2].ms, turns.front().ms);
  return {};
}

}  // namespace
}  // namespace stepscope

int main(int argc, char** argv) {
  if (argc < 2) return fmt::print(stderr, "usage: toggle_bench MODEL.onnx [SETTING=VALUE …]\n"), 2;
  const stepscope::Status status = stepscope::run(argv[1], {argv + 2, argv + argc});
  if (!status) fmt::print(stderr, "error: {}\n", status.error().message);
  return status ? EXIT_SUCCESS : EXIT_FAILURE;
}
