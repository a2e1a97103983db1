#include "storage/packed_table.h"

#include <fmt/format.h>

#include <new>
#include <utility>

namespace stepscope::storage {
namespace {

// SQLite's callbacks get these back as pointers to their first member.
struct PackedVtab {
  sqlite3_vtab base = {};
  sqlite3* db = nullptr;
  const PackedTable* source = nullptr;
};

struct PackedCursor {
  sqlite3_vtab_cursor base = {};
  sqlite3_stmt* steps = nullptr;
  bool one = false;                  // it reads the rows of one step
  std::unique_ptr<PackedRows> rows;  // null: at the end
  std::size_t at = 0;
  std::int64_t rowId = 0;
};

constexpr int kOneStep = 1;

const PackedTable& sourceOf(const sqlite3_vtab_cursor* cursor) {
  return *reinterpret_cast<const PackedVtab*>(cursor->pVtab)->source;
}

// Goes to the next step that has rows.
int loadStep(PackedCursor& cursor) {
  cursor.rows.reset();
  cursor.at = 0;
  while (!cursor.rows || cursor.rows->size() == 0) {
    const int code = sqlite3_step(cursor.steps);
    if (code == SQLITE_DONE) {
      cursor.rows.reset();
      return SQLITE_OK;
    }
    if (code != SQLITE_ROW) return code;
    cursor.rows = sourceOf(&cursor.base).unpack(cursor.steps);
    if (!cursor.rows) return SQLITE_CORRUPT_VTAB;
  }
  return SQLITE_OK;
}

int connect(sqlite3* db, void* source, int, const char* const*, sqlite3_vtab** out, char**) {
  const auto* const from = static_cast<const PackedTable*>(source);
  const int code = sqlite3_declare_vtab(db, from->columns);
  if (code != SQLITE_OK) return code;
  auto* table = new (std::nothrow) PackedVtab;
  if (!table) return SQLITE_NOMEM;
  table->db = db;
  table->source = from;
  *out = &table->base;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete reinterpret_cast<PackedVtab*>(table);
  return SQLITE_OK;
}

int bestIndex(sqlite3_vtab*, sqlite3_index_info* info) {
  // Every step is read and unpacked: dearer than looking up each row of `steps` and asking for its rows.
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
  auto* cursor = new (std::nothrow) PackedCursor;
  if (!cursor) return SQLITE_NOMEM;
  *out = &cursor->base;
  return SQLITE_OK;
}

int closeCursor(sqlite3_vtab_cursor* base) {
  auto* cursor = reinterpret_cast<PackedCursor*>(base);
  sqlite3_finalize(cursor->steps);
  delete cursor;
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* base, int index, const char*, int count, sqlite3_value** values) {
  auto* cursor = reinterpret_cast<PackedCursor*>(base);
  cursor->rowId = 0;
  const bool one = index == kOneStep && count == 1;
  if (!cursor->steps || cursor->one != one) {
    sqlite3_finalize(cursor->steps);
    cursor->steps = nullptr;
    cursor->one = one;
    const char* const sql = one ? sourceOf(base).one : sourceOf(base).all;
    const int code = sqlite3_prepare_v2(reinterpret_cast<PackedVtab*>(base->pVtab)->db, sql, -1, &cursor->steps, nullptr);
    if (code != SQLITE_OK) return code;
  } else {
    sqlite3_reset(cursor->steps);  // a join asks once for each step
  }
  if (one) sqlite3_bind_value(cursor->steps, 1, values[0]);
  return loadStep(*cursor);
}

int nextRow(sqlite3_vtab_cursor* base) {
  auto* cursor = reinterpret_cast<PackedCursor*>(base);
  ++cursor->rowId;
  return ++cursor->at < cursor->rows->size() ? SQLITE_OK : loadStep(*cursor);
}

int atEnd(sqlite3_vtab_cursor* base) { return reinterpret_cast<PackedCursor*>(base)->rows ? 0 : 1; }

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int index) {
  const auto* cursor = reinterpret_cast<PackedCursor*>(base);
  cursor->rows->column(cursor->at, index, context);
  return SQLITE_OK;
}

int rowId(sqlite3_vtab_cursor* base, sqlite3_int64* out) {
  *out = reinterpret_cast<PackedCursor*>(base)->rowId;
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

Status registerPackedTable(const Connection& connection, const PackedTable& table) {
  const int code = sqlite3_create_module(connection.handle(), table.name, &kModule, const_cast<PackedTable*>(&table));
  if (code != SQLITE_OK) return tl::make_unexpected(sqliteError(connection.handle(), code));
  // Declares the columns now: the authorizer of user queries forbids every declaration.
  const auto declared = connection.prepare(fmt::format("SELECT step_id FROM {}", table.name));
  if (!declared) return tl::make_unexpected(declared.error());
  return {};
}

}  // namespace stepscope::storage
