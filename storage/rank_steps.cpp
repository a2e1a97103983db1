#include "storage/rank_steps.h"

#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 12;

// Who waits least came last. Of a run with one step that one counts.
constexpr const char* kRanks =
    "WITH judged AS (SELECT * FROM rank_steps WHERE run = ?1 AND (step > (SELECT min(step) FROM rank_steps WHERE run = ?1) "
    "OR "
    "(SELECT count(DISTINCT step) FROM rank_steps WHERE run = ?1) = 1)), least AS (SELECT step, min(wait_ns) AS ns FROM "
    "judged GROUP BY step), last AS (SELECT judged.step, min(rank) AS rank FROM judged JOIN least ON least.step = "
    "judged.step AND least.ns = judged.wait_ns GROUP BY judged.step) SELECT rank, count(*), (SELECT count(*) FROM last "
    "WHERE "
    "last.rank = judged.rank), avg(ns), avg(wait_ns), avg(move_ns), avg(sent_bytes), avg(planned_sent_bytes), "
    "max(peak_bytes), max(planned_bytes), max(state_bytes) FROM judged GROUP BY rank ORDER BY rank";

constexpr const char* kCollectives =
    "WITH judged AS (SELECT * FROM rank_collectives WHERE run = ?1 AND (step > (SELECT min(step) FROM rank_steps WHERE run "
    "= "
    "?1) OR (SELECT count(DISTINCT step) FROM rank_steps WHERE run = ?1) = 1)), turns AS (SELECT step, position, node, "
    "avg(wait_ns) AS mean, max(wait_ns) AS worst, min(wait_ns) AS least, avg(move_ns) AS move, avg(sent_bytes) AS sent FROM "
    "judged GROUP BY step, position), came AS (SELECT turns.node, judged.rank, count(*) AS times FROM turns JOIN judged ON "
    "judged.step = turns.step AND judged.position = turns.position AND judged.wait_ns = turns.least GROUP BY turns.node, "
    "judged.rank) SELECT node, count(*), avg(mean), avg(worst), avg(move), avg(sent), (SELECT rank FROM came WHERE "
    "came.node "
    "= turns.node ORDER BY times DESC, rank LIMIT 1) FROM turns GROUP BY node ORDER BY min(position), node";

}  // namespace

Result<RankReport> readRanks(const Project& project, std::int64_t run) {
  RankReport report;
  if (project.schemaVersion() < kFirstVersion) return report;
  SS_STORE_ASSIGN(Statement rows, project.connection().prepare(kRanks));
  rows.bind(run);
  while (rows.next())
    report.ranks.push_back({static_cast<int>(rows.integer(0)), rows.integer(1), rows.integer(2), rows.real(3), rows.real(4),
                            rows.real(5), rows.real(6), rows.real(7), rows.integer(8), rows.integer(9), rows.integer(10)});
  SS_STORE_TRY(rows.status());
  SS_STORE_ASSIGN(Statement collectives, project.connection().prepare(kCollectives));
  collectives.bind(run);
  while (collectives.next())
    report.collectives.push_back({std::string(collectives.text(0)), collectives.integer(1), collectives.real(2),
                                  collectives.real(3), collectives.real(4), collectives.real(5),
                                  static_cast<int>(collectives.integer(6))});
  SS_STORE_TRY(collectives.status());
  return report;
}

}  // namespace stepscope::storage
