#include "storage/step_facts.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "storage/blob.h"
#include "storage/bounded.h"
#include "storage/queries.h"
#include "storage/sqlite.h"
#include "storage/standing_rows.h"

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 3, kDecisionVersion = 10;
constexpr std::size_t kMostBins = 4096, kMostDims = 64;

constexpr const char* kOneRow = "(?1)";  // of `steps`

std::int32_t id32(const Statement& row, int column) { return static_cast<std::int32_t>(row.integer(column)); }

// Columns count, min, max, mean, std, zeros, negative, nan, inf from `first` on.
void readNumbers(const Statement& row, int first, snapshot::TensorStatistics& out) {
  out.set_count(boundedSize(row.integer(first)));
  out.set_min(row.real(first + 1));
  out.set_max(row.real(first + 2));
  out.set_mean(row.real(first + 3));
  out.set_std(row.real(first + 4));
  out.set_zeros(boundedSize(row.integer(first + 5)));
  out.set_negative(boundedSize(row.integer(first + 6)));
  out.set_nan(boundedSize(row.integer(first + 7)));
  out.set_inf(boundedSize(row.integer(first + 8)));
}

// Whether a row of this step belongs to the first `most` steps; rows of one step follow each other.
bool isWanted(const auto& found, std::int64_t step, std::int64_t most) {
  return static_cast<std::int64_t>(found.size()) < most || found.contains(step);
}

// "[8, 128]"; what is no list of numbers gives none.
std::vector<std::int64_t> numbersOf(const std::string& text, std::size_t most) {
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  std::vector<std::int64_t> numbers;
  if (!parsed.is_array() || parsed.size() > most) return numbers;
  for (const auto& entry : parsed) {
    if (!entry.is_number_integer()) return {};
    numbers.push_back(boundedSize(entry.get<std::int64_t>()));
  }
  return numbers;
}

// The readers of the header, of the rows `which` with ?1 = `key`.
Result<std::map<std::int64_t, std::vector<snapshot::InputDensity>>> densitiesOf(const Project& project,
                                                                                const std::string& which, std::int64_t key,
                                                                                std::int64_t most) {
  std::map<std::int64_t, std::vector<snapshot::InputDensity>> out;
  if (project.schemaVersion() < kFirstVersion) return out;
  SS_STORE_ASSIGN(Statement rows,
                  project.connection().prepare(
                      std::string("SELECT step_id, input, kind, valid, total, row_count, shortest, longest, reason, ") +
                      (project.schemaVersion() < kDecisionVersion ? "total, ''" : "computed, decision") +
                      " FROM batch_densities WHERE step_id IN " + which + " ORDER BY step_id DESC, input, kind"));
  rows.bind(key);
  while (rows.next() && isWanted(out, rows.integer(0), most)) {
    snapshot::InputDensity& d = out[rows.integer(0)].emplace_back();
    d.set_input(rows.text(1));
    d.set_kind(rows.text(2));
    d.set_valid(boundedSize(rows.integer(3)));
    d.set_total(boundedSize(rows.integer(4)));
    d.set_rows(boundedSize(rows.integer(5)));
    d.set_shortest(boundedSize(rows.integer(6)));
    d.set_longest(boundedSize(rows.integer(7)));
    d.set_reason(rows.text(8));
    d.set_computed(boundedSize(rows.integer(9)));
    d.set_decision(rows.text(10));
  }
  SS_STORE_TRY(rows.status());
  return out;
}

Result<std::map<std::int64_t, std::vector<snapshot::TensorData>>> batchesOf(const Project& project, const std::string& which,
                                                                            std::int64_t key, std::int64_t most,
                                                                            std::int64_t contentBytes) {
  std::map<std::int64_t, std::vector<snapshot::TensorData>> out;
  if (project.schemaVersion() < kFirstVersion) return out;
  SS_STORE_ASSIGN(
      Statement rows,
      project.connection().prepare(
          std::string(
              "SELECT step_id, value, name, dtype, shape, (SELECT step FROM steps WHERE id = step_id), count, min, max, "
              "mean, std, zeros, negative, nan, inf, kept_bytes, data FROM batch_inputs WHERE step_id IN ") +
          which + " ORDER BY step_id DESC, position"));
  rows.bind(key);
  while (rows.next() && isWanted(out, rows.integer(0), most)) {
    snapshot::TensorData data;
    data.set_value(id32(rows, 1));
    data.set_name(rows.text(2));
    data.set_dtype(rows.text(3));
    for (const std::int64_t extent : numbersOf(rows.text(4), kMostDims)) data.add_dims(extent);
    data.set_step(rows.integer(5));
    readNumbers(rows, 6, *data.mutable_statistics());
    const std::int64_t bytes = boundedSize(rows.integer(15));
    if (bytes > 0 && bytes <= contentBytes) {
      contentBytes -= bytes;
      snapshot::TensorData kept;
      SS_STORE_TRY(unpackMessage(rows.blob(16), kept));
      *data.mutable_begin() = std::move(*kept.mutable_begin());
      *data.mutable_extent() = std::move(*kept.mutable_extent());
      data.set_data(std::move(*kept.mutable_data()));
    }
    out[rows.integer(0)].push_back(std::move(data));
  }
  SS_STORE_TRY(rows.status());
  return out;
}

