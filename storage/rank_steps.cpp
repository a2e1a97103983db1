#include "storage/rank_steps.h"

#include <fmt/format.h>

#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 12, kWithTimes = 13;

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

}  // namespace stepscope::storage
