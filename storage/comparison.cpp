#include "storage/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "storage/bounded.h"
#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

Result<RunRow> find(const Project& project, std::int64_t run, const Standing& standing) {
  SS_STORE_ASSIGN(const std::vector<RunRow> runs, listRuns(project, standing));
  std::string there;
  for (const RunRow& row : runs) {
    if (row.id == run) return row;
    if (there.size() < 60) there += fmt::format("{}{}", there.empty() ? "" : ", ", row.id);
  }
  return fail(ErrorCode::kNotFound, fmt::format("run '{}': not in this project; expected one of the project's runs: {}", run,
                                                there.empty() ? "none, the project is empty" : there));
}

std::vector<OptionDifference> compareOptions(const RunRow& a, const RunRow& b, const std::vector<OptionRow>& optionsA,
                                             const std::vector<OptionRow>& optionsB) {
  std::vector<OptionDifference> out;
  const auto setting = [&](const char* name, std::string x, std::string y) {
    if (x != y) out.push_back({name, std::move(x), std::move(y)});
  };
  setting("model", a.modelPath, b.modelPath);
  setting("weights", a.weights, b.weights);
  const auto has = [](const std::vector<OptionRow>& options, const std::string& name) {
    return std::any_of(options.begin(), options.end(), [&](const OptionRow& o) { return o.name == name; });
  };
  // Settings of the run that its list of options does not carry.
  const auto unlessListed = [&](const char* name, std::string x, std::string y) {
    if (!has(optionsA, name) && !has(optionsB, name)) setting(name, std::move(x), std::move(y));
  };
  unlessListed("device", a.device, b.device);
  unlessListed("precision", a.precision, b.precision);
  unlessListed("threads", std::to_string(a.threads), std::to_string(b.threads));
  unlessListed("seed", std::to_string(a.seed), std::to_string(b.seed));
  unlessListed("optimizer", a.optimizer, b.optimizer);
  const auto value = [](const std::vector<OptionRow>& options, const std::string& name) -> std::optional<std::string> {
    for (const OptionRow& o : options)
      if (o.name == name) return o.value;
    return std::nullopt;
  };
  for (const OptionRow& o : optionsA)
    if (auto other = value(optionsB, o.name); other != o.value) out.push_back({o.name, o.value, std::move(other)});
  for (const OptionRow& o : optionsB)
    if (!has(optionsA, o.name)) out.push_back({o.name, std::nullopt, o.value});
  return out;
}

// Sums are cut by the number of threads unless option deterministic says that they are not.
std::string threadsText(const RunRow& a, const RunRow& b, const std::vector<OptionRow>& optionsA,
                        const std::vector<OptionRow>& optionsB) {
  const auto bySize = [](const std::vector<OptionRow>& options) {
    return std::any_of(options.begin(), options.end(),
                       [](const OptionRow& o) { return o.name == "deterministic" && o.value == "threads"; });
  };
  if (a.threads == b.threads || a.threads <= 0 || b.threads <= 0 || (bySize(optionsA) && bySize(optionsB))) return {};
  return fmt::format(
      "{} and {} threads: sums are added up in another order, so that numbers differ in their last bits and drift apart; "
      "with --set deterministic=threads they do not",
      a.threads, b.threads);
}

// Rows of `a` in order, then those only `b` has, matched by name and phase.
class Pairs {
 public:
  TimeDifference& at(const std::string& name, const std::string& phase) {
    const auto [place, isNew] = places_.try_emplace({name, phase}, rows_.size());
    if (isNew) rows_.push_back({name, phase, {}, {}, 0, 0, {}, {}, true});
    return rows_[place->second];
  }
  std::vector<TimeDifference> take() { return std::move(rows_); }

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> places_;
  std::vector<TimeDifference> rows_;
};

// A build is one measurement.
TimeStats once(double ns) {
  const auto n = static_cast<std::int64_t>(ns);
  return {1, n, ns, n, n, n, n};
}

std::vector<TimeDifference> compareBuild(const std::vector<PhaseRow>& a, const std::vector<PhaseRow>& b) {
  Pairs pairs;
  for (const PhaseRow& p : a) {
    if (p.depth != 0) continue;
    TimeDifference& row = pairs.at(p.name, {});
    row.a = row.a.value_or(0) + static_cast<double>(p.ns);
    row.countA = saturatingAdd(row.countA, boundedSize(p.count));
    row.timeA = once(*row.a);
  }
  for (const PhaseRow& p : b) {
    if (p.depth != 0) continue;
    TimeDifference& row = pairs.at(p.name, {});
    row.b = row.b.value_or(0) + static_cast<double>(p.ns);
    row.countB = saturatingAdd(row.countB, boundedSize(p.count));
    row.timeB = once(*row.b);
  }
  return pairs.take();
}

// The medians of the instructions of one operator in a phase, together, each as often as a step ran it: one long execution
// among thousands does not count. Where none was measured in the newest plan, the mean of what was.
double perStep(const OpTime& op, const Timing& timing) {
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, timing.sampledSteps));
  double sum = 0;
  for (const InstructionTime& i : timing.instructions)
    if (i.time.n > 0 && i.op == op.op && i.phase == op.phase)
      sum += static_cast<double>(i.time.median) * static_cast<double>(i.time.n) / steps;
  return sum > 0 ? sum : static_cast<double>(op.time.total) / steps;
}

