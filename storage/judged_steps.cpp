#include "storage/judged_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/standing_rows.h"

namespace stepscope::storage {
namespace {
constexpr int kFirstVersion = 5;  // of the schema, that has the column stopped_in
constexpr int kFirstSpeeds = 6;   // and speed
}  // namespace

std::string_view stoppedIn(int version) {
  return version < kFirstVersion ? "(run, step) IN (SELECT run, step FROM alerts WHERE code = 'stopped')" : "stopped_in";
}

std::string_view processorAndSpeed(int version) {
  return version < kFirstSpeeds
             ? "0, 0, CASE WHEN id IN (SELECT step_id FROM step_spans) THEN 'recorded' ELSE 'full speed' END"
             : "cpu_ns, wait_ns, speed";
}

Status makeJudgedSteps(const Connection& connection, int version, bool reader) {
  const std::string_view ranThrough =
      version < kFirstSpeeds ? ""
                             : " AND (speed != 'walked' OR run NOT IN (SELECT run FROM main.steps WHERE id IN standing AND "
                               "speed != 'walked' AND stopped_in = 0 AND warm_up = 0))";
  const std::string view = fmt::format(
      "CREATE TEMP VIEW judged_steps AS WITH standing AS MATERIALIZED {} SELECT * FROM main.steps WHERE id IN standing AND "
      "NOT {} AND (warm_up = 0 OR run NOT IN (SELECT run FROM main.steps WHERE id IN standing AND warm_up = 0)){};",
      standingStepsOfAll(version), stoppedIn(version), ranThrough);
  // The definition lies in memory, but SQLite counts it as writing.
  return connection.execute(
      reader ? fmt::format("PRAGMA temp_store = MEMORY; PRAGMA query_only = OFF; {} PRAGMA query_only = ON;", view) : view);
}

Table judgedStepsTable() {
  const auto& all = tables();
  Table table = *std::find_if(all.begin(), all.end(), [](const Table& t) { return t.name == "steps"; });
  table.name = "judged_steps";
  table.doc =
      "The steps that stand and whose ns says how fast a step is: nobody stopped in them, and they are neither warm-up nor "
      "walked as long "
      "as "
      "the run has others.";
  return table;
}

}  // namespace stepscope::storage
