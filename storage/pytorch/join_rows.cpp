#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "storage/pytorch/join.h"
#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 11;

Status write(const Connection& connection, std::int64_t run, const PyTorchJoin& join, const std::string& file) {
  SS_STORE_ASSIGN(Statement newest,
                  connection.prepare("SELECT coalesce(max(session) + 1, 0) FROM pytorch_imports WHERE run = ?"));
  newest.bind(run);
  if (!newest.next()) return newest.status();
  const std::int64_t session = newest.integer(0);
  newest.reset();
  SS_STORE_ASSIGN(Statement head, connection.prepare("INSERT INTO pytorch_imports VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  SS_STORE_TRY(head.bind(run, session, join.kind, file, join.joined, join.theirsAlone, join.oursAlone,
                         nlohmann::json(join.notes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
                   .run());
  SS_STORE_ASSIGN(Statement rows, connection.prepare("INSERT INTO pytorch_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  std::int64_t position = 0;
  for (const PyTorchRow& r : join.rows)
    SS_STORE_TRY(rows.bind(run, session, position++, r.phase, r.module, r.theirs, r.ours, r.theirAmount, r.ourAmount).run());
  return {};
}

}  // namespace

Status writeJoin(const Project& project, std::int64_t run, const PyTorchJoin& join, const std::string& file) {
  const Connection& connection = project.connection();
  SS_STORE_TRY(connection.execute("BEGIN IMMEDIATE"));
  Status done = write(connection, run, join, file);
  if (done) done = connection.execute("COMMIT");
  if (!done) (void)connection.execute("ROLLBACK");
  return done;
}

Result<std::vector<PyTorchJoin>> readJoins(const Project& project, std::int64_t run) {
  std::vector<PyTorchJoin> out;
  if (project.schemaVersion() < kFirstVersion) return out;
  SS_STORE_ASSIGN(
      Statement head,
      project.connection().prepare("SELECT kind, max(session), joined, theirs_alone, ours_alone, notes FROM pytorch_imports "
                                   "WHERE run = ? GROUP BY kind ORDER BY kind DESC"));
  head.bind(run);
  std::vector<std::int64_t> sessions;
  while (head.next()) {
    PyTorchJoin& join = out.emplace_back();
    join.kind = head.text(0);
    sessions.push_back(head.integer(1));
    join.joined = head.integer(2);
    join.theirsAlone = head.integer(3);
    join.oursAlone = head.integer(4);
    const nlohmann::json notes = nlohmann::json::parse(head.text(5), nullptr, false);
    if (notes.is_array())
      for (const nlohmann::json& note : notes)
        if (note.is_string()) join.notes.push_back(note.get<std::string>());
  }
  SS_STORE_TRY(head.status());
  SS_STORE_ASSIGN(Statement rows,
                  project.connection().prepare(
                      "SELECT phase, module, theirs, ours, their_amount, our_amount FROM pytorch_rows WHERE run = ? "
                      "AND session = ? ORDER BY position"));
  for (std::size_t i = 0; i < out.size(); ++i) {
    rows.bind(run, sessions[i]);
    while (rows.next())
      out[i].rows.push_back({rows.text(0), rows.text(1), rows.text(2), rows.text(3), rows.real(4), rows.real(5)});
    SS_STORE_TRY(rows.status());
    rows.reset();
  }
  return out;
}

}  // namespace stepscope::storage
