#include "storage/migration.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>

#include "storage/schema.h"

namespace stepscope::storage {
namespace {

// Through SQLite's own interface: opening the file with a descriptor of ours would drop SQLite's locks.
Status copyDatabase(const Connection& connection, const std::string& path) {
  SS_STORE_ASSIGN(Connection copy, Connection::open(path, Connection::Mode::kCreate));
  sqlite3_backup* backup = sqlite3_backup_init(copy.handle(), "main", connection.handle(), "main");
  if (!backup) return tl::make_unexpected(sqliteError(copy.handle(), sqlite3_errcode(copy.handle())));
  sqlite3_backup_step(backup, -1);
  const int code = sqlite3_backup_finish(backup);
  if (code != SQLITE_OK) return tl::make_unexpected(sqliteError(copy.handle(), code));
  return {};
}

Status inTransaction(const Connection& connection, const std::string& sql) {
  Status result = connection.execute("BEGIN IMMEDIATE;" + sql + "COMMIT;");
  if (!result && !sqlite3_get_autocommit(connection.handle())) (void)connection.execute("ROLLBACK");
  return result;
}

std::string quoted(std::string_view text) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'') result += '\'';
    result += c;
  }
  return result + "'";
}

std::string docsStatements() {
  std::string sql = "DELETE FROM docs;";
  const auto row = [&](std::string_view table, std::string_view column, std::string_view type, std::string_view text) {
    sql +=
        fmt::format("INSERT INTO docs VALUES ({}, {}, {}, {});", quoted(table), quoted(column), quoted(type), quoted(text));
  };
  for (const Table& table : tables()) {
    row(table.name, "", "", table.doc);
    for (const auto& column : table.columns) row(table.name, column.name, column.type, column.doc);
  }
  return sql;
}

}  // namespace

