// `stepscope build --recompute`: what may be computed again, judged.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kBuild =
    "build " + std::string(SS_SAMPLES) + "/language_model/model.onnx --data " + SS_SAMPLES + "/language_model/batches.npz";

TEST(RecomputeCommand, PrintsPatternsAndTheCurveOfBudgets) {
  const TemporaryFolder folder;
  const Answer answer = run(kBuild + " --recompute", folder.path());
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  for (const char* part : {"pattern", "saves", "what a budget gives", "estimated from flops and bytes"})
    EXPECT_NE(answer.text.find(part), std::string::npos) << part << "\n" << answer.text;
}

TEST(RecomputeCommand, GivesPointsThatABudgetReaches) {
  const TemporaryFolder folder;
  const Answer answer = run(kBuild + " --recompute --json", folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  std::vector<std::int64_t> peaks;
  int patterns = 0;
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    patterns += event["event"] == "recompute_pattern";
    if (event["event"] == "recompute_point") peaks.push_back(event["peak_bytes"].get<std::int64_t>());
  }
  EXPECT_GT(patterns, 1);
  ASSERT_GT(peaks.size(), 2u);
  EXPECT_TRUE(std::is_sorted(peaks.rbegin(), peaks.rend()));
  const Answer within = run(kBuild + " --set recompute.budget=" + std::to_string(peaks.back()), folder.path());
  EXPECT_EQ(within.exitCode, 0);
  EXPECT_EQ(within.text.find("of live activations are left"), std::string::npos) << within.text;
}

}  // namespace
}  // namespace stepscope::testing