Result<std::map<std::int64_t, snapshot::RowLosses>> rowLossesOf(const Project& project, const std::string& which,
                                                                std::int64_t key, std::int64_t most) {
  std::map<std::int64_t, snapshot::RowLosses> out;
  if (project.schemaVersion() < kFirstVersion) return out;
  SS_STORE_ASSIGN(Statement rows,
                  project.connection().prepare(
                      std::string("SELECT step_id, data, (SELECT step FROM steps WHERE id = step_id) FROM row_losses WHERE "
                                  "step_id IN ") +
                      which + " ORDER BY step_id DESC LIMIT ?2"));
  rows.bind(key, most);
  while (rows.next()) {
    snapshot::RowLosses& losses = out[rows.integer(0)];
    SS_STORE_TRY(unpackMessage(rows.blob(1), losses));
    losses.set_step(rows.integer(2));
  }
  SS_STORE_TRY(rows.status());
  return out;
}

// Columns kind, subject, value, name, node and those of readNumbers, then norm.
snapshot::RecordedStatistics statisticsOf(const Statement& row, int first) {
  snapshot::RecordedStatistics r;
  r.set_kind(row.text(first));
  r.set_of(row.text(first + 1));
  r.set_value(id32(row, first + 2));
  r.set_name(row.text(first + 3));
  r.set_node(id32(row, first + 4));
  readNumbers(row, first + 5, *r.mutable_statistics());
  r.mutable_statistics()->set_norm(row.real(first + 14));
  return r;
}

std::string statisticsStand(const Project& project) { return notTakenBack(project.schemaVersion(), "tensor_stats", "?1"); }

void moveTo(auto& out, auto& found) {
  out.Reserve(static_cast<int>(found.size()));
  for (auto& each : found) *out.Add() = std::move(each);
}

}  // namespace

Result<std::map<std::int64_t, std::vector<snapshot::InputDensity>>> readDensities(const Project& project, std::int64_t run,
                                                                                  std::int64_t most) {
  return densitiesOf(project, standingSteps(project.schemaVersion()), run, most);
}

Result<std::vector<TokenCount>> readTokenCounts(const Project& project, std::int64_t run,
                                                const std::vector<StepRow>& steps) {
  std::vector<TokenCounter> counters;
  std::unordered_map<std::int64_t, std::size_t> places;  // by steps.id
  for (const StepRow& step : steps) {
    if (step.tokens > 0) places.emplace(step.id, counters.size());
    counters.emplace_back(step.tokens);
  }
  if (!places.empty() && project.schemaVersion() >= kFirstVersion) {
    SS_STORE_ASSIGN(Statement rows,
                    project.connection().prepare("SELECT step_id, kind, valid, total FROM batch_densities WHERE run = ?"));
    rows.bind(run);
    while (rows.next())
      if (const auto place = places.find(rows.integer(0)); place != places.end())
        counters[place->second].add(rows.text(1), rows.integer(2), rows.integer(3));
    SS_STORE_TRY(rows.status());
  }
  std::vector<TokenCount> counts;
  for (const TokenCounter& counter : counters) counts.push_back(counter.count());
  return counts;
}

Result<std::map<std::int64_t, std::vector<snapshot::TensorData>>> readBatches(const Project& project, std::int64_t run,
                                                                              std::int64_t most, std::int64_t contentBytes) {
  return batchesOf(project, standingSteps(project.schemaVersion()), run, most, contentBytes);
}

Result<std::map<std::int64_t, snapshot::RowLosses>> readRowLosses(const Project& project, std::int64_t run,
                                                                  std::int64_t most) {
  return rowLossesOf(project, standingSteps(project.schemaVersion()), run, most);
}

