// Commands of the laboratory as a user runs them: gradcheck, memory, capacity for another machine, decisions of a batch.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/cli/program.h"
#include "tests/app/cli/samples.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

std::vector<nlohmann::json> eventsOfKind(const std::string& text, const std::string& kind) {
  std::vector<nlohmann::json> events;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("{"))
      if (auto event = nlohmann::json::parse(line); event["event"] == kind) events.push_back(std::move(event));
  return events;
}

// A script sees what failed, not an exit code alone.
TEST(CompareCommand, ACheckThatFailsSaysWhereTheRunsPart) {
  const TemporaryFolder folder;
  const auto project = folder.path() / "p.stepscope";
  const std::string train = "train " + kDigitsWithData + "--steps 3 --project " + project.string();
  ASSERT_EQ(run(train, folder.path()).exitCode, 0);
  ASSERT_EQ(run(train + " --lr 0.5", folder.path()).exitCode, 0);
  const std::string compare = "compare " + project.string();
  for (const char* json : {"", " --json"}) {
    const Answer checked = run(compare + " 1 2 --check" + json, folder.path());
    EXPECT_EQ(checked.exitCode, 1);
    EXPECT_NE(checked.text.find("compare: runs 1 and 2 part in step 1, "), std::string::npos) << checked.text;
    EXPECT_NE(checked.text.find("expected no difference above rtol 1e-05, atol 1e-08"), std::string::npos) << checked.text;
  }
  const Answer same = run(compare + " 1 1 --check", folder.path());
  EXPECT_EQ(same.exitCode, 0);
  EXPECT_EQ(same.text.find("expected"), std::string::npos) << same.text;
}

TEST(GradcheckCommand, ComparesRulesWithFiniteDifferences) {
  const TemporaryFolder folder;
  const Answer text = run("gradcheck " + kDigitsWithData + "--node Relu", folder.path());
  EXPECT_NE(text.text.find("norm of its gradient: of a probe"), std::string::npos) << text.text;
  EXPECT_EQ(text.exitCode, 0) << text.text;
  EXPECT_NE(text.text.find("agree with finite differences in float64, 0 differ"), std::string::npos) << text.text;
  const Answer json = run("gradcheck " + kDigitsWithData + "--node Relu --json", folder.path());
  ASSERT_EQ(json.exitCode, 0) << json.text;
  const auto nodes = eventsOfKind(json.text, "gradcheck");
  ASSERT_FALSE(nodes.empty()) << json.text;
  for (const auto& node : nodes) {
    EXPECT_EQ(node["verdict"], "agrees") << node;
    ASSERT_FALSE(node["inputs"].empty()) << node;
    EXPECT_LT(node["inputs"][0]["error"].get<double>(), 1e-4) << node;
  }
  EXPECT_EQ(eventsOfKind(json.text, "gradchecks").at(0)["agreed"], nodes.size());
  EXPECT_EQ(run("gradcheck " + kDigitsWithData + "--node nowhere", folder.path()).exitCode, 1);
}

// A pixel of step 40 is NaN: no slope there says that a rule is wrong, or right.
TEST(GradcheckCommand, ChecksNothingWhereNumbersAreNaN) {
  const TemporaryFolder folder;
  const std::string nan = SS_SAMPLES "/nan/model.onnx --data " SS_SAMPLES "/nan/batches.npz --start-step 40 ";
  const Answer json = run("gradcheck " + nan + "--json", folder.path());
  EXPECT_EQ(json.exitCode, 1) << json.text;
  const auto nodes = eventsOfKind(json.text, "gradcheck");
  ASSERT_FALSE(nodes.empty()) << json.text;
  for (const auto& node : nodes) {
    EXPECT_EQ(node["verdict"], "unchecked") << node;
    EXPECT_NE(node["note"].get<std::string>().find("holds NaN"), std::string::npos) << node;
  }
  EXPECT_EQ(eventsOfKind(json.text, "gradchecks").at(0)["differed"], 0);
  EXPECT_EQ(eventsOfKind(json.text, "error").size(), 1U) << json.text;
  const Answer text = run("gradcheck " + nan, folder.path());
  EXPECT_NE(text.text.find("0 differ, " + std::to_string(nodes.size()) + " unchecked"), std::string::npos) << text.text;
  // A note stands on a line of its own.
  EXPECT_EQ(text.text.find("\\n"), std::string::npos) << text.text;
  // Nor do they count as statistics of the first batch.
  EXPECT_EQ(run("train " + nan, folder.path()).text.find("already count the first batch"), std::string::npos);
}

