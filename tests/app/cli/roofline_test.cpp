// The roofline end to end: measured, recorded, asked for with SQL, written as a report.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kSampleFolder = std::string(SS_SOURCE_DIR) + "/app/samples/digits/";

// The only cell of the answer.
int number(const std::string& project, const std::string& sql) {
  const Answer answer = run("sql " + project + " \"" + sql + "\" --json", std::filesystem::path(project).parent_path());
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  std::istringstream lines(answer.text);
  std::string columns, row;
  std::getline(lines, columns);
  std::getline(lines, row);
  return row.empty() ? -1 : nlohmann::json::parse(row)["values"][0].get<int>();
}

TEST(RooflineCommand, DoctorPrintsWhatTheMachineReaches) {
  const TemporaryFolder folder;
  const Answer answer = run("doctor", folder.path());
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  for (const char* part : {"GF/s", "core caches", "memory", "GB/s"})
    EXPECT_NE(answer.text.find(part), std::string::npos) << part << "\n" << answer.text;
  const Answer machine = run("doctor --json", folder.path());
  const auto json = nlohmann::json::parse(machine.text.substr(0, machine.text.find('\n')));
  EXPECT_GT(json["peak"]["operations_per_second"].get<double>(), 0);
  EXPECT_EQ(json["peak"]["levels"].back()["name"], "memory");
}

TEST(RooflineCommand, IsRecordedAskedForAndReported) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string();
  const std::string train = "train " + kSampleFolder + "model.onnx --data " + kSampleFolder +
                            "batches.npz --optimizer adamw --steps 4 --project " + project;
  ASSERT_EQ(run(train + " --roofline on", folder.path()).exitCode, 0);
  const int roofs =
      number(project,
             "SELECT count(*) FROM roofline r JOIN instructions i ON i.plan = r.plan AND i.position = r.position WHERE "
             "r.executions = 3 AND r.share > 0 AND r.bytes = i.bytes_read + i.bytes_written AND "
             "r.bytes = r.core_cache_bytes + r.shared_cache_bytes + r.memory_bytes");
  EXPECT_GT(roofs, 10);
  EXPECT_EQ(roofs,
            number(project, "SELECT count(*) FROM instructions WHERE is_view = 0 AND bytes_read + bytes_written > 0"));
  const std::string page = (folder.path() / "r.html").string(), table = (folder.path() / "r.roofline.csv").string();
  ASSERT_EQ(run("report " + project + " -o " + page, folder.path()).exitCode, 0);
  ASSERT_EQ(run("report " + project + " -o " + table, folder.path()).exitCode, 0);
  std::ifstream file(page);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("Most time above their roof"), std::string::npos);
  // Off by default: nothing is measured and nothing recorded.
  ASSERT_EQ(run(train, folder.path()).exitCode, 0);
  EXPECT_EQ(number(project, "SELECT count(*) FROM machine_peaks WHERE run = 2"), 0);
  EXPECT_GT(number(project, "SELECT count(*) FROM machine_peaks WHERE run = 1"), 2);
}

}  // namespace
}  // namespace stepscope::testing
