#include "storage/spans_table.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>
#include <new>

#include "storage/blob.h"
#include "storage/span_codec.h"

namespace stepscope::storage {
namespace {

// What a table is read from: of each row the step, when what it holds began, the packed spans, and the rank.
struct Source {
  const char* name;
  const char* columns;
  const char* one;  // of one step
  const char* all;
};

constexpr Source kSpans{
    "spans",
    "CREATE TABLE spans (step_id INTEGER, instruction INTEGER, node INTEGER, begin_ns INTEGER, ns INTEGER, thread INTEGER)",
    "SELECT step_id, begin_ns, data, 0 FROM step_spans JOIN steps ON steps.id = step_id WHERE step_id = ?1",
    "SELECT step_id, begin_ns, data, 0 FROM step_spans JOIN steps ON steps.id = step_id ORDER BY step_id"};

constexpr Source kSpansOfRanks{
    "spans_of_ranks",
    "CREATE TABLE spans_of_ranks (step_id INTEGER, rank INTEGER, instruction INTEGER, node INTEGER, begin_ns INTEGER, ns "
    "INTEGER, thread INTEGER)",
    "SELECT step_id, begin_ns, data, 0 FROM step_spans JOIN steps ON steps.id = step_id WHERE step_id = ?1 UNION ALL SELECT "
    "p.step_id, r.begin_ns, p.data, p.rank FROM rank_spans p JOIN steps s ON s.id = p.step_id JOIN rank_steps r ON r.run = "
    "s.run AND r.step = s.step AND r.rank = p.rank WHERE p.step_id = ?1",
    "SELECT step_id, begin_ns, data, 0 FROM step_spans JOIN steps ON steps.id = step_id UNION ALL SELECT p.step_id, "
    "r.begin_ns, p.data, p.rank FROM rank_spans p JOIN steps s ON s.id = p.step_id JOIN rank_steps r ON r.run = s.run AND "
    "r.step = s.step AND r.rank = p.rank"};

// SQLite's callbacks get these back as pointers to their first member.
struct SpansTable {
  sqlite3_vtab base = {};
  sqlite3* db = nullptr;
  const Source* source = nullptr;
};

struct SpansCursor {
  sqlite3_vtab_cursor base = {};
  sqlite3_stmt* steps = nullptr;
  bool one = false;  // it reads the spans of one step
  std::int64_t stepId = 0, rank = 0;
  std::vector<Span> spans;
  std::size_t at = 0;
  std::int64_t rowId = 0;
  bool atEnd = true;
};

constexpr int kOneStep = 1;

// Goes to the next step that has spans.
int loadStep(SpansCursor& cursor) {
  cursor.spans.clear();
  cursor.at = 0;
  while (cursor.spans.empty()) {
    const int code = sqlite3_step(cursor.steps);
    if (code == SQLITE_DONE) {
      cursor.atEnd = true;
      return SQLITE_OK;
    }
    if (code != SQLITE_ROW) return code;
    cursor.stepId = sqlite3_column_int64(cursor.steps, 0);
    cursor.rank = sqlite3_column_int64(cursor.steps, 3);
    const auto* data = static_cast<const char*>(sqlite3_column_blob(cursor.steps, 2));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(cursor.steps, 2));
    const auto bytes = decompress(std::string_view(data ? data : "", data ? size : 0));
    if (!bytes) return SQLITE_CORRUPT_VTAB;
    auto spans = decodeSpans(*bytes, sqlite3_column_int64(cursor.steps, 1));
    if (!spans) return SQLITE_CORRUPT_VTAB;
    cursor.spans = std::move(*spans);
  }
  cursor.atEnd = false;
  return SQLITE_OK;
}

int connect(sqlite3* db, void* source, int, const char* const*, sqlite3_vtab** out, char**) {
  const auto* const from = static_cast<const Source*>(source);
  const int code = sqlite3_declare_vtab(db, from->columns);
  if (code != SQLITE_OK) return code;
  auto* table = new (std::nothrow) SpansTable;
  if (!table) return SQLITE_NOMEM;
  table->db = db;
  table->source = from;
  *out = &table->base;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete reinterpret_cast<SpansTable*>(table);
  return SQLITE_OK;
}

int bestIndex(sqlite3_vtab*, sqlite3_index_info* info) {
  // Every step is read and unpacked: dearer than looking up each row of `steps` and asking for its spans.
  info->estimatedCost = 1e12;
  info->estimatedRows = 100'000'000;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& constraint = info->aConstraint[i];
    if (!constraint.usable || constraint.iColumn != 0 || constraint.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    info->aConstraintUsage[i].argvIndex = 1;
    info->idxNum = kOneStep;
    info->estimatedCost = 100;
    info->estimatedRows = 100;
    break;
  }
  return SQLITE_OK;
}

int openCursor(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  auto* cursor = new (std::nothrow) SpansCursor;
  if (!cursor) return SQLITE_NOMEM;
  *out = &cursor->base;
  return SQLITE_OK;
}

int closeCursor(sqlite3_vtab_cursor* base) {
  auto* cursor = reinterpret_cast<SpansCursor*>(base);
  sqlite3_finalize(cursor->steps);
  delete cursor;
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* base, int index, const char*, int count, sqlite3_value** values) {
  auto* cursor = reinterpret_cast<SpansCursor*>(base);
  const auto* table = reinterpret_cast<SpansTable*>(base->pVtab);
  cursor->rowId = 0;
  const bool one = index == kOneStep && count == 1;
  if (cursor->steps && cursor->one == one) {  // a join asks once for each step
    sqlite3_reset(cursor->steps);
    if (one) sqlite3_bind_value(cursor->steps, 1, values[0]);
    return loadStep(*cursor);
  }
  sqlite3_finalize(cursor->steps);
  cursor->steps = nullptr;
  cursor->one = one;
  const char* sql = one ? table->source->one : table->source->all;
  const int code = sqlite3_prepare_v2(table->db, sql, -1, &cursor->steps, nullptr);
  if (code != SQLITE_OK) return code;
  if (one) sqlite3_bind_value(cursor->steps, 1, values[0]);
  return loadStep(*cursor);
}

int nextRow(sqlite3_vtab_cursor* base) {
  auto* cursor = reinterpret_cast<SpansCursor*>(base);
  ++cursor->rowId;
  return ++cursor->at < cursor->spans.size() ? SQLITE_OK : loadStep(*cursor);
}

int atEnd(sqlite3_vtab_cursor* base) { return reinterpret_cast<SpansCursor*>(base)->atEnd ? 1 : 0; }

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int index) {
  const auto* cursor = reinterpret_cast<SpansCursor*>(base);
  const Span& span = cursor->spans[cursor->at];
  const std::int64_t values[] = {cursor->stepId, cursor->rank, span.instruction, span.node,
                                 span.beginNs,   span.ns,      span.thread};
  const auto* table = reinterpret_cast<const SpansTable*>(base->pVtab);
  if (index > 0 && table->source == &kSpans) ++index;  // without the rank
  if (index >= 0 && index < 7) sqlite3_result_int64(context, values[index]);
  return SQLITE_OK;
}

int rowId(sqlite3_vtab_cursor* base, sqlite3_int64* out) {
  *out = reinterpret_cast<SpansCursor*>(base)->rowId;
  return SQLITE_OK;
}

const sqlite3_module kModule = {.iVersion = 0,
                                .xCreate = nullptr,
                                .xConnect = connect,
                                .xBestIndex = bestIndex,
                                .xDisconnect = disconnect,
                                .xOpen = openCursor,
                                .xClose = closeCursor,
                                .xFilter = filter,
                                .xNext = nextRow,
                                .xEof = atEnd,
                                .xColumn = column,
                                .xRowid = rowId};

}  // namespace

Status registerSpansTables(const Connection& connection) {
  for (const Source* source : {&kSpans, &kSpansOfRanks}) {
    const int code = sqlite3_create_module(connection.handle(), source->name, &kModule, const_cast<Source*>(source));
    if (code != SQLITE_OK) return tl::make_unexpected(sqliteError(connection.handle(), code));
    // Declares the columns now: the authorizer of user queries forbids every declaration.
    const auto declared = connection.prepare(fmt::format("SELECT step_id FROM {}", source->name));
    if (!declared) return tl::make_unexpected(declared.error());
  }
  return {};
}

}  // namespace stepscope::storage
