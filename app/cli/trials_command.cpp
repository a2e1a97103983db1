// `stepscope trials`: every option changed in turn, measured next to the step as it is.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/places.h"
#include "app/cli/record_run.h"
#include "app/cli/setting_json.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/snapshot/units.h"

namespace stepscope::cli {
namespace {

constexpr std::int64_t kNotGiven = std::numeric_limits<std::int64_t>::min();

struct TrialsArguments {
  std::string model, project, only, batches;
  std::int64_t rounds = kNotGiven, nothing = 1, planted = 0;
  double seconds = static_cast<double>(kNotGiven);
  bool json = false;
  SharedOptions shared;
};

Session* runningTrials = nullptr;

void onTrialsInterrupt(int) {
  if (runningTrials) runningTrials->cancel();
}

nlohmann::json trialJson(const snapshot::Trial& t) {
  const auto& p = t.parity();
  return {{"event", "trial"},
          {"option", t.option()},
          {"from", settingJson(t.option(), t.from())},
          {"to", settingJson(t.option(), t.to())},
          {"rounds", t.rounds()},
          {"median_ns_before", t.median_ns_before()},
          {"median_ns_after", t.median_ns_after()},
          {"ratio", t.ratio()},
          {"low", t.low()},
          {"high", t.high()},
          {"p", t.p()},
          {"adjusted_p", t.adjusted_p()},
          {"peak_before", t.peak_before()},
          {"peak_after", t.peak_after()},
          {"measured_peak_before", t.measured_peak_before()},
          {"measured_peak_after", t.measured_peak_after()},
          {"expected_ns_before", t.expected_ns_before()},
          {"expected_ns_after", t.expected_ns_after()},
          {"parity",
           {{"compared", p.compared()},
            {"unavailable", p.unavailable()},
            {"loss", p.loss()},
            {"gradient", p.gradient()},
            {"parameter", p.parameter()},
            {"loss_relative", p.loss_relative()},
            {"gradient_relative", p.gradient_relative()},
            {"parameter_relative", p.parameter_relative()},
            {"cosine", p.cosine()},
            {"bits", p.bits()},
            {"worst", p.worst()}}},
          {"verdict", t.verdict()},
          {"identical", t.identical()},
          {"note", t.note()}};
}

void printTrialsJson(const snapshot::TrialsReport& report) {
  for (const auto& trial : report.trials()) sayJson(trialJson(trial));
  sayJson({{"event", "trials"},
           {"step", report.step()},
           {"batch", report.batch()},
           {"batches", report.batches()},
           {"candidates", report.candidates()},
           {"nothing", report.nothing()},
           {"nothing_found", report.nothing_found()},
           {"planted", report.planted()},
           {"planted_found", report.planted_found()},
           {"cancelled", report.cancelled()}});
}

std::string change(const snapshot::Trial& t) {
  return t.option().starts_with('(') ? t.option() : fmt::format("{} {} -> {}", t.option(), t.from(), t.to());
}

std::string parityText(const snapshot::TrialParity& p) {
  if (!p.compared()) return "not compared";
  if (p.bits()) return "same bits";
  return fmt::format("gradients off by {:.2g}", units::signless(p.gradient_relative()));
}

std::string growth(std::int64_t before, std::int64_t after) {
  if (before == after || before == 0) return "same";
  return fmt::format("{:+.1f} %", 100.0 * static_cast<double>(after - before) / static_cast<double>(before));
}

void printTrialsText(const snapshot::TrialsReport& report) {
  const auto time = [](double ns) { return units::time(ns); };
  std::vector<std::vector<std::string>> rows;
  std::size_t identical = 0;
  std::string same;
  for (const auto& t : report.trials()) {
    if (t.identical()) {
      ++identical;
      same += (same.empty() ? "" : ", ") + t.option() + "=" + t.to();
      continue;
    }
    if (t.rounds() == 0) continue;
    rows.push_back({change(t), t.verdict(), fmt::format("{:.3f}", t.ratio()),
                    fmt::format("{:.3f} .. {:.3f}", t.low(), t.high()), fmt::format("{:.2g}", t.adjusted_p()),
                    time(t.median_ns_before()), time(t.median_ns_after()), growth(t.peak_before(), t.peak_after()),
                    parityText(t.parity())});
  }
  say("step {} ({}), {} batch{} in turns\n\n", report.step(), report.batch(), report.batches(),
      report.batches() == 1 ? "" : "es");
  say("{}", table({"change", "verdict", "ratio", "95 % interval", "p", "before", "after", "peak", "numbers"}, rows, 2));
  for (const auto& t : report.trials())
    if (t.verdict() == "failed") say("{} failed: {}\n", change(t), t.note());
  if (identical > 0) say("\nno effect on the plan ({}): {}\n", identical, same);
  say("\nratio: time after / before, the median of the rounds; p: of the sign test, corrected for all of them by Holm's "
      "method; "
      "a verdict needs p of at most 0.05 and an interval that lies 1 % or more away from 1; not shown: the interval leaves "
      "1 "
      "out, and that is not enough among so many: more rounds, or fewer changes (--only), would tell\n"
      "(nothing): the plan with itself; {} of {} called different\n",
      report.nothing_found(), report.nothing());
  if (report.planted() > 0)
    say("(5 % slower): the plan with itself, waiting for 5 % of each step; {} of {} called slower\n", report.planted_found(),
        report.planted());
  if (report.cancelled())
    say("cancelled: {} of {} options were tried\n", report.trials_size() - report.nothing() - report.planted(),
        report.candidates());
}

// While it goes on: one line that changes on a terminal, a line for each candidate elsewhere.
class Live {
 public:
  explicit Live(bool json) : json_(json), terminal_(isatty(2) != 0) {}
  void progress(const std::string& what, std::int64_t done, std::int64_t total) const {
    if (json_ || !terminal_) return;
    tell("{}{}/{} {}", Ready{"\r\x1b[K"}, done, total, what);
  }
  void tried(const snapshot::Trial& t, std::int64_t done) const {
    if (json_) {
      sayJson({{"event", "progress"}, {"what", change(t)}, {"done", done}});
      return;
    }
    const std::string clear = terminal_ ? "\r\x1b[K" : "";
    if (t.rounds() == 0)
      tell("{}{}: {}\n", Ready{clear}, change(t), t.note());
    else
      tell("{}{}: {:.3f} ({:.3f} .. {:.3f}), {}\n", Ready{clear}, change(t), t.ratio(), t.low(), t.high(),
           parityText(t.parity()));
  }

