#include "storage/queries.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "storage/blob.h"
#include "storage/bounded.h"
#include "storage/judged_steps.h"
#include "storage/sqlite.h"
#include "storage/standing_rows.h"
#include "storage/writer_lock.h"

namespace stepscope::storage {
namespace {

std::string runColumns(int version, const Standing& standing) {
  const std::string stands = fmt::format("FROM steps WHERE run = runs.id AND {} AND (runs.id != {} OR step < {})",
                                         notTakenBack(version, "steps", "runs.id"), standing.run, standing.before);
  return fmt::format(
      "SELECT id, name, model_path, command_line, device, precision, optimizer, loss_name, weights, status, message, "
      "threads, seed, started_at, ended_at, (SELECT count(DISTINCT step) {0}), "
      "(SELECT total(ns) FROM steps WHERE id IN (SELECT max(id) {0} GROUP BY step)), (SELECT count(*) FROM steps WHERE run "
      "= runs.id), "
      "(SELECT loss {0} AND loss IS NOT NULL ORDER BY step, id DESC LIMIT 1), "
      "(SELECT loss {0} AND loss IS NOT NULL ORDER BY step DESC, id DESC LIMIT 1), "
      "(SELECT total(amount) FROM lost WHERE run = runs.id AND what = 'steps') FROM runs ",
      stands);
}

RunRow runRow(const Statement& row) {
  RunRow r;
  r.id = row.integer(0);
  std::string* texts[] = {&r.name,      &r.modelPath, &r.commandLine, &r.device, &r.precision,
                          &r.optimizer, &r.lossName,  &r.weights,     &r.status, &r.message};
  int column = 1;
  for (std::string* text : texts) *text = row.text(column++);
  r.threads = static_cast<int>(row.integer(11));
  r.seed = row.integer(12);
  r.startedAt = row.integer(13);
  if (!row.isNull(14)) r.endedAt = row.integer(14);
  r.steps = row.integer(15);
  r.totalStepNs = static_cast<std::int64_t>(std::clamp(row.real(16), 0.0, static_cast<double>(kLargest)));
  r.takenBack = row.integer(17) - r.steps;
  r.firstLoss = row.optionalReal(18);
  r.lastLoss = row.optionalReal(19);
  r.lostSteps = static_cast<std::int64_t>(std::clamp(row.real(20), 0.0, static_cast<double>(kLargest)));
  return r;
}

std::int32_t id32(const Statement& row, int column) { return static_cast<std::int32_t>(row.integer(column)); }

// Runs `read` on every row of the statement.
template <typename T, typename Read, typename... Values>
Result<std::vector<T>> readAll(const Project& project, std::string_view sql, Read read, const Values&... values) {
  SS_STORE_ASSIGN(Statement rows, project.connection().prepare(sql));
  rows.bind(values...);
  std::vector<T> result;
  while (rows.next()) result.push_back(read(rows));
  SS_STORE_TRY(rows.status());
  return result;
}

template <typename... Values>
Result<std::vector<RunRow>> readRuns(const Project& project, const Standing& standing, std::string_view which,
                                     const Values&... values) {
  SS_STORE_ASSIGN(std::vector<RunRow> runs,
                  readAll<RunRow>(project, fmt::format("{} {}", runColumns(project.schemaVersion(), standing), which),
                                  runRow, values...));
  // A writer that was killed could not say so, and a reader may not: the next writer does.
  if (!project.writable() && !WriterLock::isHeld(project.path()))
    for (RunRow& run : runs)
      if (run.status == "running") run.status = "interrupted";
  return runs;
}

Result<int> newestBuild(const Project& project, std::int64_t run, int build) {
  if (build >= 0) return build;
  SS_STORE_ASSIGN(Statement row, project.connection().prepare("SELECT max(build) FROM phases WHERE run = ?"));
  row.bind(run);
  const int newest = row.next() ? static_cast<int>(row.integer(0)) : 0;
  SS_STORE_TRY(row.status());
  return newest;
}

std::vector<std::string> splitOn(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// Reads one compressed message.
template <typename Message>
Result<Message> readMessage(Statement& row, const std::string& what) {
  Message message;
  if (!row.next()) {
    SS_STORE_TRY(row.status());
    return fail(ErrorCode::kNotFound, fmt::format("{}: not in the project", what));
  }
  SS_STORE_TRY(unpackMessage(row.blob(0), message));
  return message;
}

}  // namespace

Result<std::vector<RunRow>> listRuns(const Project& project, const Standing& standing) {
  return readRuns(project, standing, "ORDER BY id");
}

Result<RunRow> readRun(const Project& project, std::int64_t run) {
  SS_STORE_ASSIGN(std::vector<RunRow> rows, readRuns(project, {}, "WHERE id = ?", run));
  if (rows.empty())
    return fail(
        ErrorCode::kNotFound,
        fmt::format("run '{}': not in the project; expected one that `stepscope inspect` of the project lists", run));
  return rows.front();
}

Result<std::vector<std::int64_t>> listRunIds(const Project& project) {
  return readAll<std::int64_t>(project, "SELECT id FROM runs ORDER BY id",
                               [](const Statement& row) { return row.integer(0); });
}

Result<std::int64_t> newestRun(const Project& project) {
  SS_STORE_ASSIGN(const std::int64_t run, project.connection().integer("SELECT max(id) FROM runs"));
  if (run == 0)
    return fail(ErrorCode::kNotFound, fmt::format("project '{}': holds no run; expected at least one", project.path()));
  return run;
}

Result<std::vector<OptionRow>> readOptions(const Project& project, std::int64_t run) {
  return readAll<OptionRow>(
      project,
      "SELECT name, value, default_value, set_by, doc, effect, choices FROM options WHERE run = ?1 AND revision = "
      "(SELECT max(revision) FROM options WHERE run = ?1) ORDER BY position",
      [](const Statement& row) {
        return OptionRow{
            row.text(0), row.text(1), row.text(2), row.text(3), row.text(4), row.text(5), splitOn(row.text(6), '|')};
      },
      run);
}

Result<snapshot::MachineInfo> readMachine(const Project& project, std::int64_t run) {
  SS_STORE_ASSIGN(Statement row, project.connection().prepare(
                                     "SELECT cpu, cores, cpu_features, memory_bytes, gpu, gpu_note, version, libraries FROM "
                                     "machine WHERE run = ?"));
  row.bind(run);
  snapshot::MachineInfo machine;
  if (row.next()) {
    machine.set_cpu(row.text(0));
    machine.set_cores(id32(row, 1));
    for (std::string& feature : splitOn(row.text(2), ' ')) machine.add_cpu_features(std::move(feature));
    machine.set_memory_bytes(row.integer(3));
    machine.set_gpu(row.text(4));
    machine.set_gpu_note(row.text(5));
    machine.set_version(row.text(6));
    for (std::string& library : splitOn(row.text(7), '\n')) machine.add_libraries(std::move(library));
  }
  SS_STORE_TRY(row.status());
  return machine;
}

Result<snapshot::ModelInfo> readModel(const Project& project, std::int64_t run) {
  SS_STORE_ASSIGN(Statement row, project.connection().prepare("SELECT model FROM runs WHERE id = ?"));
  row.bind(run);
  return readMessage<snapshot::ModelInfo>(row, fmt::format("model of run {}", run));
}

Result<std::vector<PhaseRow>> readPhases(const Project& project, std::int64_t run, int build) {
  SS_STORE_ASSIGN(const int chosen, newestBuild(project, run, build));
  return readAll<PhaseRow>(
      project,
      "SELECT id, build, parent, depth, name, begin_ns, ns, peak_bytes, count, error FROM phases WHERE run = ? AND build = "
      "? "
      "ORDER BY id",
      [](const Statement& row) {
        PhaseRow p{row.integer(0),
                   static_cast<int>(row.integer(1)),
                   std::nullopt,
                   static_cast<int>(row.integer(3)),
                   row.text(4),
                   bounded(row.integer(5)),
                   boundedSize(row.integer(6)),
                   boundedSize(row.integer(7)),
                   boundedSize(row.integer(8)),
                   row.text(9)};
        if (!row.isNull(2)) p.parent = row.integer(2);
        return p;
      },
      run, chosen);
}

Result<std::vector<PassRow>> readPasses(const Project& project, std::int64_t run, int build) {
  SS_STORE_ASSIGN(const int chosen, newestBuild(project, run, build));
  SS_STORE_ASSIGN(std::vector<PassRow> passes,
                  readAll<PassRow>(
                      project,
                      "SELECT passes.phase, passes.name, notes, phases.ns, matches, nodes_before, nodes_after FROM passes "
                      "JOIN phases ON "
                      "phases.id = passes.phase WHERE passes.run = ? AND phases.build = ? ORDER BY passes.phase",
                      [](const Statement& row) {
                        return PassRow{row.integer(0),
                                       row.text(1),
                                       row.text(2),
                                       boundedSize(row.integer(3)),
                                       boundedSize(row.integer(4)),
                                       boundedSize(row.integer(5)),
                                       boundedSize(row.integer(6)),
                                       {},
                                       0};
                      },
                      run, chosen));
  for (PassRow& pass : passes) {
    SS_STORE_ASSIGN(
        pass.nearMisses,
        readAll<NearMissRow>(
            project,
            "SELECT node, coalesce((SELECT name FROM nodes WHERE nodes.run = near_misses.run AND nodes.id = node), ''), "
            "condition FROM near_misses WHERE phase = ? ORDER BY id LIMIT 1000",
            [](const Statement& row) {
              return NearMissRow{id32(row, 0), row.text(1), row.text(2)};
            },
            pass.phase));
    SS_STORE_ASSIGN(const auto counts, readAll<std::int64_t>(
                                           project, "SELECT count(*) FROM near_misses WHERE phase = ?",
                                           [](const Statement& row) { return row.integer(0); }, pass.phase));
    pass.nearMissesInAll = counts.front();
  }
  return passes;
}

Result<std::vector<PhaseHistoryRow>> readPhaseHistory(const Project& project, int depth) {
  SS_STORE_ASSIGN(Statement rows,
                  project.connection().prepare("SELECT id, parent, run, build, name, ns, depth, error != '' FROM "
                                               "phases WHERE depth <= ? ORDER BY run, build, id"));
  rows.bind(depth);
  std::vector<PhaseHistoryRow> out;
  std::map<std::int64_t, std::size_t> places;
  while (rows.next()) {
    std::string name = rows.text(4);
    // Parents stand before their children; a file may say otherwise.
    const auto parent = rows.isNull(1) ? places.end() : places.find(rows.integer(1));
    if (parent != places.end() && out[parent->second].name.size() < 1'000) name = out[parent->second].name + '/' + name;
    places[rows.integer(0)] = out.size();
    out.push_back({rows.integer(2), static_cast<int>(rows.integer(3)), std::move(name), boundedSize(rows.integer(5)),
                   static_cast<int>(rows.integer(6)), rows.integer(7) != 0});
  }
  SS_STORE_TRY(rows.status());
  return out;
}

namespace {

// Those of run ?1 that `which` leaves.
std::string selectSteps(const Project& project, std::string_view which,
                        std::string_view judged = "id IN (SELECT id FROM judged_steps WHERE run = ?1)") {
  return fmt::format(
      "SELECT id, step, plan, loss, gradient_norm, learning_rate, updated, warm_up, samples, tokens, begin_ns, ns, "
      "planned_bytes, peak_bytes, batch, {}, {}, {}, {} "
      "FROM steps WHERE run = ?1 {}",
      project.schemaVersion() < 3 ? "0" : "recording_ns", stoppedIn(project.schemaVersion()), judged,
      processorAndSpeed(project.schemaVersion()), which);
}

StepRow stepOf(const Statement& row) {
  StepRow s;
  s.id = row.integer(0);
  s.step = row.integer(1);
  if (!row.isNull(2)) s.plan = row.integer(2);
  s.loss = row.optionalReal(3);
  s.gradientNorm = row.optionalReal(4);
  s.learningRate = row.real(5);
  s.updated = row.integer(6) != 0;
  s.warmUp = row.integer(7) != 0;
  s.samples = boundedSize(row.integer(8));
  s.tokens = boundedSize(row.integer(9));
  s.beginNs = bounded(row.integer(10));
  s.ns = boundedSize(row.integer(11));
  s.plannedBytes = boundedSize(row.integer(12));
  s.peakBytes = boundedSize(row.integer(13));
  s.batch = row.text(14);
  s.recordingNs = boundedSize(row.integer(15));
  s.stoppedIn = row.integer(16) != 0;
  s.judged = row.integer(17) != 0;
  s.cpuNs = boundedSize(row.integer(18));
  s.waitNs = boundedSize(row.integer(19));
  s.speed = row.text(20);
  return s;
}

}  // namespace

Status visitSteps(const Project& project, std::int64_t run, const std::function<void(StepRow)>& visit) {
  const std::string which = fmt::format("AND id IN {} ORDER BY step", standingSteps(project.schemaVersion()));
  SS_STORE_ASSIGN(Statement rows, project.connection().prepare(selectSteps(project, which)));
  rows.bind(run);
  while (rows.next()) visit(stepOf(rows));
  return rows.status();
}

Result<std::optional<StepRow>> readStep(const Project& project, std::int64_t run, std::int64_t step) {
  SS_STORE_ASSIGN(std::vector<StepRow> rows, readStepsBetween(project, run, step, step));
  return rows.empty() ? std::nullopt : std::optional(std::move(rows.front()));
}

// Whether a step is judged depends on all others of its run.
Result<std::vector<StepRow>> readStepsBetween(const Project& project, std::int64_t run, std::int64_t first,
                                              std::int64_t last) {
  return readAll<StepRow>(
      project,
      selectSteps(
          project,
          "AND step BETWEEN ?2 AND ?3 AND id IN (SELECT max(id) FROM steps WHERE run = ?1 AND step BETWEEN ?2 AND ?3 "
          "GROUP BY step) ORDER BY step",
          "0"),
      stepOf, run, first, last);
}

Result<std::vector<StepRow>> readSteps(const Project& project, std::int64_t run, std::int64_t before) {
  std::vector<StepRow> steps;
  SS_STORE_TRY(visitSteps(project, run, [&steps, before](StepRow step) {
    if (step.step < before) steps.push_back(std::move(step));
  }));
  return steps;
}

Result<std::vector<AlertRow>> readAlerts(const Project& project, std::int64_t run) {
  return readAll<AlertRow>(
      project,
      fmt::format(
          "SELECT severity, code, message, node, value, instruction, step FROM alerts WHERE run = ?1 AND {} ORDER BY id",
          notTakenBack(project.schemaVersion(), "alerts", "?1")),
      [](const Statement& row) {
        return AlertRow{row.text(0), row.text(1), row.text(2), id32(row, 3), id32(row, 4), id32(row, 5), row.integer(6)};
      },
      run);
}

Result<std::vector<LostRow>> readLost(const Project& project, std::int64_t run) {
  return readAll<LostRow>(
      project, "SELECT what, reason, advice, amount, first_step, last_step FROM lost WHERE run = ? ORDER BY id",
      [](const Statement& row) {
        return LostRow{row.text(0), row.text(1), row.text(2), boundedSize(row.integer(3)), row.integer(4), row.integer(5)};
      },
      run);
}

Result<std::vector<GraphRow>> listGraphs(const Project& project, std::int64_t run) {
  return readAll<GraphRow>(
      project, "SELECT id, build, phase, nodes, value_count, bytes FROM graphs WHERE run = ? ORDER BY id",
      [](const Statement& row) {
        return GraphRow{row.integer(0),
                        static_cast<int>(row.integer(1)),
                        row.text(2),
                        boundedSize(row.integer(3)),
                        boundedSize(row.integer(4)),
                        boundedSize(row.integer(5))};
      },
      run);
}

Result<std::vector<PlanRow>> listPlans(const Project& project, std::int64_t run) {
  return readAll<PlanRow>(
      project,
      "SELECT id, build, signature, reason, arena_bytes, lower_bound_bytes, persistent_bytes FROM plans WHERE run = ? ORDER "
      "BY id",
      [](const Statement& row) {
        return PlanRow{row.integer(0),
                       static_cast<int>(row.integer(1)),
                       row.text(2),
                       row.text(3),
                       boundedSize(row.integer(4)),
                       boundedSize(row.integer(5)),
                       boundedSize(row.integer(6))};
      },
      run);
}

Result<snapshot::Plan> readPlan(const Project& project, std::int64_t run, std::int64_t plan) {
  SS_STORE_ASSIGN(Statement row,
                  project.connection().prepare(
                      "SELECT data FROM plans WHERE run = ?1 AND (?2 = 0 OR id = ?2) ORDER BY id DESC LIMIT 1"));
  row.bind(run, plan);
  return readMessage<snapshot::Plan>(row, fmt::format("plan of run {}", run));
}

Result<std::string> readViewState(const Project& project, const std::string& key) {
  SS_STORE_ASSIGN(Statement row, project.connection().prepare("SELECT value FROM view_state WHERE key = ?"));
  row.bind(key);
  std::string value = row.next() ? std::string(row.blob(0)) : std::string();
  SS_STORE_TRY(row.status());
  return value;
}

}  // namespace stepscope::storage
