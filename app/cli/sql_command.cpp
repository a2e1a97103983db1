#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_project.h"
#include "app/cli/output.h"
#include "app/cli/terminal.h"
#include "storage/sql.h"

namespace stepscope::cli {

namespace {

using Json = nlohmann::json;

// Numbers stay numbers, NULL is null; what JSON cannot hold says what it is.
Json json(const storage::SqlCell& cell) {
  struct Visitor {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(std::int64_t value) const { return value; }
    Json operator()(double value) const { return value; }
    Json operator()(const std::string& value) const { return value; }
    Json operator()(storage::SqlBlob value) const { return {{"blob_bytes", value.bytes}}; }
  };
  return std::visit(Visitor{}, cell);
}

}  // namespace

Command sqlCommand() {
  struct Arguments {
    std::string project, sql;
    bool json = false;
  };
  auto a = std::make_shared<Arguments>();
  Command command{"sql",
                  "a reading SQL statement over a project file",
                  {{"PROJECT", &a->project, "project file", {}, true},
                   {"SQL", &a->sql, "SELECT …", {}, true},
                   {"--json", &a->json,
                    "one JSON object per line: columns, a row each, done with their number and whether there were more"}}};
  command.run = [a] {
    const auto project = openProject(a->project);
    if (!project) return kFailed;
    auto result = storage::runSql(*project, a->sql);
    if (!result) return tellError(result.error().message);
    if (a->json) {
      sayJson({{"event", "columns"}, {"columns", result->columns}});
      for (const auto& row : result->rows) {
        Json values = Json::array();
        for (const auto& cell : row) values.push_back(json(cell));
        sayJson({{"event", "row"}, {"values", std::move(values)}});
      }
      sayJson({{"event", "done"}, {"rows", result->rows.size()}, {"cut", result->truncated}, {"ns", result->time.count()}});
      return kSuccess;
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& row : result->rows) {
      rows.emplace_back();
      for (const auto& cell : row)
        rows.back().push_back(std::holds_alternative<std::monostate>(cell) ? "NULL" : storage::sqlCellText(cell));
    }
    say("{}", table(result->columns, rows, result->columns.size()));
    if (result->truncated)
      tellWarning("cut", fmt::format("more rows than shown ({}); narrow the query with WHERE or LIMIT", rows.size()));
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