TEST(MemoryCommand, SetsWhatIsTouchedBesideWhatIsPlanned) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string();
  const Answer answer = run("memory " + kDigitsWithData + "--json --project " + project, folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  std::int64_t measured = 0;
  for (const auto& buffer : eventsOfKind(answer.text, "buffer")) {
    EXPECT_LE(buffer["measured_bytes"], buffer["bytes"]) << buffer;
    measured += buffer["measured_bytes"].get<std::int64_t>();
  }
  EXPECT_GT(measured, 0);
  EXPECT_EQ(eventsOfKind(answer.text, "memory").at(0)["measured_bytes"], measured);
  const Answer rows = run("sql " + project + " 'SELECT SUM(measured_bytes) FROM buffers' --json", folder.path());
  EXPECT_EQ(eventsOfKind(rows.text, "row").at(0)["values"].at(0), measured) << rows.text;
  EXPECT_NE(run("memory " + kDigitsWithData + "--most 3", folder.path()).text.find("3 of "), std::string::npos);
  // Nothing of a GPU's memory is known, which is not nothing.
  const Answer gpu = run("memory " + kDigitsWithData + "--device emulated", folder.path());
  EXPECT_EQ(gpu.exitCode, 1) << gpu.text;
  EXPECT_NE(gpu.text.find("memory: device 'emulated': none of"), std::string::npos) << gpu.text;
}

// What doctor writes on one machine is what capacity reads on another.
TEST(CapacityCommand, TakesTheFileThatDoctorWrote) {
  const TemporaryFolder folder;
  const Answer doctor = run("doctor --json", folder.path());
  ASSERT_EQ(doctor.exitCode, 0) << doctor.text;
  const auto machine = eventsOfKind(doctor.text, "machine").at(0);
  const auto file = folder.write("machine.json", machine.dump());
  const Answer there = run("capacity " + kDigits + " --vary batch=4..4 --json --machine " + file.string(), folder.path());
  ASSERT_EQ(there.exitCode, 0) << there.text;
  const auto summary = eventsOfKind(there.text, "capacity_largest").at(0);
  EXPECT_EQ(summary["memory_bytes"], machine["memory_bytes"]) << summary;
  EXPECT_EQ(summary["machine"], file.string());
  EXPECT_GT(eventsOfKind(there.text, "capacity").at(0)["predicted_ns"].get<double>(), 0);
  const auto wrong = folder.write("wrong.json", "{}");
  const Answer refused = run("capacity " + kDigits + " --machine " + wrong.string(), folder.path());
  EXPECT_EQ(refused.exitCode, 2) << refused.text;
  EXPECT_NE(refused.text.find("peak: found nothing; expected an object"), std::string::npos) << refused.text;
}

TEST(RowsChoiceCommand, StandsInStepsAndRows) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string();
  const Answer answer = run("train " SS_SAMPLES "/padding/model.onnx --data " SS_SAMPLES
                            "/padding/batches.npz --set pass.sparse_labels=on --steps 2 "
                            "--json --project " +
                                project,
                            folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  for (const auto& step : eventsOfKind(answer.text, "step")) {
    ASSERT_TRUE(step.contains("densities")) << step;
    EXPECT_FALSE(step["densities"][0]["decision"].get<std::string>().empty()) << step;
    EXPECT_LE(step["densities"][0]["computed"], step["densities"][0]["total"]) << step;
    EXPECT_TRUE(step["flight_ns"].is_number_integer()) << step;
  }
  const Answer rows =
      run("sql " + project + " \"SELECT COUNT(*) FROM batch_densities WHERE decision <> ''\" --json", folder.path());
  EXPECT_EQ(eventsOfKind(rows.text, "row").at(0)["values"].at(0), 2) << rows.text;
}

}  // namespace
}  // namespace stepscope::testing
