#include "storage/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "storage/schema_tables.h"

namespace stepscope::storage {

const std::vector<Table>& tables() {
  static const std::vector<Table> all = [] {
    std::vector<Table> made;
    for (auto* group : {runTables, buildTables, stepTables, studyTables})
      std::ranges::move(group(), std::back_inserter(made));
    return made;
  }();
  return all;
}

std::string createStatements(const Table& table) {
  std::string sql = fmt::format("CREATE TABLE {} (", table.name);
  bool first = true;
  for (const auto& column : table.columns) {
    sql += fmt::format("{}{} {}", first ? "" : ", ", column.name, column.type);
    first = false;
  }
  if (!table.constraint.empty()) sql += fmt::format(", {}", table.constraint);
  sql += table.withoutRowId ? ") WITHOUT ROWID;" : ");";
  int number = 0;
  for (std::string_view columns : table.indexes)
    sql += fmt::format("CREATE INDEX {}_index_{} ON {} ({});", table.name, number++, table.name, columns);
  return sql;
}

}  // namespace stepscope::storage