namespace {

constexpr int kKinds = 2;  // what is noted in some steps; watched values, which have rows in every step

// Where a step has its rows in the table: from id to id, one for each time that it was executed.
struct StatisticsPlace {
  std::vector<std::pair<std::int64_t, std::int64_t>> stretches;
  std::array<std::int64_t, kKinds> rows{};
};
using StatisticsPlaces = std::map<std::int64_t, StatisticsPlace>;  // by step

// In the order of the table: by its index every row would be searched for.
Result<StatisticsPlaces> placesOf(const Project& project, std::int64_t run) {
  StatisticsPlaces places;
  SS_STORE_ASSIGN(Statement ends, project.connection().prepare("SELECT min(id), max(id) FROM tensor_stats WHERE run = ?"));
  ends.bind(run);
  if (!ends.next() || ends.isNull(0)) return places;
  SS_STORE_ASSIGN(Statement rows, project.connection().prepare(fmt::format(
                                      "SELECT id, step, kind = 'watched' FROM tensor_stats NOT INDEXED WHERE id BETWEEN ?2 "
                                      "AND ?3 AND run = ?1 AND {} ORDER BY id",
                                      statisticsStand(project))));
  rows.bind(run, ends.integer(0), ends.integer(1));
  StatisticsPlace* place = nullptr;
  std::int64_t step = 0;
  while (rows.next()) {
    const std::int64_t id = rows.integer(0);
    if (!place || rows.integer(1) != step) {
      step = rows.integer(1);
      place = &places[step];
      place->stretches.emplace_back(id, id);
    }
    place->stretches.back().second = id;
    ++place->rows[static_cast<std::size_t>(rows.integer(2))];
  }
  SS_STORE_TRY(rows.status());
  return places;
}

// Of as many steps as `most` rows allow, evenly spread; and the last one.
std::set<std::int64_t> chosenSteps(const StatisticsPlaces& places, std::size_t kind, std::int64_t most,
                                   std::set<std::int64_t>& leftOut) {
  std::vector<std::int64_t> steps;
  std::int64_t all = 0;
  for (const auto& [step, place] : places) {
    if (place.rows[kind] == 0) continue;
    steps.push_back(step);
    all += place.rows[kind];
  }
  const std::size_t stride = most > 0 ? static_cast<std::size_t>((all + most - 1) / most) : 1;
  std::set<std::int64_t> chosen;
  for (std::size_t i = 0; i < steps.size(); ++i)
    (stride <= 1 || i % stride == 0 || i + 1 == steps.size() ? chosen : leftOut).insert(steps[i]);
  return chosen;
}

// Of a value that a step has twice, because it was executed again, the last one.
void addNewest(std::vector<snapshot::RecordedStatistics>& rows, std::vector<snapshot::RecordedStatistics>& out) {
  std::unordered_map<std::int32_t, std::size_t> newest;
  for (std::size_t i = 0; i < rows.size(); ++i) newest[rows[i].value()] = i;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (newest[rows[i].value()] == i) out.push_back(std::move(rows[i]));
}

}  // namespace

// Watched values must not push out the few steps that have the others.
Result<std::map<std::int64_t, std::vector<snapshot::RecordedStatistics>>> readRecordedStatistics(const Project& project,
                                                                                                 std::int64_t run,
                                                                                                 std::int64_t most,
                                                                                                 std::int64_t* leftOut) {
  std::map<std::int64_t, std::vector<snapshot::RecordedStatistics>> out;
  if (project.schemaVersion() < kFirstVersion) return out;
  SS_STORE_ASSIGN(const StatisticsPlaces places, placesOf(project, run));
  std::set<std::int64_t> without;
  const std::array<std::set<std::int64_t>, kKinds> chosen{
      chosenSteps(places, 0, most - most / 2, without),
      chosenSteps(places, 1, std::max<std::int64_t>(1, most / 2), without)};
  if (leftOut) *leftOut = std::ssize(without);
  std::map<std::int64_t, std::int64_t> stretches;  // that are read: those that follow each other are one
  for (const auto& [step, place] : places)
    if (chosen[0].contains(step) || chosen[1].contains(step))
      stretches.insert(place.stretches.begin(), place.stretches.end());
  SS_STORE_ASSIGN(
      Statement rows,
      project.connection().prepare(fmt::format(
          "SELECT step, kind, subject, value, name, node, count, min, max, mean, std, zeros, negative, nan, inf, norm "
          "FROM tensor_stats NOT INDEXED WHERE id BETWEEN ?2 AND ?3 AND run = ?1 AND {} ORDER BY id",
          statisticsStand(project))));
  std::map<std::int64_t, std::array<std::vector<snapshot::RecordedStatistics>, kKinds>> found;
  for (auto it = stretches.begin(); it != stretches.end();) {
    const std::int64_t first = it->first;
    std::int64_t last = it->second;
    while (++it != stretches.end() && it->first == last + 1) last = it->second;
    rows.reset();
    rows.bind(run, first, last);
    while (rows.next()) {
      snapshot::RecordedStatistics statistics = statisticsOf(rows, 1);
      const std::size_t kind = statistics.kind() == "watched" ? 1 : 0;
      if (chosen[kind].contains(rows.integer(0))) found[rows.integer(0)][kind].push_back(std::move(statistics));
    }
    SS_STORE_TRY(rows.status());
  }
  for (auto& [step, kinds] : found)
    for (auto& kind : kinds) addNewest(kind, out[step]);
  return out;
}

