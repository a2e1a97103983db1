#include "storage/rank_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "storage/blob.h"
#include "storage/bounded.h"
#include "storage/span_codec.h"
#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 12, kWithTimes = 13, kWithSpans = 14;

// Who waits least came last. Of a run with one step that one counts.
constexpr const char* kRanks =
    "WITH judged AS (SELECT * FROM rank_steps WHERE run = ?1 AND (step > (SELECT min(step) FROM rank_steps WHERE run = ?1) "
    "OR "
    "(SELECT count(DISTINCT step) FROM rank_steps WHERE run = ?1) = 1)), least AS (SELECT step, min(wait_ns) AS ns FROM "
    "judged GROUP BY step), last AS (SELECT judged.step, min(rank) AS rank FROM judged JOIN least ON least.step = "
    "judged.step AND least.ns = judged.wait_ns GROUP BY judged.step) SELECT rank, count(*), (SELECT count(*) FROM last "
    "WHERE "
    "last.rank = judged.rank), avg(ns), avg(wait_ns), avg(move_ns), avg(sent_bytes), avg(planned_sent_bytes), "
    "max(peak_bytes), max(planned_bytes), max(state_bytes), avg({0}) FROM judged GROUP BY rank ORDER BY rank";

constexpr const char* kCollectives =
    "WITH judged AS (SELECT * FROM rank_collectives WHERE run = ?1 AND (step > (SELECT min(step) FROM rank_steps WHERE run "
    "= "
    "?1) OR (SELECT count(DISTINCT step) FROM rank_steps WHERE run = ?1) = 1)), turns AS (SELECT step, position, node, "
    "avg(wait_ns) AS mean, max(wait_ns) AS worst, min(wait_ns) AS least, avg(move_ns) AS move, avg(sent_bytes) AS sent, "
    "avg({0}) AS exposed FROM judged GROUP BY step, position), came AS (SELECT turns.node, judged.rank, count(*) AS times "
    "FROM turns JOIN judged ON "
    "judged.step = turns.step AND judged.position = turns.position AND judged.wait_ns = turns.least GROUP BY turns.node, "
    "judged.rank) SELECT node, count(*), avg(mean), avg(worst), avg(move), avg(sent), (SELECT rank FROM came WHERE "
    "came.node "
    "= turns.node ORDER BY times DESC, rank LIMIT 1), avg(exposed) FROM turns GROUP BY node ORDER BY min(position), node";

}  // namespace

Result<RankReport> readRanks(const Project& project, std::int64_t run) {
  RankReport report;
  if (project.schemaVersion() < kFirstVersion) return report;
  // Before collectives could run beside anything else all of their time was exposed.
  const std::string_view exposed = project.schemaVersion() < kWithTimes ? "wait_ns + move_ns" : "exposed_ns";
  SS_STORE_ASSIGN(Statement rows, project.connection().prepare(fmt::format(kRanks, exposed)));
  rows.bind(run);
  while (rows.next())
    report.ranks.push_back({static_cast<int>(rows.integer(0)), rows.integer(1), rows.integer(2), rows.real(3), rows.real(11),
                            rows.real(4), rows.real(5), rows.real(6), rows.real(7), rows.integer(8), rows.integer(9),
                            rows.integer(10)});
  SS_STORE_TRY(rows.status());
  SS_STORE_ASSIGN(Statement collectives, project.connection().prepare(fmt::format(kCollectives, exposed)));
  collectives.bind(run);
  while (collectives.next())
    report.collectives.push_back({std::string(collectives.text(0)), collectives.integer(1), collectives.real(2),
                                  collectives.real(3), collectives.real(4), collectives.real(7), collectives.real(5),
                                  static_cast<int>(collectives.integer(6))});
  SS_STORE_TRY(collectives.status());
  return report;
}

Result<std::vector<RankStep>> readRankSteps(const Project& project, std::int64_t run, std::int64_t first,
                                            std::int64_t last) {
  std::vector<RankStep> steps;
  if (project.schemaVersion() < kWithTimes) return steps;
  SS_STORE_ASSIGN(Statement rows,
                  project.connection().prepare(
                      "SELECT step, rank, ns, wait_ns, move_ns, sent_bytes, begin_ns, exposed_ns FROM "
                      "rank_steps WHERE run = ? AND step BETWEEN ? AND ? AND begin_ns > 0 ORDER BY step, rank"));
  rows.bind(run, first, last);
  SS_STORE_ASSIGN(Statement inner, project.connection().prepare(
                                       "SELECT node, wait_ns, move_ns, sent_bytes, begin_ns, exposed_ns FROM "
                                       "rank_collectives WHERE run = ? AND step = ? AND rank = ? ORDER BY position"));
  while (rows.next()) {
    RankStep& step = steps.emplace_back();
    step = {.step = rows.integer(0), .rank = static_cast<int>(rows.integer(1)), .ns = rows.integer(2)};
    step.waitNs = rows.integer(3);
    step.moveNs = rows.integer(4);
    step.sentBytes = rows.integer(5);
    step.beginNs = rows.integer(6);
    step.exposedNs = rows.integer(7);
    inner.reset();
    inner.bind(run, step.step, step.rank);
    while (inner.next())
      step.collectives.push_back({std::string(inner.text(0)), inner.integer(1), inner.integer(2), inner.integer(3),
                                  inner.integer(4), inner.integer(5)});
    SS_STORE_TRY(inner.status());
  }
  SS_STORE_TRY(rows.status());
  return steps;
}

