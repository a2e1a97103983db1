#include "storage/standing_rows.h"

#include <fmt/format.h>

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 16;  // of the schema, that has the table rewinds

std::string_view lastOf(std::string_view table) {
  return table == "alerts" ? "last_alert" : table == "steps" ? "last_step" : "last_statistics";
}

std::string noRewind(int version, std::string_view table, std::string_view alias, std::string_view run) {
  if (version < kFirstVersion) return "1";
  return fmt::format("NOT EXISTS (SELECT 1 FROM main.rewinds r WHERE r.run = {} AND r.step <= {}.step AND r.{} >= {}.id)",
                     run, alias, lastOf(table), alias);
}

// The step executed last. Of the newest run it is the end of the table; of others the whole run is looked through.
std::string newestStep(std::string_view run) {
  return fmt::format(
      "(SELECT step FROM main.steps WHERE id = CASE WHEN EXISTS (SELECT 1 FROM main.steps WHERE run > {0}) "
      "THEN (SELECT max(id) FROM main.steps WHERE run = {0}) "
      "ELSE (SELECT id FROM main.steps WHERE +run = {0} ORDER BY id DESC LIMIT 1) END)",
      run);
}

}  // namespace

std::string notTakenBack(int version, std::string_view table, std::string_view run) {
  const std::string newest = newestStep(run);
  const std::string known = noRewind(version, table, table, run);
  if (table == "steps") return fmt::format("steps.step <= {} AND {}", newest, known);
  // The step that goes on has no row in `steps` yet.
  return fmt::format(
      "({0}.step <= coalesce({1}, -1) + {2} OR {0}.step > (SELECT coalesce(max(step), -1) FROM steps WHERE run = {3})) AND "
      "{4}",
      table, newest, table == "alerts" ? 1 : 0, run, known);
}

std::string standingSteps(int version, std::string_view run) {
  return fmt::format("(SELECT max(id) FROM steps WHERE run = {} AND {} GROUP BY step)", run,
                     notTakenBack(version, "steps", run));
}

std::string standingStepsOfAll(int version) {
  return fmt::format(
      "(SELECT max(e.id) FROM main.steps e JOIN (SELECT run, step AS newest FROM main.steps WHERE id IN (SELECT max(id) "
      "FROM "
      "main.steps GROUP BY run)) n ON n.run = e.run WHERE e.step <= n.newest AND {} GROUP BY e.run, e.step)",
      noRewind(version, "steps", "e", "e.run"));
}

}  // namespace stepscope::storage
