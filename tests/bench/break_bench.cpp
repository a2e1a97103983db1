// What a step of a run (F5) costs under breakpoints that stop it nowhere, beside one at full speed (Ctrl+F5), in turns: the
// second of two steps in a row.
//
//   break_bench [--steps N] MODEL.onnx [SETTING=VALUE …]      settings as on the command line: threads=1, optimizer=adamw
//
// Weights that are not there are filled. Numbers of a run belong into RESULTS.md with date, machine and command.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/train/session.h"

namespace stepscope {
namespace {

using Clock = std::chrono::steady_clock;

// One way to run a step, and what its calls took, in milliseconds of the clock and of the processor.
struct Way {
  std::string name;
  std::vector<snapshot::Breakpoint> breakpoints;
  bool walked = false;  // instruction by instruction
  std::vector<double> ms, cpuMs;
};

double median(std::vector<double> all) {
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
  return all[all.size() / 2];
}

snapshot::Breakpoint breakpoint(bool enabled, const std::function<void(snapshot::Breakpoint&)>& set) {
  snapshot::Breakpoint made;
  made.set_enabled(enabled);
  set(made);
  return made;
}

std::vector<Way> ways(const Session& session) {
  const std::string loss = session.runningGraph().value(session.lossValue()).name;
  const auto nan = breakpoint(true, [](auto& b) { b.set_nan(true); });
  const auto inf = breakpoint(true, [](auto& b) { b.set_new_inf(true); });
  const auto off = breakpoint(false, [](auto& b) { b.set_instruction(3); });
  const auto condition = breakpoint(true, [&](auto& b) { b.set_predicate(loss + " value > 1e9"); });
  const auto& parameters = session.plans().parameters();
  const auto trained = std::ranges::find(parameters, true, &ParameterChoice::trained);
  const std::string parameter = trained == parameters.end() ? loss : session.plans().valueOf(*trained).name;
  const auto ofUpdate = breakpoint(true, [&](auto& b) { b.set_predicate(parameter + " max > 1e9"); });
  return {{"no breakpoint", {}},
          {"NaN and Inf", {nan, inf}},
          {"an instruction that is off", {off}},
          {"a condition on the loss", {condition}},
          {"all of these", {nan, inf, off, condition}},
          {"a condition on a parameter", {ofUpdate}},
          {"the condition, walked", {condition}, true}};
}

Status step(Session& session, const Way& way) {
  session.numbers().stopAtBreakpoints(!way.breakpoints.empty(), true);
  if (way.walked) SS_TRY(session.runToBreak(false));
  snapshot::StepRecord record;
  return session.step(record);
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
  std::vector<Way> all = ways(*session);
  for (int k = 0; k < steps + 2; ++k)
    for (Way& way : all) {
      SS_TRY(session->setBreakpoints(way.breakpoints));
      SS_TRY(step(*session, way));  // has the memory that the way before left
      const Clock::time_point begin = Clock::now();
      const std::clock_t cpu = std::clock();
      SS_TRY(step(*session, way));
      if (k < 2) continue;  // cold
      way.ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      way.cpuMs.push_back(1e3 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC);
    }
  const double plain = median(all.front().ms), plainCpu = median(all.front().cpuMs);
  for (const Way& way : all)
    fmt::print("{:<28} n {}  median {:9.3f} ms  {:.2f}   of the processor {:9.3f} ms  {:.2f}\n", way.name, steps,
               median(way.ms), median(way.ms) / plain, median(way.cpuMs), median(way.cpuMs) / plainCpu);
  return {};
}

}  // namespace
}  // namespace stepscope

int main(int argc, char** argv) {
  int steps = 20, first = 1;
  if (argc > 2 && std::string_view(argv[1]) == "--steps") steps = std::atoi(argv[2]), first = 3;
  if (first >= argc || steps < 1)
    return fmt::print(stderr, "usage: break_bench [--steps N] MODEL.onnx [SETTING=VALUE …]\n"), 2;
  const stepscope::Status status = stepscope::run(argv[first], {argv + first + 1, argv + argc}, steps);
  if (!status) fmt::print(stderr, "error: {}\n", status.error().message);
  return status ? EXIT_SUCCESS : EXIT_FAILURE;
}