namespace {

Status addCollectives(Statement& rows, snapshot::RankStep& rank) {
  while (rows.next()) {
    snapshot::RankCollective& c = *rank.add_collectives();
    c.set_node(std::string(rows.text(0)));
    c.set_wait_ns(boundedSize(rows.integer(1)));
    c.set_move_ns(boundedSize(rows.integer(2)));
    c.set_sent_bytes(boundedSize(rows.integer(3)));
    c.set_begin_ns(bounded(rows.integer(4)));
    c.set_exposed_ns(boundedSize(rows.integer(5)));
  }
  return rows.status();
}

Status addSpans(Statement& row, snapshot::RankStep& rank) {
  if (!row.next()) return row.status();
  SS_STORE_ASSIGN(const std::string bytes, decompress(row.blob(0)));
  SS_STORE_ASSIGN(const std::vector<Span> spans, decodeSpans(bytes, rank.begin_ns()));
  for (const Span& s : spans) {
    snapshot::InstructionSpan& span = *rank.add_spans();
    span.set_instruction(s.instruction);
    span.set_node(s.node);
    span.set_begin_ns(s.beginNs);
    span.set_end_ns(saturatingAdd(s.beginNs, s.ns));
    span.set_thread(s.thread);
  }
  return {};
}

}  // namespace

Result<snapshot::StepRanks> readRanksOf(const Project& project, std::int64_t stepId) {
  snapshot::StepRanks step;
  const int version = project.schemaVersion();
  if (version < kFirstVersion) return step;
  const std::string_view times = version < kWithTimes ? "0, wait_ns + move_ns" : "begin_ns, exposed_ns";
  SS_STORE_ASSIGN(
      Statement rows,
      project.connection().prepare(fmt::format(
          "SELECT r.run, r.step, rank, r.ns, r.wait_ns, move_ns, sent_bytes, received_bytes, "
          "planned_sent_bytes, r.peak_bytes, r.planned_bytes, state_bytes, r.loss, {} FROM rank_steps r JOIN steps "
          "s ON r.run = s.run AND r.step = s.step WHERE s.id = ? ORDER BY rank",
          version < kWithTimes ? "0, r.wait_ns + move_ns" : "r.begin_ns, exposed_ns")));
  SS_STORE_ASSIGN(Statement collectives,
                  project.connection().prepare(fmt::format("SELECT node, wait_ns, move_ns, sent_bytes, {} FROM "
                                                           "rank_collectives WHERE run = ? AND step = ? AND rank = ? ORDER "
                                                           "BY position",
                                                           times)));
  std::optional<Statement> spans;
  if (version >= kWithSpans) {
    SS_STORE_ASSIGN(spans, project.connection().prepare("SELECT data FROM rank_spans WHERE step_id = ? AND rank = ?"));
  }
  rows.bind(stepId);
  while (rows.next()) {
    snapshot::RankStep& rank = *step.add_ranks();
    step.set_step(rows.integer(1));
    rank.set_rank(static_cast<std::int32_t>(std::clamp<std::int64_t>(rows.integer(2), 0, 1 << 20)));
    rank.set_ns(boundedSize(rows.integer(3)));
    rank.set_wait_ns(boundedSize(rows.integer(4)));
    rank.set_move_ns(boundedSize(rows.integer(5)));
    rank.set_sent_bytes(boundedSize(rows.integer(6)));
    rank.set_received_bytes(boundedSize(rows.integer(7)));
    rank.set_planned_sent_bytes(boundedSize(rows.integer(8)));
    rank.set_peak_bytes(boundedSize(rows.integer(9)));
    rank.set_planned_bytes(boundedSize(rows.integer(10)));
    rank.set_state_bytes(boundedSize(rows.integer(11)));
    rank.set_has_loss(!rows.isNull(12));
    rank.set_loss(rows.real(12));
    rank.set_begin_ns(bounded(rows.integer(13)));
    rank.set_exposed_ns(boundedSize(rows.integer(14)));
    collectives.reset();
    collectives.bind(rows.integer(0), rows.integer(1), rows.integer(2));
    SS_STORE_TRY(addCollectives(collectives, rank));
    if (!spans) continue;
    spans->reset();
    spans->bind(stepId, rows.integer(2));
    SS_STORE_TRY(addSpans(*spans, rank));
  }
  SS_STORE_TRY(rows.status());
  return step;
}

}  // namespace stepscope::storage