 private:
  bool json_, terminal_;
};

Result<snapshot::GetTrials> trialsQuestion(const TrialsArguments& a) {
  snapshot::GetTrials question;
  question.set_only(a.only);
  const bool secondsGiven = a.seconds != static_cast<double>(kNotGiven);
  if (a.rounds != kNotGiven && secondsGiven)
    return invalidOption("seconds", "rounds are given as well; expected one of them");
  if (a.rounds != kNotGiven && (a.rounds < 6 || a.rounds > 100'000))
    return invalidOption("rounds", fmt::format("found {}; expected 6 to 100000: fewer have no interval of 95 %", a.rounds));
  if (secondsGiven && !(a.seconds > 0 && std::isfinite(a.seconds)))
    return invalidOption("seconds", fmt::format("found {}; expected a time above 0", a.seconds));
  if (a.nothing < 1 || a.nothing > 1000)
    return invalidOption("nothing", fmt::format("found {}; expected 1 to 1000", a.nothing));
  if (a.planted < 0 || a.planted > 1000)
    return invalidOption("planted", fmt::format("found {}; expected 0 to 1000", a.planted));
  question.set_planted(static_cast<int>(a.planted));
  if (a.rounds != kNotGiven) question.set_rounds(static_cast<int>(a.rounds));
  if (secondsGiven) question.set_seconds(a.seconds);
  question.set_nothing(static_cast<int>(a.nothing));
  std::string_view rest = a.batches;
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), extent);
    if (error != std::errc() || end != one.data() + one.size() || extent < 1)
      return invalidOption("batches", fmt::format("found '{}'; expected extents from 1 on, such as 1,2,4,8", a.batches));
    question.add_batches(extent);
  }
  return question;
}

Status trials(const TrialsArguments& a, const Output& output) {
  SS_ASSIGN(TrainOptions options, a.shared.apply());
  SS_ASSIGN(const snapshot::GetTrials question, trialsQuestion(a));
  SS_TRY(checkPlace("project", a.project));
  options.ringBytes = 0;
  options.record = "off";
  const Live live(a.json);
  SS_ASSIGN(const auto session, openSession(a.model, options, output, a.shared.mapWeights,
                                            [&live](const std::string& what, std::int64_t done, std::int64_t total) {
                                              live.progress(what, done, total);
                                            }));
  SS_TRY(prepare(*session, a.shared));
  SS_TRY(session->build());
  std::unique_ptr<storage::Recorder> recorder;
  if (!a.project.empty()) {
    SS_ASSIGN(recorder, startRecorder(a.project, a.model, *session));
    recordBuild(*recorder, *session);
  }
  runningTrials = session.get();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, onTrialsInterrupt);
  std::int64_t done = 0;
  const auto report = session->lab().trials(question, [&](const snapshot::Trial& trial) { live.tried(trial, ++done); });
  runningTrials = nullptr;
  if (recorder) {
    if (report) recorder->trials(*report);
    recorder->endRun(!report               ? storage::RunStatus::kFailed
                     : report->cancelled() ? storage::RunStatus::kCancelled
                                           : storage::RunStatus::kFinished,
                     report ? std::string() : report.error().message);
    if (const auto closed = recorder->close(); !closed) return fail(ErrorCode::kIo, closed.error().message);
  }
  if (!report) return tl::make_unexpected(report.error());
  if (a.json)
    printTrialsJson(*report);
  else
    printTrialsText(*report);
  return {};
}

}  // namespace

Command trialsCommand() {
  auto a = std::make_shared<TrialsArguments>();
  Command command{
      "trials",
      "try every option: time, memory and numbers of the step with it changed, next to the step as it is",
      {{"MODEL", &a->model, "ONNX file, or a folder of stepscope_capture", {}, true},
       {"--only", &a->only, "regular expression: only matching changes, written OPTION=VALUE", "REGEX"},
       {"--rounds", &a->rounds, "steps of each pair, 6 or more [40; 16 where a step takes more than 0.2 s]", "N"},
       {"--seconds", &a->seconds, "instead of rounds: how long to measure in all", "S"},
       {"--batches", &a->batches, "batch sizes to try as well, such as 1,2,4; needs synthetic data", "N,N"},
       {"--nothing", &a->nothing, "so many times the plan is compared with itself [1]", "N"},
       {"--planted", &a->planted,
        "so many times it is compared with itself slowed down by 5 %: how surely this machine finds so much [0]", "N"},
       {"--project", &a->project, "record the trials into this project file", "FILE"},
       {"--json", &a->json, "one JSON object per line"}}};
  a->shared.addTo(command);
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = usageError(a->shared)) return *wrong;
    if (const auto question = trialsQuestion(*a); !question) {
      report(question.error());
      return kUsage;
    }
    if (Status status = trials(*a, output); !status) return report(status.error());
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
