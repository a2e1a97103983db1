#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "storage/comparison.h"

namespace stepscope::cli {
namespace {

using Json = nlohmann::json;
using storage::RunComparison;
using storage::TimeDifference;

constexpr std::size_t kShownOps = 20;  // of the text; --json has them all

Json number(const std::optional<double>& x) {
  if (!x) return nullptr;
  if (std::isfinite(*x)) return *x;
  return std::isnan(*x) ? "NaN" : *x > 0 ? "Infinity" : "-Infinity";
}

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

void printJson(const RunComparison& c) {
  Json options = Json::array(), memory = Json::array(), divergences = Json::array();
  for (const auto& o : c.options) options.push_back({{"name", o.name}, {"a", orNull(o.a)}, {"b", orNull(o.b)}});
  for (const auto& m : c.memory) memory.push_back({{"name", m.name}, {"a_bytes", orNull(m.a)}, {"b_bytes", orNull(m.b)}});
  for (const auto& d : c.steps.divergences) divergences.push_back(divergence(d));
  const Json root{{"event", "compare"},
                  {"a", {{"run", c.a.id}, {"name", c.a.name}, {"status", c.a.status}, {"step_time", statistics(c.stepA)}}},
                  {"b", {{"run", c.b.id}, {"name", c.b.name}, {"status", c.b.status}, {"step_time", statistics(c.stepB)}}},
                  {"steps", {{"both", c.steps.both}, {"only_a", c.steps.onlyA}, {"only_b", c.steps.onlyB}}},
                  {"first_difference", divergence(c.steps.unequal)},
                  {"first_divergence", divergence(c.steps.tolerance)},
                  {"divergences", divergences},
                  {"divergences_in_all", c.steps.outside},
                  {"value_statistics", c.steps.statistics},
                  {"options", options},
                  {"build_phases", times(c.buildPhases)},
                  {"step_phases", times(c.stepPhases)},
                  {"ops", times(c.ops)},
                  {"memory", memory}};
  fmt::print("{}\n", root.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string numberText(const std::optional<double>& x) { return x ? fmt::format("{:.9g}", *x) : "none"; }

std::string divergenceText(const std::optional<storage::Divergence>& d) {
  if (!d) return "none";
  const std::string of = d->value.empty() ? "" : fmt::format(" of '{}'", d->value);
  return fmt::format("step {}, {}{}: {} and {}", d->step, d->quantity, of, numberText(d->a), numberText(d->b));
}

std::string nsText(const std::optional<double>& ns) { return ns ? timeText(static_cast<std::int64_t>(*ns)) : "-"; }

std::string changeText(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b && *a > 0 ? fmt::format("{:+.1f} %", 100 * (*b / *a - 1)) : "-";
}

void printTimes(const char* title, const char* first, const std::vector<TimeDifference>& rows, bool withCounts) {
  if (rows.empty()) return fmt::print("\n{}: not recorded\n", title);
  std::vector<std::vector<std::string>> lines;
  for (const TimeDifference& r : rows) {
    if (lines.size() == kShownOps) break;
    const double ns = r.difference();
    lines.push_back({r.phase.empty() ? r.name : r.name + " " + r.phase, nsText(r.a), nsText(r.b),
                     (ns < 0 ? "-" : "+") + timeText(static_cast<std::int64_t>(std::abs(ns))), changeText(r.a, r.b)});
    if (withCounts)
      lines.back().push_back(r.countA == r.countB ? fmt::format("{}", r.countA)
                                                  : fmt::format("{} -> {}", r.countA, r.countB));
  }
  std::vector<std::string> header{first, "A", "B", "B - A", "change"};
  if (withCounts) header.emplace_back("instructions");
  fmt::print("\n{}\n{}", title, table(header, lines));
  if (rows.size() > lines.size()) fmt::print("{} more in --json\n", rows.size() - lines.size());
}

void printText(const RunComparison& c, const storage::Tolerance& tolerance) {
  fmt::print("A  run {}  {}  {}\nB  run {}  {}  {}\n", c.a.id, c.a.name, c.a.status, c.b.id, c.b.name, c.b.status);
  fmt::print("\nsteps in both {}, only in A {}, only in B {}\n", c.steps.both, c.steps.onlyA, c.steps.onlyB);
  if (c.steps.both > 0)
    fmt::print("first unequal number       {}\nfirst divergence           {}  (rtol {:g}, atol {:g})\n",
               divergenceText(c.steps.unequal), divergenceText(c.steps.tolerance), tolerance.rtol, tolerance.atol);
  else
    fmt::print("no step to compare: the runs share no step number\n");
  if (c.options.empty()) fmt::print("\nevery option is the same\n");
  if (!c.options.empty()) {
    std::vector<std::vector<std::string>> lines;
    for (const auto& o : c.options) lines.push_back({o.name, o.a.value_or("(not there)"), o.b.value_or("(not there)")});
    fmt::print("\noptions that differ\n{}", table({"option", "A", "B"}, lines, 3));
  }
  std::vector<TimeDifference> step{{"median step", {}, {}, {}, c.stepA.n, c.stepB.n}};
  if (c.stepA.n > 0) step[0].a = static_cast<double>(c.stepA.median);
  if (c.stepB.n > 0) step[0].b = static_cast<double>(c.stepB.median);
  step.insert(step.end(), c.stepPhases.begin(), c.stepPhases.end());
  printTimes("time per step, without warm-up and steps stopped in", "phase", step, false);
  printTimes("operators, time per step", "operator", c.ops, true);
  printTimes("build, newest of each run", "phase", c.buildPhases, false);
  std::vector<std::vector<std::string>> lines;
  for (const auto& m : c.memory) {
    const auto value = [](const std::optional<std::int64_t>& x) {
      return x ? std::optional(static_cast<double>(*x)) : std::nullopt;
    };
    lines.push_back({m.name, m.a ? bytesText(*m.a) : "-", m.b ? bytesText(*m.b) : "-", changeText(value(m.a), value(m.b))});
  }
  fmt::print("\nmemory\n{}", table({"bytes", "A", "B", "change"}, lines));
}

}  // namespace

Command compareCommand() {
  struct Arguments {
    std::string project, other;
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
                   {"--rtol", &args->tolerance.rtol, "relative tolerance of losses and gradient norms [1e-5]", "X"},
                   {"--atol", &args->tolerance.atol, "absolute tolerance [1e-8]", "X"},
                   {"--check", &args->check, "exit code 1 when the runs diverge or share no step"},
                   {"--json", &args->json, "one JSON object"}}};
  command.run = [args] {
    auto project = storage::Project::openReadOnly(args->project);
    if (!project) return fmt::print(stderr, "error: {}\n", project.error().message), kFailed;
    auto other = args->other.empty() ? std::nullopt : std::optional(storage::Project::openReadOnly(args->other));
    if (other && !*other) return fmt::print(stderr, "error: {}\n", other->error().message), kFailed;
    const auto result = storage::compareRuns(*project, args->a, other ? **other : *project, args->b, args->tolerance);
    if (!result) {
      fmt::print(stderr, "error: {}\n", result.error().message);
      return result.error().code == storage::ErrorCode::kInvalidArgument ? kUsage : kFailed;
    }
    if (args->json)
      printJson(*result);
    else
      printText(*result, args->tolerance);
    return args->check && (result->steps.tolerance || result->steps.both == 0) ? kFailed : kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
