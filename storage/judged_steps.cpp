#include "storage/judged_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepscope::storage {
namespace {
constexpr int kFirstVersion = 5;  // of the schema, that has the column
}

std::string_view stoppedIn(int version) {
  return version < kFirstVersion ? "(run, step) IN (SELECT run, step FROM alerts WHERE code = 'stopped')" : "stopped_in";
}

Status makeJudgedSteps(const Connection& connection, int version, bool reader) {
  const std::string view = fmt::format(
      "CREATE TEMP VIEW judged_steps AS SELECT * FROM main.steps WHERE NOT {} AND (warm_up = 0 OR run NOT IN (SELECT run "
      "FROM main.steps WHERE warm_up = 0));",
      stoppedIn(version));
  // The definition lies in memory, but SQLite counts it as writing.
  return connection.execute(
      reader ? fmt::format("PRAGMA temp_store = MEMORY; PRAGMA query_only = OFF; {} PRAGMA query_only = ON;", view) : view);
}

Table judgedStepsTable() {
  const auto& all = tables();
  Table table = *std::find_if(all.begin(), all.end(), [](const Table& t) { return t.name == "steps"; });
  table.name = "judged_steps";
  table.doc =
      "The steps whose ns says how fast a step is: nobody stopped in them, and they are not warm-up as long as the run has "
      "steps after it.";
  return table;
}

}  // namespace stepscope::storage
