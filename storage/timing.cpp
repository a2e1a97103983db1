#include "storage/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include "storage/blob.h"
#include "storage/bounded.h"
#include "storage/queries.h"
#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

constexpr std::int64_t kMaxSampledSpans = 500'000;

struct PlanTable {
  std::int64_t plan = 0;
  std::vector<InstructionTime> rows;
};

Result<PlanTable> readInstructions(const Project& project, std::int64_t run, std::int64_t plan) {
  SS_STORE_ASSIGN(Statement rows,
                  project.connection().prepare("SELECT i.position, node, i.op, label, i.phase, coalesce(module_path, ''), "
                                               "implementation, bytes_read, bytes_written, flops, is_view, "
                                               "CASE WHEN i.op IN ('Copy', 'Commit') THEN 'other' ELSE coalesce(category, "
                                               "'other') END FROM instructions i LEFT JOIN nodes n ON n.run "
                                               "= ?1 AND n.id = i.node WHERE plan = ?2 ORDER BY i.position"));
  rows.bind(run, plan);
  PlanTable table;
  table.plan = plan;
  while (rows.next()) {
    InstructionTime i;
    i.plan = plan;
    i.position = static_cast<int>(rows.integer(0));
    i.node = static_cast<std::int32_t>(rows.integer(1));
    i.op = rows.text(2);
    i.label = rows.text(3);
    i.phase = rows.text(4);
    i.modulePath = rows.text(5);
    i.implementation = rows.text(6);
    i.bytesRead = boundedSize(rows.integer(7));
    i.bytesWritten = boundedSize(rows.integer(8));
    i.flops = rows.real(9);
    i.view = rows.integer(10) != 0;
    i.category = rows.text(11);
    table.rows.push_back(std::move(i));
  }
  SS_STORE_TRY(rows.status());
  return table;
}

struct OpKey {
  std::string op, phase;
  auto operator<=>(const OpKey&) const = default;
};

struct OpSamples {
  std::string category;
  std::int64_t instructions = 0;
  std::vector<std::int64_t> times;
};

// Everything measured, before it becomes statistics.
struct Samples {
  std::map<OpKey, OpSamples> ops;
  std::map<std::string, std::vector<std::int64_t>> phases;
  std::vector<std::vector<std::int64_t>> instructions;  // of the shown plan
};

void addStep(const std::vector<Span>& spans, const PlanTable& table, bool shown, Samples& samples) {
  std::map<std::string, std::int64_t> phases;
  for (const Span& span : spans) {
    if (span.instruction < 0 || span.instruction >= static_cast<int>(table.rows.size())) continue;
    const auto index = static_cast<std::size_t>(span.instruction);
    const InstructionTime& row = table.rows[index];
    phases[row.phase] = saturatingAdd(phases[row.phase], span.ns);
    if (shown) samples.instructions[index].push_back(span.ns);
    if (!row.view) samples.ops[{row.op, row.phase}].times.push_back(span.ns);
  }
  for (const auto& [phase, ns] : phases) samples.phases[phase].push_back(ns);
}

double ratio(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void summarise(Samples& samples, PlanTable& shown, Timing& timing) {
  std::int64_t total = 0;
  for (auto& [phase, times] : samples.phases) total = std::accumulate(times.begin(), times.end(), total, saturatingAdd);
  for (auto& [key, op] : samples.ops) {
    if (op.times.empty()) continue;
    OpTime row{key.op, key.phase, op.category, op.instructions, statisticsOf(op.times), 0};
    row.share = ratio(row.time.total, total);
    timing.ops.push_back(std::move(row));
  }
  std::stable_sort(timing.ops.begin(), timing.ops.end(),
                   [](const OpTime& a, const OpTime& b) { return a.time.total > b.time.total; });
  for (const char* phase : {"forward", "backward", "recompute", "optimizer"}) {
    const auto found = samples.phases.find(phase);
    if (found == samples.phases.end()) continue;
    PhaseTime row{phase, statisticsOf(found->second), 0};
    row.share = ratio(row.time.total, total);
    timing.phases.push_back(std::move(row));
  }
  std::int64_t planTotal = 0;
  for (std::size_t i = 0; i < shown.rows.size(); ++i) {
    shown.rows[i].time = statisticsOf(samples.instructions[i]);
    planTotal = saturatingAdd(planTotal, shown.rows[i].time.total);
  }
  for (InstructionTime& row : shown.rows) row.share = ratio(row.time.total, planTotal);
  timing.instructions = std::move(shown.rows);
}

}  // namespace