Status readBatchFactsOf(const Project& project, std::int64_t stepId, std::int64_t contentBytes,
                        snapshot::StepRecord& record) {
  if (project.schemaVersion() < kFirstVersion) return {};
  SS_STORE_ASSIGN(auto densities, densitiesOf(project, kOneRow, stepId, 1));
  moveTo(*record.mutable_densities(), densities[stepId]);
  SS_STORE_ASSIGN(auto batch, batchesOf(project, kOneRow, stepId, 1, contentBytes));
  moveTo(*record.mutable_inputs(), batch[stepId]);
  SS_STORE_ASSIGN(auto losses, rowLossesOf(project, kOneRow, stepId, 1));
  if (const auto it = losses.find(stepId); it != losses.end()) *record.mutable_row_losses() = std::move(it->second);
  return {};
}

// The index is (run, value, step): from value to value, and of each those steps.
Result<std::map<std::int64_t, std::vector<snapshot::RecordedStatistics>>> readStatisticsBetween(const Project& project,
                                                                                                std::int64_t run,
                                                                                                std::int64_t first,
                                                                                                std::int64_t last) {
  std::map<std::int64_t, std::vector<snapshot::RecordedStatistics>> out;
  if (project.schemaVersion() < kFirstVersion) return out;
  SS_STORE_ASSIGN(Statement rows,
                  project.connection().prepare(fmt::format(
                      "WITH RECURSIVE named(v) AS (SELECT min(value) FROM tensor_stats WHERE run = ?1 UNION ALL SELECT "
                      "(SELECT min(value) FROM tensor_stats WHERE run = ?1 AND value > v) FROM named WHERE v IS NOT NULL) "
                      "SELECT step, kind, subject, value, name, node, count, min, max, mean, std, zeros, negative, nan, "
                      "inf, norm FROM tensor_stats WHERE id IN (SELECT max(tensor_stats.id) FROM named CROSS JOIN "
                      "tensor_stats ON run = ?1 AND value = v WHERE step BETWEEN ?2 AND ?3 AND {} "
                      "GROUP BY step, value, kind = 'watched') ORDER BY id",
                      statisticsStand(project))));
  rows.bind(run, first, last);
  while (rows.next()) out[rows.integer(0)].push_back(statisticsOf(rows, 1));
  SS_STORE_TRY(rows.status());
  return out;
}

Result<std::vector<WatchedStatistics>> readWatchedStatistics(const Project& project, std::int64_t run, std::int64_t most) {
  const char* watched = project.schemaVersion() < kFirstVersion ? "" : "AND kind = 'watched'";
  SS_STORE_ASSIGN(
      Statement rows,
      project.connection().prepare(fmt::format(
          "SELECT step, value, name, count, min, max, mean, std, zeros, negative, nan, inf, norm, histogram FROM "
          "tensor_stats WHERE id IN (SELECT max(id) FROM tensor_stats WHERE run = ?1 {} AND {} GROUP BY step, "
          "value) ORDER BY step DESC, id DESC LIMIT ?2",
          watched, statisticsStand(project))));
  rows.bind(run, most);
  std::vector<WatchedStatistics> out;
  while (rows.next()) {
    WatchedStatistics& w = out.emplace_back();
    w.step = rows.integer(0);
    w.value = id32(rows, 1);
    w.name = rows.text(2);
    readNumbers(rows, 3, w.statistics);
    w.statistics.set_norm(rows.real(12));
    for (const std::int64_t bin : numbersOf(rows.text(13), kMostBins)) w.statistics.add_histogram(bin);
  }
  SS_STORE_TRY(rows.status());
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace stepscope::storage
