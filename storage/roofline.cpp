#include "storage/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine/snapshot/run.pb.h"
#include "storage/blob.h"
#include "storage/bounded.h"
#include "storage/schema.h"
#include "storage/span_codec.h"
#include "storage/standing_rows.h"

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 2;   // of the schema, that has the tables
constexpr int kWithCounters = 15;  // that has columns for what hardware counted
constexpr int kWithWaiting = 17;   // that says how long the measurement of peaks waited
constexpr std::int64_t kMaxSampledSpans = 2'000'000;

// Durations by position in the plan.
Result<std::vector<std::vector<std::int64_t>>> executions(const Connection& connection, std::int64_t run,
                                                          std::int64_t plan) {
  const std::string standing = standingSteps(kSchemaVersion);
  const std::string from = fmt::format(
      " FROM steps s JOIN step_spans p ON p.step_id = s.id WHERE s.run = ?1 AND s.plan = ?2 AND s.id IN {0} AND (s.warm_up "
      "= "
      "0 OR NOT EXISTS (SELECT 1 FROM steps WHERE id IN {0} AND warm_up = 0))",
      standing);
  std::vector<std::vector<std::int64_t>> times;
  SS_STORE_ASSIGN(Statement total, connection.prepare("SELECT coalesce(sum(p.count), 0)" + from));
  total.bind(run, plan);
  const std::int64_t stride = total.next() ? total.integer(0) / kMaxSampledSpans + 1 : 1;
  SS_STORE_TRY(total.status());
  SS_STORE_ASSIGN(Statement rows, connection.prepare("SELECT s.begin_ns, p.data" + from + " ORDER BY s.id"));
  rows.bind(run, plan);
  for (std::int64_t row = 0; rows.next(); ++row) {
    if (row % stride != 0) continue;
    SS_STORE_ASSIGN(const std::string bytes, decompress(rows.blob(1)));
    SS_STORE_ASSIGN(const std::vector<Span> spans, decodeSpans(bytes, rows.integer(0)));
    for (const Span& span : spans) {
      if (span.instruction < 0) continue;
      const auto at = static_cast<std::size_t>(span.instruction);
      if (at >= times.size()) times.resize(at + 1);
      times[at].push_back(span.ns);
    }
  }
  SS_STORE_TRY(rows.status());
  return times;
}

// What the kernels of each instruction moved in the newest step of the plan that has counters.
struct Moved {
  std::map<std::int64_t, std::int64_t> bytes;  // by position in the plan
  std::string counted;
};
Result<Moved> movedBytes(const Connection& connection, std::int64_t plan) {
  Moved moved;
  SS_STORE_ASSIGN(
      Statement row,
      connection.prepare("SELECT d.data FROM steps s JOIN device_work d ON d.step_id = s.id WHERE s.plan = ? AND "
                         "d.rung = 'counters' ORDER BY s.id DESC LIMIT 1"));
  row.bind(plan);
  if (row.next()) {
    snapshot::DeviceWork work;
    SS_STORE_TRY(unpackMessage(row.blob(0), work));
    moved.counted = work.counted();
    for (const snapshot::DeviceRecord& record : work.records()) {
      if (!record.has_counters() || record.instruction() < 0) continue;
      std::int64_t& bytes = moved.bytes[record.instruction()];
      bytes = saturatingAdd(bytes, saturatingAdd(std::max<std::int64_t>(0, record.counters().read_bytes()),
                                                 std::max<std::int64_t>(0, record.counters().written_bytes())));
    }
  }
  SS_STORE_TRY(row.status());
  return moved;
}

}  // namespace