void compareTimes(const Timing& a, const Timing& b, RunComparison& out) {
  Pairs phases, ops;
  for (const PhaseTime& p : a.phases) {
    TimeDifference& row = phases.at(p.phase, {});
    row.a = static_cast<double>(p.time.median);
    row.countA = p.time.n;
    row.timeA = p.time;
  }
  for (const PhaseTime& p : b.phases) {
    TimeDifference& row = phases.at(p.phase, {});
    row.b = static_cast<double>(p.time.median);
    row.countB = p.time.n;
    row.timeB = p.time;
  }
  for (const OpTime& o : a.ops) {
    TimeDifference& row = ops.at(o.op, o.phase);
    row.a = perStep(o, a);
    row.countA = o.instructions;
    row.timeA = o.time;
  }
  for (const OpTime& o : b.ops) {
    TimeDifference& row = ops.at(o.op, o.phase);
    row.b = perStep(o, b);
    row.countB = o.instructions;
    row.timeB = o.time;
  }
  out.stepA = a.step;
  out.stepB = b.step;
  out.kindA = a.kind;
  out.kindB = b.kind;
  out.stepPhases = phases.take();
  out.ops = ops.take();
  std::stable_sort(out.ops.begin(), out.ops.end(), [](const TimeDifference& x, const TimeDifference& y) {
    return std::abs(x.difference()) > std::abs(y.difference());
  });
}

// A first step of a plan takes longer than those that follow it.
void keepWarmUpApart(bool onlyA, bool onlyB, const Timing& a, const Timing& b, RunComparison& out) {
  if (onlyA == onlyB || a.sampledSteps == 0 || b.sampledSteps == 0) return;
  out.warmUp = fmt::format(
      "run {} recorded no step but warm-up, the first of its plan, which takes longer: its times are not set against those "
      "of the other run",
      onlyA ? "A" : "B");
  for (std::vector<TimeDifference>* rows : {&out.stepPhases, &out.ops})
    for (TimeDifference& row : *rows) row.alike = false;
}

struct Memory {
  std::optional<std::int64_t> planned, peak, arena, lowerBound, persistent;
};

Memory memoryOf(const std::vector<StepRow>& steps, const std::vector<PlanRow>& plans) {
  Memory m;
  for (const StepRow& s : steps) {
    if (s.plannedBytes > 0) m.planned = std::max(m.planned.value_or(0), s.plannedBytes);
    if (s.peakBytes > 0) m.peak = std::max(m.peak.value_or(0), s.peakBytes);
  }
  if (!plans.empty()) {
    m.arena = plans.back().arenaBytes;
    m.lowerBound = plans.back().lowerBoundBytes;
    m.persistent = plans.back().persistentBytes;
  }
  return m;
}

}  // namespace

Result<RunComparison> compareRuns(const Project& project, std::int64_t runA, std::int64_t runB, const Tolerance& tolerance) {
  return compareRuns(project, runA, project, runB, tolerance);
}

Result<RunComparison> compareRuns(const Project& projectA, std::int64_t runA, const Project& projectB, std::int64_t runB,
                                  const Tolerance& tolerance, const Standing& live) {
  RunComparison out;
  const bool own = &projectA == &projectB;
  const ReadTransaction momentA(projectA.connection()), momentB(projectB.connection());
  SS_STORE_ASSIGN(out.a, find(projectA, runA, live));
  SS_STORE_ASSIGN(out.b, find(projectB, runB, own ? live : Standing()));
  SS_STORE_ASSIGN(const std::vector<OptionRow> optionsA, readOptions(projectA, runA));
  SS_STORE_ASSIGN(const std::vector<OptionRow> optionsB, readOptions(projectB, runB));
  out.options = compareOptions(out.a, out.b, optionsA, optionsB);
  out.threads = threadsText(out.a, out.b, optionsA, optionsB);
  const auto before = [&live](bool mine, std::int64_t run) {
    return mine && run == live.run ? live.before : Standing().before;
  };
  SS_STORE_ASSIGN(const std::vector<StepRow> stepsA, readSteps(projectA, runA, before(true, runA)));
  SS_STORE_ASSIGN(const std::vector<StepRow> stepsB, readSteps(projectB, runB, before(own, runB)));
  SS_STORE_ASSIGN(out.steps, compareSteps(projectA, runA, stepsA, projectB, runB, stepsB, tolerance));
  SS_STORE_ASSIGN(const std::vector<PhaseRow> phasesA, readPhases(projectA, runA));
  SS_STORE_ASSIGN(const std::vector<PhaseRow> phasesB, readPhases(projectB, runB));
  out.buildPhases = compareBuild(phasesA, phasesB);
  const auto warmsUp = [](const StepRow& step) { return step.warmUp; };
  const bool onlyA = std::ranges::all_of(stepsA, warmsUp), onlyB = std::ranges::all_of(stepsB, warmsUp);
  SS_STORE_ASSIGN(const Timing timingA, readTiming(projectA, runA, stepsA));
  SS_STORE_ASSIGN(const Timing timingB, readTiming(projectB, runB, stepsB));
  compareTimes(timingA, timingB, out);
  keepWarmUpApart(onlyA, onlyB, timingA, timingB, out);
  SS_STORE_ASSIGN(const std::vector<PlanRow> plansA, listPlans(projectA, runA));
  SS_STORE_ASSIGN(const std::vector<PlanRow> plansB, listPlans(projectB, runB));
  const Memory a = memoryOf(stepsA, plansA), b = memoryOf(stepsB, plansB);
  out.memory = {{"planned", a.planned, b.planned},
                {"measured peak", a.peak, b.peak},
                {"arena", a.arena, b.arena},
                {"lower bound", a.lowerBound, b.lowerBound},
                {"persistent", a.persistent, b.persistent}};
  return out;
}

}  // namespace stepscope::storage