void StepKind::add(std::int64_t ns, std::int64_t cpuNs, std::int64_t waitNs, std::string_view speed) {
  ++(speed == kWalked ? walked : speed == kWatched ? watched : speed == kRecorded ? recorded : full);
  if (cpuNs <= 0) return;
  ++measured;
  cpu = saturatingAdd(cpu, cpuNs);
  wait = saturatingAdd(wait, waitNs);
  wall = saturatingAdd(wall, ns);
}

std::string StepKind::speed() const {
  std::string text;
  const int kinds = (full > 0) + (recorded > 0) + (watched > 0) + (walked > 0);
  for (const auto& [n, name] : {std::pair(full, kFullSpeed), std::pair(recorded, kRecorded), std::pair(watched, kWatched),
                                std::pair(walked, kWalked)}) {
    if (n == 0) continue;
    if (!text.empty()) text += ", ";
    text += kinds > 1 ? fmt::format("{} {}", n, name) : std::string(name);
  }
  return text;
}

std::string unlikeSpeeds(const StepKind& a, const StepKind& b) {
  const std::string of = a.speed(), other = b.speed();
  const bool mixed = of.find(',') != std::string::npos;
  if (of.empty() || other.empty() || (of == other && !mixed)) return {};
  return fmt::format("A {}, B {}", of, other);
}

TimeStats statisticsOf(std::vector<std::int64_t>& times) {
  TimeStats stats;
  stats.n = static_cast<std::int64_t>(times.size());
  if (times.empty()) return stats;
  std::sort(times.begin(), times.end());
  const auto rank = [&](double p) {
    return times[static_cast<std::size_t>(std::max(0.0, std::ceil(p * static_cast<double>(times.size())) - 1))];
  };
  for (std::int64_t t : times) stats.total = saturatingAdd(stats.total, t);
  stats.mean = static_cast<double>(stats.total) / static_cast<double>(stats.n);
  stats.median = rank(0.5);
  stats.p95 = rank(0.95);
  stats.min = times.front();
  stats.max = times.back();
  return stats;
}

Result<std::map<std::int64_t, RunTime>> readStepTimes(const Project& project) {
  SS_STORE_ASSIGN(Statement rows,
                  project.connection().prepare(fmt::format("SELECT run, ns, {} FROM judged_steps ORDER BY id DESC LIMIT ?",
                                                           processorAndSpeed(project.schemaVersion()))));
  rows.bind(kMostStepTimes);
  std::map<std::int64_t, std::vector<std::int64_t>> runs;
  std::map<std::int64_t, RunTime> out;
  while (rows.next()) {
    const std::int64_t run = rows.integer(0), ns = boundedSize(rows.integer(1));
    runs[run].push_back(ns);
    out[run].kind.add(ns, boundedSize(rows.integer(2)), boundedSize(rows.integer(3)), rows.text(4));
  }
  SS_STORE_TRY(rows.status());
  for (auto& [run, times] : runs) static_cast<TimeStats&>(out[run]) = statisticsOf(times);
  return out;
}

Result<Timing> readTiming(const Project& project, std::int64_t run) {
  SS_STORE_ASSIGN(std::vector<StepRow> all, readSteps(project, run));
  return readTiming(project, run, std::move(all));
}

