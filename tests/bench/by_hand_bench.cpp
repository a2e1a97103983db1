// What a step costs that is begun by hand and finished (F8) beside one at full speed (Ctrl+F5), in turns.
//
//   by_hand_bench [--steps N] MODEL.onnx [SETTING=VALUE …]      settings as on the command line: threads=1, optimizer=adamw
//   …
//
// Weights that are not there are filled. Numbers of a run belong into RESULTS.md with date, machine and command.
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

using Clock = std::chrono::steady_clock;

struct Turn {
  double wall = 0, cpu = 0;  // milliseconds
};

// Of one way to run a step, without what the Session does around it.
struct Times {
  std::vector<Turn> around, inside;  // from the call to its end; of the record
};

double median(const std::vector<Turn>& turns, double Turn::*which) {
  std::vector<double> all;
  for (const Turn& turn : turns) all.push_back(turn.*which);
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
  return all[all.size() / 2];
}

template <class Step>
Status time(Times& times, Step step) {
  const Clock::time_point begin = Clock::now();
  SS_ASSIGN(const snapshot::StepRecord record, step());
  times.around.push_back({std::chrono::duration<double, std::milli>(Clock::now() - begin).count(), 0});
  times.inside.push_back({static_cast<double>(record.ns()) * 1e-6, static_cast<double>(record.cpu_ns()) * 1e-6});
  return {};
}

Status run(const std::string& model, const std::vector<std::string>& settings, int steps) {
  TrainOptions options;
  options.missingWeights = "random";
  for (const std::string& setting : settings) {
    const std::size_t at = setting.find('=');
    if (at == std::string::npos) return invalid(fmt::format("setting '{}': expected NAME=VALUE", setting));
    SS_TRY(applySetting(options, setting.substr(0, at), setting.substr(at + 1), "bench"));
  }
  LoadOptions load;
  load.missingWeights = LoadOptions::MissingWeights::kRandom;
  SS_ASSIGN(const std::unique_ptr<Session> session, Session::open(model, load, {}));
  SS_TRY(session->setOptions(std::move(options)));
  SS_TRY(session->build());
  for (int k = 0; k < 2; ++k) SS_TRY(session->step());  // the first ones of a plan are cold
  Times atOnce, byHand;
  for (int k = 0; k < steps; ++k) {
    SS_TRY(time(atOnce, [&] { return session->step(); }));
    SS_TRY(time(byHand, [&]() -> Result<snapshot::StepRecord> {
      SS_TRY(session->beginStep());
      return session->finishStep();
    }));
  }
  for (const auto& [name, times] : {std::pair{"full speed", &atOnce}, std::pair{"by hand", &byHand}})
    fmt::print("{:<11} n {}  median: call {:9.2f} ms, step {:9.2f} ms, its processor time {:9.2f} ms\n", name, steps,
               median(times->around, &Turn::wall), median(times->inside, &Turn::wall), median(times->inside, &Turn::cpu));
  fmt::print("by hand / full speed: {:.2f} of the call, {:.2f} of the step's processor time\n",
             median(byHand.around, &Turn::wall) / median(atOnce.around, &Turn::wall),
             median(byHand.inside, &Turn::cpu) / median(atOnce.inside, &Turn::cpu));
  return {};
}

}  // namespace
}  // namespace stepscope

int main(int argc, char** argv) {
  int steps = 5, first = 1;
  if (argc > 2 && std::string_view(argv[1]) == "--steps") steps = std::atoi(argv[2]), first = 3;
  if (first >= argc || steps < 1)
    return fmt::print(stderr, "usage: by_hand_bench [--steps N] MODEL.onnx [SETTING=VALUE …]\n"), 2;
  const stepscope::Status status = stepscope::run(argv[first], {argv + first + 1, argv + argc}, steps);
  if (!status) fmt::print(stderr, "error: {}\n", status.error().message);
  return status ? EXIT_SUCCESS : EXIT_FAILURE;
}
