// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/comparison_reader.h"

#include <algorithm>
#include <map>

#include "storage/comparison.h"

namespace stepscope {
namespace {

constexpr std::size_t kMostStartups = 200;  // the newest

QString text(const std::string& s) { return QString::fromStdString(s); }
std::optional<QString> text(const std::optional<std::string>& s) {
  return s ? std::optional(QString::fromStdString(*s)) : std::nullopt;
}

ComparedRun side(const storage::Project& project, const storage::RunRow& row, const storage::TimeStats& step) {
  ComparedRun out;
  out.run = runEntry(row);
  out.model = text(row.modelPath);
  out.precision = text(row.precision);
  out.weights = text(row.weights);
  out.message = text(row.message);
  out.threads = row.threads;
  out.seed = row.seed;
  out.step = timeFigures(step);
  if (const auto machine = storage::readMachine(project, row.id)) {
    out.cpu = text(machine->cpu());
    out.version = text(machine->version());
  }
  return out;
}

std::vector<ComparedTime> times(const std::vector<storage::TimeDifference>& rows) {
  std::vector<ComparedTime> out;
  for (const auto& r : rows)
    out.push_back({text(r.name), text(r.phase), r.a, r.b, timeFigures(r.timeA), timeFigures(r.timeB), r.countA, r.countB});
  return out;
}

Divergence divergence(const storage::Divergence& d) {
  return {d.step, text(d.quantity), d.a, d.b, text(d.phase), text(d.value)};
}
std::optional<Divergence> divergence(const std::optional<storage::Divergence>& d) {
  return d ? std::optional(divergence(*d)) : std::nullopt;
}

// Exported models are often all called model.onnx: their folder tells them apart.
QString nameOf(const storage::RunRow& row) {
  const QString name = text(row.name), folder = text(row.modelPath).section('/', -2, -2);
  return name == u"model.onnx" && !folder.isEmpty() ? folder : name;
}

}  // namespace

TimeFigures timeFigures(const storage::TimeStats& s) { return {s.n, s.median, s.p95, s.min, s.max}; }

RunStepTimes stepTimes(const storage::TimeStats& times, const storage::StepKind& kind) {
  RunStepTimes out;
  static_cast<TimeFigures&>(out) = timeFigures(times);
  out.speed = text(kind.speed());
  out.measured = kind.measured > 0;
  out.processors = kind.processors();
  out.waitShare = kind.waitShare();
  out.busy = kind.busy();
  return out;
}

RunEntry runEntry(const storage::RunRow& r) {
  RunEntry e;
  e.id = r.id;
  e.name = nameOf(r);
  e.status = text(r.status);
  e.device = text(r.device);
  e.optimizer = text(r.optimizer);
  e.startedAt = r.startedAt;
  e.steps = r.steps;
  e.takenBack = r.takenBack;
  e.lost = r.lostSteps;
  e.totalNs = r.totalStepNs;
  e.hasLoss = r.firstLoss && r.lastLoss;
  e.firstLoss = r.firstLoss.value_or(0);
  e.lastLoss = r.lastLoss.value_or(0);
  e.settings[QStringLiteral("weights")] = text(r.weights);
  return e;
}

storage::Result<storage::Standing> standingOf(const storage::Project& project, std::optional<std::int64_t> liveBefore) {
  storage::Standing live;
  if (!liveBefore) return live;
  SS_STORE_ASSIGN(live.run, storage::newestRun(project));
  live.before = *liveBefore;
  return live;
}

storage::Result<ReadComparison> readComparison(const QString& path, const CompareRequest& request,
                                               std::optional<std::int64_t> liveBefore, const std::atomic<bool>* stop) {
  SS_STORE_ASSIGN(const auto project, storage::Project::openReadOnly(path.toStdString(), stop));
  std::optional<storage::Project> other;
  if (!request.otherProject.isEmpty()) {
    SS_STORE_ASSIGN(other, storage::Project::openReadOnly(request.otherProject.toStdString(), stop));
  }
  const storage::Project& projectB = other ? *other : project;
  SS_STORE_ASSIGN(const storage::Standing live, standingOf(project, liveBefore));
  SS_STORE_ASSIGN(const auto c,
                  storage::compareRuns(project, request.a, projectB, request.b, {request.rtol, request.atol}, live));
  ReadComparison read;
  QStringList notes{text(c.threads), text(c.warmUp)};
  notes.removeAll(QString());
  read.notes = notes.join('\n');
  read.alike = c.warmUp.empty();
  RunComparison& out = read.comparison;
  out.request = request;
  out.a = side(project, c.a, c.stepA);
  out.b = side(projectB, c.b, c.stepB);
  for (const auto& o : c.options) out.options.push_back({text(o.name), text(o.a), text(o.b)});
  out.both = c.steps.both;
  out.onlyA = c.steps.onlyA;
  out.onlyB = c.steps.onlyB;
  out.statistics = c.steps.statistics;
  out.unmeasured = text(storage::unmeasuredText(c.steps));
  out.unequal = divergence(c.steps.unequal);
  out.first = divergence(c.steps.tolerance);
  out.outside = c.steps.outside;
  for (const auto& d : c.steps.divergences) out.divergences.push_back(divergence(d));
  for (const auto& n : c.steps.numbers) out.steps.push_back({n.step, n.lossA, n.lossB, n.normA, n.normB});
  out.buildPhases = times(c.buildPhases);
  out.stepPhases = times(c.stepPhases);
  out.ops = times(c.ops);
  for (const auto& m : c.memory) out.memory.push_back({text(m.name), m.a, m.b});
  return read;
}

storage::Result<StartupHistory> readStartupHistory(const QString& path, std::int64_t run) {
  SS_STORE_ASSIGN(const auto project, storage::Project::openReadOnly(path.toStdString()));
  if (run == 0) {
    SS_STORE_ASSIGN(run, storage::newestRun(project));
  }
  SS_STORE_ASSIGN(const auto runs, storage::listRuns(project));
  SS_STORE_ASSIGN(const auto rows, storage::readPhaseHistory(project, 8));
  std::map<std::int64_t, const storage::RunRow*> byId;
  for (const auto& r : runs) byId[r.id] = &r;
  StartupHistory out;
  const auto shown = byId.find(run);
  if (shown == byId.end()) return out;

  int shownBuild = -1;
  for (const auto& row : rows)
    if (row.run == run) shownBuild = std::max(shownBuild, row.build);
  if (shownBuild < 0) return out;
  // Rows come in order of run and build, so what stands before the shown one came before it.
  std::vector<std::pair<std::int64_t, int>> wanted;
  for (const auto& row : rows) {
    const std::pair key{row.run, row.build};
    const auto found = byId.find(row.run);
    if (found == byId.end() || found->second->modelPath != shown->second->modelPath) continue;
    if (key > std::pair{run, shownBuild}) continue;
    if (wanted.empty() || wanted.back() != key) wanted.push_back(key);
  }
  if (wanted.size() > kMostStartups) wanted.erase(wanted.begin(), wanted.end() - kMostStartups);

  std::map<std::pair<std::int64_t, int>, int> places;
  for (const auto& key : wanted) {
    places[key] = static_cast<int>(out.startups.size());
    StartupEntry& entry = out.startups.emplace_back();
    entry.run = key.first;
    entry.build = key.second;
    entry.startedAt = byId[key.first]->startedAt;
    entry.runName = text(byId[key.first]->name);
    if (const auto machine = storage::readMachine(project, key.first)) {
      entry.cpu = text(machine->cpu());
      entry.version = text(machine->version());
    }
  }
  std::map<std::string, std::size_t> phases;
  std::map<std::pair<int, std::string>, int> seen;
  for (const auto& row : rows) {
    const auto place = places.find({row.run, row.build});
    if (place == places.end()) continue;
    const int times = ++seen[{place->second, row.name}];
    const std::string path = times == 1 ? row.name : row.name + " #" + std::to_string(times);
    const auto [at, isNew] = phases.try_emplace(path, out.phases.size());
    if (isNew) out.phases.push_back({text(path), {}});
    out.phases[at->second].points.push_back({place->second, row.ns, row.failed});
  }
  return out;
}

}  // namespace stepscope