Result<Timing> readTiming(const Project& project, std::int64_t run, std::vector<StepRow> steps) {
  Timing timing;
  std::vector<std::int64_t> wall;
  for (const StepRow& step : steps)
    if (step.judged) {
      wall.push_back(step.ns);
      timing.kind.add(step.ns, step.cpuNs, step.waitNs, step.speed);
    }
  if (std::any_of(steps.begin(), steps.end(), [](const StepRow& s) { return !s.warmUp; }))
    std::erase_if(steps, [](const StepRow& s) { return s.warmUp; });
  timing.steps = static_cast<std::int64_t>(steps.size());
  timing.step = statisticsOf(wall);

  // The plan shown is the one executed last; without steps, the newest one.
  SS_STORE_ASSIGN(const std::vector<PlanRow> plans, listPlans(project, run));
  std::int64_t shownPlan = plans.empty() ? 0 : plans.back().id;
  if (!steps.empty() && steps.back().plan) shownPlan = *steps.back().plan;
  SS_STORE_ASSIGN(PlanTable shown, readInstructions(project, run, shownPlan));

  // Of a long run only some steps keep their spans (retention.h), and of those some are read.
  const std::int64_t spansPerStep = std::max<std::int64_t>(1, static_cast<std::int64_t>(shown.rows.size()));
  SS_STORE_ASSIGN(Statement kept, project.connection().prepare("SELECT count(*) FROM step_spans WHERE run = ?"));
  kept.bind(run);
  const std::int64_t withSpans = kept.next() ? boundedSize(kept.integer(0)) : 0;
  SS_STORE_TRY(kept.status());
  const std::int64_t stride =
      std::max<std::int64_t>(1, withSpans / std::max<std::int64_t>(1, kMaxSampledSpans / spansPerStep));
  std::unordered_map<std::int64_t, const StepRow*> wanted;
  for (const StepRow& step : steps) wanted.emplace(step.id, &step);
  std::map<std::int64_t, PlanTable> others;
  Samples samples;
  samples.instructions.resize(shown.rows.size());
  for (std::size_t i = 0; i < shown.rows.size(); ++i) {
    if (shown.rows[i].view) continue;
    OpSamples& op = samples.ops[{shown.rows[i].op, shown.rows[i].phase}];
    if (op.instructions++ == 0) op.category = shown.rows[i].category;
  }
  SS_STORE_ASSIGN(Statement rows,
                  project.connection().prepare("SELECT step_id, data FROM step_spans WHERE run = ? ORDER BY step_id"));
  rows.bind(run);
  std::int64_t seen = 0;
  while (rows.next()) {
    const auto found = wanted.find(rows.integer(0));
    if (found == wanted.end() || seen++ % stride != 0) continue;
    const StepRow& step = *found->second;
    SS_STORE_ASSIGN(const std::string bytes, decompress(rows.blob(1)));
    SS_STORE_ASSIGN(const std::vector<Span> spans, decodeSpans(bytes, step.beginNs));
    ++timing.sampledSteps;
    const std::int64_t plan = step.plan.value_or(0);
    if (plan == shownPlan) {
      addStep(spans, shown, true, samples);
      continue;
    }
    if (!others.contains(plan)) {
      SS_STORE_ASSIGN(others[plan], readInstructions(project, run, plan));
    }
    addStep(spans, others[plan], false, samples);
  }
  SS_STORE_TRY(rows.status());
  summarise(samples, shown, timing);
  return timing;
}

Result<std::vector<Span>> readSpans(const Project& project, std::int64_t stepId) {
  SS_STORE_ASSIGN(Statement row,
                  project.connection().prepare(
                      "SELECT begin_ns, data FROM step_spans JOIN steps ON steps.id = step_id WHERE step_id = ?"));
  row.bind(stepId);
  if (!row.next()) {
    SS_STORE_TRY(row.status());
    return std::vector<Span>{};
  }
  const std::int64_t begin = row.integer(0);
  SS_STORE_ASSIGN(const std::string bytes, decompress(row.blob(1)));
  return decodeSpans(bytes, begin);
}

Result<snapshot::DeviceWork> readDeviceWork(const Project& project, std::int64_t stepId) {
  snapshot::DeviceWork work;
  // A file that is only read may be of before schema version 9.
  SS_STORE_ASSIGN(const std::int64_t there,
                  project.connection().integer("SELECT count(*) FROM sqlite_schema WHERE name = 'device_work'"));
  if (there == 0) return work;
  SS_STORE_ASSIGN(Statement row, project.connection().prepare("SELECT data FROM device_work WHERE step_id = ?"));
  row.bind(stepId);
  if (row.next()) SS_STORE_TRY(unpackMessage(row.blob(0), work));
  SS_STORE_TRY(row.status());
  return work;
}

}  // namespace stepscope::storage