Status measureRoofline(const Connection& connection, std::int64_t run) {
  std::vector<std::int64_t> plans;
  {
    SS_STORE_ASSIGN(Statement rows, connection.prepare("SELECT DISTINCT plan FROM machine_peaks WHERE run = ?"));
    rows.bind(run);
    while (rows.next()) plans.push_back(rows.integer(0));
    SS_STORE_TRY(rows.status());
  }
  for (const std::int64_t plan : plans) {
    SS_STORE_ASSIGN(auto times, executions(connection, run, plan));
    SS_STORE_ASSIGN(
        Statement update,
        connection.prepare(
            "UPDATE roofline SET executions = ?1, median_ns = ?2, share = CASE WHEN ?2 > 0 THEN roof_ns / ?2 END "
            "WHERE plan = ?3 AND position = ?4"));
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i].empty()) continue;
      const TimeStats stats = statisticsOf(times[i]);
      SS_STORE_TRY(update.bind(stats.n, stats.median, plan, static_cast<std::int64_t>(i)).run());
    }
    SS_STORE_ASSIGN(const Moved moved, movedBytes(connection, plan));
    SS_STORE_ASSIGN(Statement counted,
                    connection.prepare("UPDATE roofline SET measured_bytes = ?1 WHERE plan = ?2 AND position = ?3"));
    for (const auto& [position, bytes] : moved.bytes) SS_STORE_TRY(counted.bind(bytes, plan, position).run());
  }
  return {};
}

Result<Roofline> readRoofline(const Project& project, const Timing& timing) {
  Roofline roofline;
  if (project.schemaVersion() < kFirstVersion || timing.instructions.empty()) return roofline;
  const std::int64_t plan = timing.instructions.front().plan;
  SS_STORE_ASSIGN(Statement peaks,
                  project.connection().prepare(fmt::format("SELECT name, per_second, capacity, measured_over, threads, {} "
                                                           "FROM machine_peaks WHERE plan = ? ORDER BY position",
                                                           project.schemaVersion() >= kWithWaiting ? "waiting" : "0.0")));
  peaks.bind(plan);
  while (peaks.next()) {
    const double perSecond = peaks.real(1);
    roofline.peaks.push_back({peaks.text(0), std::isfinite(perSecond) ? std::max(0.0, perSecond) : 0,
                              boundedSize(peaks.integer(2)), boundedSize(peaks.integer(3)),
                              static_cast<int>(peaks.integer(4)), std::isfinite(peaks.real(5)) ? peaks.real(5) : 0});
  }
  SS_STORE_TRY(peaks.status());
  Moved moved;
  if (project.schemaVersion() >= kWithCounters) {
    SS_STORE_ASSIGN(moved, movedBytes(project.connection(), plan));
  }
  roofline.counted = moved.counted;
  SS_STORE_ASSIGN(
      Statement rows,
      project.connection().prepare(
          "SELECT position, bytes, core_cache_bytes, shared_cache_bytes, memory_bytes, intensity, roof_ns, bound_by FROM "
          "roofline WHERE plan = ? ORDER BY position"));
  rows.bind(plan);
  while (rows.next()) {
    const std::int64_t position = rows.integer(0);
    RooflineRow row;
    row.roofNs = rows.real(6);
    if (position < 0 || position >= static_cast<std::int64_t>(timing.instructions.size()) || !(row.roofNs > 0) ||
        !std::isfinite(row.roofNs))
      continue;
    row.instruction = static_cast<std::size_t>(position);
    row.bytes = boundedSize(rows.integer(1));
    row.coreCacheBytes = boundedSize(rows.integer(2));
    row.sharedCacheBytes = boundedSize(rows.integer(3));
    row.memoryBytes = boundedSize(rows.integer(4));
    row.intensity = rows.optionalReal(5);
    row.boundBy = rows.text(7);
    if (const auto found = moved.bytes.find(position); found != moved.bytes.end()) row.measuredBytes = found->second;
    const TimeStats& time = timing.instructions[row.instruction].time;
    if (time.n > 0 && time.median > 0) {
      row.share = row.roofNs / static_cast<double>(time.median);
      row.aboveNs = static_cast<double>(time.median) - row.roofNs;
    }
    roofline.rows.push_back(std::move(row));
  }
  SS_STORE_TRY(rows.status());
  return roofline;
}

}  // namespace stepscope::storage