std::span<const Migration> migrations() {
  static constexpr Migration kAll[] = {
      {1, "instructions beside what the machine was measured to reach: tables machine_peaks and roofline",
       "CREATE TABLE machine_peaks (plan INTEGER NOT NULL, position INTEGER NOT NULL, run INTEGER NOT NULL, name TEXT NOT "
       "NULL, per_second REAL, capacity "
       "INTEGER NOT NULL, measured_over INTEGER NOT NULL, threads INTEGER NOT NULL, PRIMARY KEY (plan, position)) WITHOUT "
       "ROWID;"
       "CREATE TABLE roofline (plan INTEGER NOT NULL, position INTEGER NOT NULL, run INTEGER NOT NULL, flops REAL, bytes "
       "INTEGER NOT NULL, core_cache_bytes "
       "INTEGER NOT NULL, shared_cache_bytes INTEGER NOT NULL, memory_bytes INTEGER NOT NULL, intensity REAL, roof_ns REAL, "
       "bound_by TEXT NOT NULL, executions "
       "INTEGER NOT NULL, median_ns INTEGER, share REAL, PRIMARY KEY (plan, position)) WITHOUT ROWID;"
       "CREATE INDEX roofline_index_0 ON roofline (run)"},
      {2, "batches over the steps, row losses, statistics of parameters, gradients and outputs; what recording took",
       "ALTER TABLE steps ADD COLUMN recording_ns INTEGER NOT NULL DEFAULT 0;"
       "ALTER TABLE tensor_stats ADD COLUMN kind TEXT NOT NULL DEFAULT 'watched';"
       "ALTER TABLE tensor_stats ADD COLUMN subject TEXT NOT NULL DEFAULT '';"
       "ALTER TABLE tensor_stats ADD COLUMN node INTEGER NOT NULL DEFAULT -1;"
       "CREATE TABLE batch_densities (step_id INTEGER NOT NULL, input TEXT NOT NULL, kind TEXT NOT NULL, run INTEGER NOT "
       "NULL, valid INTEGER NOT NULL, total "
       "INTEGER NOT NULL, row_count INTEGER NOT NULL, shortest INTEGER NOT NULL, longest INTEGER NOT NULL, reason TEXT NOT "
       "NULL, PRIMARY KEY (step_id, input, "
       "kind)) WITHOUT ROWID;"
       "CREATE TABLE batch_inputs (step_id INTEGER NOT NULL, position INTEGER NOT NULL, run INTEGER NOT NULL, value INTEGER "
       "NOT NULL, name TEXT NOT NULL, dtype "
       "TEXT NOT NULL, shape TEXT NOT NULL, count INTEGER NOT NULL, min REAL, max REAL, mean REAL, std REAL, zeros INTEGER "
       "NOT NULL, negative INTEGER NOT NULL, "
       "nan INTEGER NOT NULL, inf INTEGER NOT NULL, kept_bytes INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (step_id, "
       "position));"
       "CREATE TABLE row_losses (step_id INTEGER PRIMARY KEY, run INTEGER NOT NULL, quantity TEXT NOT NULL, unavailable "
       "TEXT NOT NULL, row_count INTEGER NOT "
       "NULL, counted INTEGER NOT NULL, worst_row INTEGER, worst REAL, mean REAL, not_finite INTEGER NOT NULL, data BLOB "
       "NOT NULL)"},
      {3, "the graph of every phase, as its difference to the one after it; the verdicts on the nodes of a plan",
       "ALTER TABLE graphs ADD COLUMN base INTEGER NOT NULL DEFAULT 0;"
       "CREATE TABLE determinism (plan INTEGER NOT NULL, position INTEGER NOT NULL, run INTEGER NOT NULL, verdict TEXT NOT "
       "NULL, reason TEXT NOT NULL, node_count "
       "INTEGER NOT NULL, nodes TEXT NOT NULL, PRIMARY KEY (plan, position)) WITHOUT ROWID"},
      {4, "steps say whether somebody stopped in them; before, only an alert with their number did",
       "ALTER TABLE steps ADD COLUMN stopped_in INTEGER NOT NULL DEFAULT 0;"
       "UPDATE steps SET stopped_in = 1 WHERE (run, step) IN (SELECT run, step FROM alerts WHERE code = 'stopped')"},
      {5, "steps say what they took of the processors, and how they ran",
       "ALTER TABLE steps ADD COLUMN cpu_ns INTEGER NOT NULL DEFAULT 0;"
       "ALTER TABLE steps ADD COLUMN wait_ns INTEGER NOT NULL DEFAULT 0;"
       "ALTER TABLE steps ADD COLUMN speed TEXT NOT NULL DEFAULT '';"
       "UPDATE steps SET speed = CASE WHEN id IN (SELECT step_id FROM step_spans) THEN 'recorded' ELSE 'full speed' END;"
       "CREATE INDEX step_spans_index_0 ON step_spans (run)"},
      {6, "what every option gives: table trials",
       "CREATE TABLE trials (run INTEGER NOT NULL, session INTEGER NOT NULL, position INTEGER NOT NULL, step "
       "INTEGER NOT NULL, option TEXT NOT NULL, from_value TEXT NOT NULL, to_value TEXT NOT NULL, rounds INTEGER "
       "NOT NULL, before_ns REAL, after_ns REAL, ratio REAL, low REAL, high REAL, p REAL, adjusted_p REAL, "
       "before_peak INTEGER NOT NULL, after_peak INTEGER NOT NULL, before_measured_peak INTEGER NOT NULL, "
       "after_measured_peak INTEGER NOT NULL, before_expected_ns REAL, after_expected_ns REAL, compared INTEGER "
       "NOT NULL, same_bits INTEGER NOT NULL, loss_difference REAL, gradient_difference REAL, "
       "parameter_difference REAL, gradient_error REAL, parameter_error REAL, cosine REAL, worst TEXT NOT NULL, "
       "verdict TEXT NOT NULL, identical INTEGER NOT NULL, note TEXT NOT NULL, PRIMARY KEY (run, session, "
       "position))"},
      {7, "what a step was spent on: tables ledger and ledger_advice",
       "CREATE TABLE ledger (run INTEGER NOT NULL, session INTEGER NOT NULL, position INTEGER NOT NULL, step INTEGER "
       "NOT NULL, signature TEXT NOT NULL, instruction INTEGER NOT NULL, phase TEXT NOT NULL, module TEXT NOT NULL, op "
       "TEXT NOT NULL, label TEXT NOT NULL, source TEXT NOT NULL, flops_useful INTEGER NOT NULL, flops_padding INTEGER "
       "NOT NULL, flops_ignored INTEGER NOT NULL, flops_recomputed INTEGER NOT NULL, bytes_payload INTEGER NOT NULL, "
       "bytes_cast INTEGER NOT NULL, bytes_layout INTEGER NOT NULL, bytes_copy INTEGER NOT NULL, ns_kernel INTEGER NOT "
       "NULL, ns_gap INTEGER NOT NULL, ns_waiting INTEGER NOT NULL, roof_ns REAL, PRIMARY KEY (run, session, position));"
       "CREATE TABLE ledger_advice (run INTEGER NOT NULL, session INTEGER NOT NULL, position INTEGER NOT NULL, spent "
       "TEXT NOT NULL, change TEXT NOT NULL, option TEXT NOT NULL, value TEXT NOT NULL, gain_ns REAL, trial TEXT NOT "
       "NULL, PRIMARY KEY (run, session, position))"},
      {8, "what a device did in a step: tables device_work and device_kernels",
       "CREATE TABLE device_work (step_id INTEGER PRIMARY KEY, run INTEGER NOT NULL, rung TEXT NOT NULL, rung_reason TEXT "
       "NOT NULL, records INTEGER NOT NULL, lost INTEGER NOT NULL, bytes INTEGER NOT NULL, data BLOB NOT NULL);"
       "CREATE INDEX device_work_index_0 ON device_work (run);"
       "CREATE TABLE device_kernels (run INTEGER NOT NULL, name TEXT NOT NULL, blocks INTEGER NOT NULL, threads INTEGER NOT "
       "NULL, registers INTEGER NOT NULL, shared_bytes INTEGER NOT NULL, occupancy REAL, launches INTEGER NOT NULL, ns "
       "INTEGER NOT NULL, queue_ns INTEGER NOT NULL, PRIMARY KEY (run, name, blocks, threads, registers, shared_bytes)) "
       "WITHOUT ROWID"},
      {9, "what a step computed of an input, and why: decided for every batch; what buffers really take",
       "ALTER TABLE buffers ADD COLUMN measured_bytes INTEGER;"
       "ALTER TABLE batch_densities ADD COLUMN computed INTEGER NOT NULL DEFAULT 0;"
       "ALTER TABLE batch_densities ADD COLUMN decision TEXT NOT NULL DEFAULT '';"
       "UPDATE batch_densities SET computed = total"},
      {10, "what PyTorch measured beside a run: tables pytorch_imports and pytorch_rows",
       "CREATE TABLE pytorch_imports (run INTEGER NOT NULL, session INTEGER NOT NULL, kind TEXT NOT NULL, file TEXT NOT "
       "NULL, "
       "joined INTEGER NOT NULL, theirs_alone INTEGER NOT NULL, ours_alone INTEGER NOT NULL, notes TEXT NOT NULL, PRIMARY "
       "KEY "
       "(run, session));"
       "CREATE TABLE pytorch_rows (run INTEGER NOT NULL, session INTEGER NOT NULL, position INTEGER NOT NULL, phase TEXT "
       "NOT "
       "NULL, module TEXT NOT NULL, theirs TEXT NOT NULL, ours TEXT NOT NULL, their_amount REAL, our_amount REAL, PRIMARY "
       "KEY "
       "(run, session, position))"},
      {11, "the processes of a run next to each other: tables rank_steps and rank_collectives",
       "CREATE TABLE rank_steps (run INTEGER NOT NULL, step INTEGER NOT NULL, rank INTEGER NOT NULL, loss REAL, ns INTEGER "
       "NOT NULL, wait_ns INTEGER NOT NULL, move_ns INTEGER NOT NULL, sent_bytes INTEGER NOT NULL, received_bytes INTEGER "
       "NOT NULL, planned_sent_bytes INTEGER NOT NULL, peak_bytes INTEGER NOT NULL, planned_bytes INTEGER NOT NULL, "
       "state_bytes INTEGER NOT NULL, PRIMARY KEY (run, step, rank)) WITHOUT ROWID;"
       "CREATE TABLE rank_collectives (run INTEGER NOT NULL, step INTEGER NOT NULL, position INTEGER NOT NULL, rank INTEGER "
       "NOT NULL, node TEXT NOT NULL, wait_ns INTEGER NOT NULL, move_ns INTEGER NOT NULL, sent_bytes INTEGER NOT NULL, "
       "PRIMARY KEY (run, step, position, rank)) WITHOUT ROWID"},
      {12, "when the processes of a run did what, and how long they did nothing else",
       "ALTER TABLE rank_steps ADD COLUMN begin_ns INTEGER NOT NULL DEFAULT 0;"
       "ALTER TABLE rank_steps ADD COLUMN exposed_ns INTEGER NOT NULL DEFAULT 0;"
       "ALTER TABLE rank_collectives ADD COLUMN begin_ns INTEGER NOT NULL DEFAULT 0;"
       "ALTER TABLE rank_collectives ADD COLUMN exposed_ns INTEGER NOT NULL DEFAULT 0;"
       "UPDATE rank_steps SET exposed_ns = wait_ns + move_ns; UPDATE rank_collectives SET exposed_ns = wait_ns + move_ns"},
      {13, "when the instructions of every process ran: table rank_spans",
       "CREATE TABLE rank_spans (step_id INTEGER NOT NULL, rank INTEGER NOT NULL, run INTEGER NOT NULL, count INTEGER NOT "
       "NULL, bytes INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (step_id, rank));"
       "CREATE INDEX rank_spans_index_0 ON rank_spans (run)"},
      {14, "what hardware counts of kernels",
       "ALTER TABLE device_work ADD COLUMN counted TEXT NOT NULL DEFAULT '';"
       "ALTER TABLE device_work ADD COLUMN uncounted INTEGER NOT NULL DEFAULT 0;"
       "ALTER TABLE device_kernels ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;"
       "ALTER TABLE device_kernels ADD COLUMN read_bytes INTEGER NOT NULL DEFAULT 0;"
       "ALTER TABLE device_kernels ADD COLUMN written_bytes INTEGER NOT NULL DEFAULT 0;"
       "ALTER TABLE device_kernels ADD COLUMN achieved_occupancy REAL;"
       "ALTER TABLE device_kernels ADD COLUMN tensor REAL;"
       "ALTER TABLE roofline ADD COLUMN measured_bytes INTEGER"},
      {15, "what rewinds took back: table rewinds",
       "CREATE TABLE rewinds (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, step INTEGER NOT NULL, last_step INTEGER NOT "
       "NULL, "
       "last_alert INTEGER NOT NULL, last_statistics INTEGER NOT NULL);"
       "CREATE INDEX rewinds_index_0 ON rewinds (run)"},
      {16, "what else ran while a ledger and its roofs were measured: table ledger_sessions",
       "CREATE TABLE ledger_sessions (run INTEGER NOT NULL, session INTEGER NOT NULL, steps INTEGER NOT NULL, threads "
       "INTEGER NOT NULL, cpu_ns INTEGER NOT NULL, wait_ns INTEGER NOT NULL, wall_ns INTEGER NOT NULL, roof_waiting REAL, "
       "PRIMARY KEY (run, session));"
       "ALTER TABLE machine_peaks ADD COLUMN waiting REAL NOT NULL DEFAULT 0"},
  };
  return kAll;
}

