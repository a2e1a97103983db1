#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_project.h"
#include "app/cli/output.h"
#include "app/cli/setting_json.h"
#include "app/cli/terminal.h"
#include "engine/snapshot/units.h"
#include "storage/comparison.h"
#include "storage/report/comparison_document.h"
#include "storage/report/report.h"
#include "storage/trials.h"

namespace stepscope::cli {
namespace {

using Json = nlohmann::json;
using storage::RunComparison;
using storage::TimeDifference;

constexpr std::size_t kShownOps = 20;  // of the text; --json has them all

Json number(const std::optional<double>& x) { return x ? Json(*x) : Json(nullptr); }

Json divergence(const std::optional<storage::Divergence>& d) {
  if (!d) return nullptr;
  Json json{{"step", d->step}, {"quantity", d->quantity}, {"a", number(d->a)}, {"b", number(d->b)}, {"phase", d->phase}};
  if (!d->value.empty()) json["value"] = d->value;
  return json;
}

template <typename T>
Json orNull(const std::optional<T>& x) {
  return x ? Json(*x) : Json(nullptr);
}

Json statistics(const storage::TimeStats& s) {
  return {{"n", s.n}, {"median_ns", s.median}, {"p95_ns", s.p95}, {"min_ns", s.min}, {"max_ns", s.max}, {"mean_ns", s.mean}};
}

Json times(const std::vector<TimeDifference>& rows) {
  Json list = Json::array();
  for (const TimeDifference& r : rows) {
    Json row{{"name", r.name}, {"a_ns", orNull(r.a)}, {"b_ns", orNull(r.b)}, {"a_count", r.countA}, {"b_count", r.countB}};
    if (!r.phase.empty()) row["phase"] = r.phase;
    if (r.timeA.n > 0) row["a_time"] = statistics(r.timeA);
    if (r.timeB.n > 0) row["b_time"] = statistics(r.timeB);
    list.push_back(std::move(row));
  }
  return list;
}

Json side(const storage::RunRow& run, const storage::TimeStats& step, const storage::StepKind& kind) {
  return {{"run", run.id},         {"name", run.name},   {"status", run.status}, {"step_time", statistics(step)},
          {"speed", kind.speed()}, {"cpu_ns", kind.cpu}, {"wait_ns", kind.wait}, {"busy", kind.busy()}};
}

// What an option gave in either run, as far as both tried it.
struct TrialPair {
  snapshot::Trial a, b;
};

std::vector<TrialPair> trialPairs(const std::vector<snapshot::Trial>& a, const std::vector<snapshot::Trial>& b) {
  std::vector<TrialPair> pairs;
  for (const snapshot::Trial& of : a)
    for (const snapshot::Trial& other : b)
      if (of.option() == other.option() && of.to() == other.to() && of.rounds() > 0 && other.rounds() > 0 &&
          !of.to().empty())
        pairs.push_back({of, other});
  return pairs;
}

void printTrials(const std::vector<TrialPair>& pairs) {
  if (pairs.empty()) return;
  std::vector<std::vector<std::string>> lines;
  const auto text = [](const snapshot::Trial& t) {
    return fmt::format("{:.3f} ({:.3f} .. {:.3f}), {}", t.ratio(), t.low(), t.high(), t.verdict());
  };
  for (const TrialPair& pair : pairs)
    lines.push_back({fmt::format("{} {} -> {}", pair.a.option(), pair.a.from(), pair.a.to()), text(pair.a), text(pair.b)});
  say("\ntrials of both runs, time with the change / without\n{}", table({"change", "A", "B"}, lines, 3));
}

void printCompareJson(const RunComparison& c, const std::vector<TrialPair>& pairs) {
  Json trials = Json::array();
  const auto trial = [](const snapshot::Trial& t) {
    return Json{{"ratio", t.ratio()}, {"low", t.low()}, {"high", t.high()}, {"verdict", t.verdict()}};
  };
  for (const TrialPair& pair : pairs)
    trials.push_back({{"option", pair.a.option()},
                      {"from", settingJson(pair.a.option(), pair.a.from())},
                      {"to", settingJson(pair.a.option(), pair.a.to())},
                      {"a", trial(pair.a)},
                      {"b", trial(pair.b)}});
  Json options = Json::array(), memory = Json::array(), divergences = Json::array();
  const auto setting = [](const std::string& name, const std::optional<std::string>& value) {
    return value ? settingJson(name, *value) : Json(nullptr);
  };
  for (const auto& o : c.options)
    options.push_back({{"name", o.name}, {"a", setting(o.name, o.a)}, {"b", setting(o.name, o.b)}});
  for (const auto& m : c.memory) memory.push_back({{"name", m.name}, {"a_bytes", orNull(m.a)}, {"b_bytes", orNull(m.b)}});
  for (const auto& d : c.steps.divergences) divergences.push_back(divergence(d));
  const Json root{{"event", "compare"},
                  {"a", side(c.a, c.stepA, c.kindA)},
                  {"b", side(c.b, c.stepB, c.kindB)},
                  {"unlike_speeds", storage::unlikeSpeeds(c.kindA, c.kindB)},
                  {"steps", {{"both", c.steps.both}, {"only_a", c.steps.onlyA}, {"only_b", c.steps.onlyB}}},
                  {"first_difference", divergence(c.steps.unequal)},
                  {"first_divergence", divergence(c.steps.tolerance)},
                  {"divergences", divergences},
                  {"divergences_in_all", c.steps.outside},
                  {"not_compared", storage::unmeasuredText(c.steps)},
                  {"value_statistics", c.steps.statistics},
                  {"options", options},
                  {"threads", c.threads},
                  {"warm_up", c.warmUp},
                  {"build_phases", times(c.buildPhases)},
                  {"step_phases", times(c.stepPhases)},
                  {"ops", times(c.ops)},
                  {"trials", trials},
                  {"memory", memory}};
  sayJson(root);
}

std::string numberText(const std::optional<double>& x, int digits) {
  return x ? fmt::format("{:.{}g}", *x, digits) : "none";
}

std::string divergenceText(const std::optional<storage::Divergence>& d) {
  if (!d) return "none";
  const std::string of = d->value.empty() ? "" : fmt::format(" of '{}'", d->value);
  // As many digits as it takes to see that they differ.
  int digits = 9;
  while (digits < 17 && d->a && d->b && *d->a != *d->b && numberText(d->a, digits) == numberText(d->b, digits)) ++digits;
  return fmt::format("step {}, {}{}: {} and {}", d->step, d->quantity, of, numberText(d->a, digits),
                     numberText(d->b, digits));
}

std::string nsText(const std::optional<double>& ns) { return ns ? units::time(*ns) : "-"; }

std::string changeText(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b && *a > 0 ? fmt::format("{:+.1f} %", 100 * (*b / *a - 1)) : "-";
}

void printTimes(const char* title, const char* first, const std::vector<TimeDifference>& rows, bool withCounts) {
  if (rows.empty()) return say("\n{}: not recorded\n", title);
  std::vector<std::vector<std::string>> lines;
  for (const TimeDifference& r : rows) {
    if (lines.size() == kShownOps) break;
    const double ns = r.difference();
    lines.push_back({r.phase.empty() ? r.name : r.name + " " + r.phase, nsText(r.a), nsText(r.b),
                     r.alike ? (ns < 0 ? "-" : "+") + units::time(std::abs(ns)) : "-",
                     r.alike ? changeText(r.a, r.b) : "-"});
    if (withCounts)
      lines.back().push_back(r.countA == r.countB ? fmt::format("{}", r.countA)
                                                  : fmt::format("{} -> {}", r.countA, r.countB));
  }
  std::vector<std::string> header{first, "A", "B", "B - A", "change"};
  if (withCounts) header.emplace_back("instructions");
  say("\n{}\n{}", title, table(header, lines));
  if (rows.size() > lines.size()) say("{} more in --json\n", rows.size() - lines.size());
}

void printCompareText(const RunComparison& c, const storage::Tolerance& tolerance) {
  say("A  run {}  {}  {}\nB  run {}  {}  {}\n", c.a.id, c.a.name, c.a.status, c.b.id, c.b.name, c.b.status);
  say("\nsteps in both {}, only in A {}, only in B {}\n", c.steps.both, c.steps.onlyA, c.steps.onlyB);
  if (c.steps.both > 0)
    say("first unequal number       {}\nfirst divergence           {}  (rtol {:g}, atol {:g})\n",
        divergenceText(c.steps.unequal), divergenceText(c.steps.tolerance), tolerance.rtol, tolerance.atol);
  else
    say("no step to compare: the runs share no step number\n");
  if (const std::string unmeasured = storage::unmeasuredText(c.steps); !unmeasured.empty())
    say("not compared               {}\n", unmeasured);
  if (c.options.empty()) say("\nevery option is the same\n");
  if (!c.options.empty()) {
    std::vector<std::vector<std::string>> lines;
    for (const auto& o : c.options) lines.push_back({o.name, o.a.value_or("(not there)"), o.b.value_or("(not there)")});
    say("\noptions that differ\n{}", table({"option", "A", "B"}, lines, 3));
  }
  if (!c.threads.empty()) say("\n{}\n", c.threads);
  if (!c.warmUp.empty()) say("\n{}\n", c.warmUp);
  std::vector<TimeDifference> step{{"median step", {}, {}, {}, c.stepA.n, c.stepB.n}};
  if (c.stepA.n > 0) step[0].a = static_cast<double>(c.stepA.median);
  if (c.stepB.n > 0) step[0].b = static_cast<double>(c.stepB.median);
  step.insert(step.end(), c.stepPhases.begin(), c.stepPhases.end());
  if (const std::string unlike = storage::unlikeSpeeds(c.kindA, c.kindB); !unlike.empty())
    say("\nthe steps did not run in the same way, so their times say little about the settings: {}\n", unlike);
  for (const auto& [name, kind] : {std::pair("A", c.kindA), std::pair("B", c.kindB)})
    if (kind.busy())
      say("\nrun {} ran on a busy machine: {:.0f} % of the processor time it asked for was spent waiting; its times are "
          "longer "
          "for it\n",
          name, 100 * kind.waitShare());
  printTimes("median time per step, without warm-up and steps stopped in", "phase", step, false);
  printTimes("operators, medians of their instructions together", "operator", c.ops, true);
  printTimes("build, newest of each run", "phase", c.buildPhases, false);
  std::vector<std::vector<std::string>> lines;
  for (const auto& m : c.memory) {
    const auto value = [](const std::optional<std::int64_t>& x) {
      return x ? std::optional(static_cast<double>(*x)) : std::nullopt;
    };
    lines.push_back(
        {m.name, m.a ? units::bytes(*m.a) : "-", m.b ? units::bytes(*m.b) : "-", changeText(value(m.a), value(m.b))});
  }
  say("\nmemory\n{}", table({"bytes", "A", "B", "change"}, lines));
}

}  // namespace

Command compareCommand() {
  struct Arguments {
    std::string project, other, output;
    std::int64_t a = 0, b = 0;
    storage::Tolerance tolerance;
    bool json = false, check = false;
  };
  auto args = std::make_shared<Arguments>();
  Command command{"compare",
                  "two runs, of one project or of two: first divergence, options, time, memory",
                  {{"PROJECT", &args->project, "project file", {}, true},
                   {"RUN_A", &args->a, "number of a run (stepscope inspect PROJECT lists them)", {}, true},
                   {"RUN_B", &args->b, "number of the run that is compared with it", {}, true},
                   {"--other", &args->other, "project that RUN_B is in, when it is another one", "PROJECT"},
                   {"-o,--output", &args->output, "file to write it to, .html or .txt, instead of printing it", "FILE"},
                   {"--rtol", &args->tolerance.rtol, "relative tolerance of losses and gradient norms [1e-5]", "X"},
                   {"--atol", &args->tolerance.atol, "absolute tolerance [1e-8]", "X"},
                   {"--check", &args->check, "exit code 1 when the runs diverge or share no step"},
                   {"--json", &args->json, "one JSON object"}}};
  command.run = [args] {
    const auto project = openProject(args->project);
    if (!project) return kFailed;
    std::optional<storage::Project> other;
    if (!args->other.empty() && !(other = openProject(args->other))) return kFailed;
    const auto result = storage::compareRuns(*project, args->a, other ? *other : *project, args->b, args->tolerance);
    if (!result) {
      tellError(result.error().message);
      return result.error().code == storage::ErrorCode::kInvalidArgument ? kUsage : kFailed;
    }
    const auto trialsA = storage::readTrials(*project, args->a),
               trialsB = storage::readTrials(other ? *other : *project, args->b);
    if (!trialsA || !trialsB) return tellError((trialsA ? trialsB : trialsA).error().message);
    const std::vector<TrialPair> pairs = trialPairs(*trialsA, *trialsB);
    if (!args->output.empty()) {
      if (auto written = storage::writeReport(storage::comparisonDocument(*result, args->tolerance), args->output);
          !written) {
        tellError(written.error().message);
        return written.error().code == storage::ErrorCode::kInvalidArgument ? kUsage : kFailed;
      }
      if (!args->json) say("{}\n", args->output);
    }
    if (args->json) {
      printCompareJson(*result, pairs);
    } else if (args->output.empty()) {
      printCompareText(*result, args->tolerance);
      printTrials(pairs);
    }
    if (!args->check) return kSuccess;
    if (result->steps.both == 0)
      return tellError(
          fmt::format("compare: runs {} and {} share no step; expected steps that both have", args->a, args->b));
    if (result->steps.tolerance)
      return tellError(fmt::format("compare: runs {} and {} part in {}; expected no difference above rtol {:g}, atol {:g}",
                                   args->a, args->b, divergenceText(result->steps.tolerance), args->tolerance.rtol,
                                   args->tolerance.atol));
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
