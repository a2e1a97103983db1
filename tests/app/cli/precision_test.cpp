// `stepscope precision`: a table for people, one event per line for programs.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kStudy = "precision " + std::string(SS_SAMPLES) + "/digits/model.onnx --data " + SS_SAMPLES +
                           "/digits/batches.npz --timed 1 --measure 1";

TEST(PrecisionCommand, PrintsClassesGradientsNodesAndCost) {
  const TemporaryFolder folder;
  const Answer answer = run(kStudy, folder.path());
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  for (const char* part : {"bf16 against fp32", "near overflow", "cosine", "--set precision.force=", ":fp32", "arena"})
    EXPECT_NE(answer.text.find(part), std::string::npos) << part << "\n" << answer.text;
}

TEST(PrecisionCommand, TellsTheSameAsEvents) {
  const TemporaryFolder folder;
  const Answer answer = run(kStudy + " --precision fp16 --json", folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  std::map<std::string, int> counts;
  nlohmann::json last;
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);) {
    last = nlohmann::json::parse(line);
    const std::string event = last["event"];
    ++counts[event];
    if (event == "precision_step") {
      EXPECT_EQ(last["precision"], "fp16");
      EXPECT_GT(last["loss_scale"].get<double>(), 1);
    }
    if (event == "precision_class") {
      std::int64_t elements = last["zeros"].get<std::int64_t>() + last["not_finite"].get<std::int64_t>();
      for (const auto& bin : last["exponents"]) elements += bin["elements"].get<std::int64_t>();
      EXPECT_EQ(elements, last["elements"].get<std::int64_t>());
    }
    if (event == "precision_gradient") EXPECT_GT(last["cosine"].get<double>(), 0.9);
    if (event == "precision_node" && last["measured"] == true) {
      ++counts["measured"];
      EXPECT_TRUE(last["error_with_override"].is_number());
      EXPECT_TRUE(last["error"].is_number());
    }
    if (event == "precision_cost") {
      EXPECT_GT(last["bytes_before"].get<std::int64_t>(), 0);
      EXPECT_GT(last["bytes_after"].get<std::int64_t>(), 0);
      EXPECT_GT(last["ns_before"].get<double>(), 0);
    }
  }
  EXPECT_EQ(last["event"], "done");
  for (const char* event : {"precision_step", "precision_cost", "done", "measured"}) EXPECT_EQ(counts[event], 1) << event;
  for (const char* event : {"precision_class", "precision_gradient", "precision_node"}) EXPECT_GT(counts[event], 2) << event;
}

// NaN in both precisions is no agreement.
TEST(PrecisionCommand, SaysThatAStepThatIsNotFiniteTellsNothing) {
  const TemporaryFolder folder;
  const std::string samples = SS_SAMPLES, nan = samples + "/nan/batches.npz --start-step 40";
  const Answer answer = run("precision " + samples + "/nan/model.onnx --timed 1 --measure 0 --data " + nan, folder.path());
  EXPECT_NE(answer.text.find("loss of step 40 in fp32: nan; expected a finite number"), std::string::npos) << answer.text;
  EXPECT_EQ(run(kStudy, folder.path()).text.find("expected a finite number"), std::string::npos);
}

TEST(PrecisionCommand, RefusesWhatItDoesNotKnow) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& more) {
    const Answer answer = run(kStudy + more, folder.path());
    EXPECT_EQ(answer.exitCode, 2) << answer.text;
    return answer.text;
  };
  EXPECT_NE(refused(" --precision b16").find("precision 'b16': unknown; expected fp32, bf16 or fp16"), std::string::npos);
  EXPECT_NE(refused(" --set 'precision.force=(:fp32'").find("option 'precision.force'"), std::string::npos);
  const Answer measure = run("precision none.onnx --measure 65 --json", folder.path());
  EXPECT_EQ(measure.exitCode, 2);
  EXPECT_NE(measure.text.find("option 'measure': found 65; expected 0 to 64"), std::string::npos) << measure.text;
}

}  // namespace
}  // namespace stepscope::testing