Status createTables(const Connection& connection) {
  std::string sql;
  for (const Table& table : tables()) sql += createStatements(table);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  sql += fmt::format(
      "INSERT INTO meta VALUES ('last_compatible_version', '{}'), ('created_by', 'stepscope'), ('created_at', '{}');",
      kLastCompatibleVersion, std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  sql += docsStatements();
  sql += fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};", kApplicationId, kSchemaVersion);
  return inTransaction(connection, sql);
}

Status writeDocs(const Connection& connection) { return inTransaction(connection, docsStatements()); }

Status migrate(const Connection& connection, const std::string& path, std::span<const Migration> steps, int target) {
  SS_STORE_ASSIGN(std::int64_t version, connection.integer("PRAGMA user_version"));
  if (version == target) return {};
  const std::int64_t old = version;
  std::string sql;
  while (version < target) {
    const auto step = std::find_if(steps.begin(), steps.end(), [&](const Migration& m) { return m.from == version; });
    if (step == steps.end())
      return fail(ErrorCode::kCorrupt,
                  fmt::format("project '{}': schema version {}; no migration leads from it to {}", path, version, target));
    sql += step->sql;
    sql += ';';
    ++version;
  }
  SS_STORE_TRY(copyDatabase(connection, fmt::format("{}.v{}.bak", path, old)));
  sql += fmt::format("PRAGMA user_version = {};", target);
  sql += fmt::format("UPDATE meta SET value = '{}' WHERE key = 'last_compatible_version';", kLastCompatibleVersion);
  return inTransaction(connection, sql);
}

}  // namespace stepscope::storage
