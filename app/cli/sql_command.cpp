#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "storage/project.h"
#include "storage/sql.h"

namespace stepscope::cli {

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
                   {"--json", &a->json, "one JSON array per row, the first with the column names"}}};
  command.run = [a] {
    auto project = storage::Project::openReadOnly(a->project);
    if (!project) return fmt::print(stderr, "error: {}\n", project.error().message), kFailed;
    auto result = storage::runSql(*project, a->sql);
    if (!result) return fmt::print(stderr, "error: {}\n", result.error().message), kFailed;
    std::vector<std::vector<std::string>> rows;
    for (const auto& row : result->rows) {
      rows.emplace_back();
      for (const auto& cell : row) rows.back().push_back(storage::sqlCellText(cell));
    }
    if (a->json) {
      const auto print = [](const auto& row) {
        fmt::print("{}\n", nlohmann::json(row).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      };
      print(result->columns);
      for (const auto& row : rows) print(row);
    } else {
      fmt::print("{}", table(result->columns, rows, result->columns.size()));
      if (result->truncated) fmt::print(stderr, "warning: more rows than shown ({})\n", rows.size());
    }
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
