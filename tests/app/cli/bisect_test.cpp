// `stepscope bisect` as a user runs it: what it prints, what it writes, what it refuses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kBisect = "bisect " SS_SAMPLES "/digits/model.onnx --data " SS_SAMPLES "/digits/batches.npz ";

nlohmann::json reportIn(const Answer& answer) {
  std::istringstream lines(answer.text);
  for (std::string text; std::getline(lines, text);)
    if (text.starts_with("{"))
      if (auto event = nlohmann::json::parse(text); event["event"] == "bisect") return event;
  return {};
}

TEST(BisectCommand, FindsNothingWhereNothingIsWrong) {
  const TemporaryFolder folder;
  const auto part = folder.path() / "part.onnx";
  const Answer answer = run(kBisect + "-o " + part.string(), folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  EXPECT_NE(answer.text.find("it computes what the reference computes"), std::string::npos) << answer.text;
  EXPECT_FALSE(std::filesystem::exists(part));
}

TEST(BisectCommand, NamesTheOptionAndWritesAPartThatRuns) {
  const TemporaryFolder folder;
  const auto part = folder.path() / "part.onnx", data = folder.path() / "part.safetensors";
  const Answer answer = run(kBisect + "--precision bf16 --json -o " + part.string(), folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  const nlohmann::json found = reportIn(answer);
  ASSERT_TRUE(found.is_object()) << answer.text;
  EXPECT_TRUE(found["differs"]);
  ASSERT_EQ(found["options"].size(), 1u) << found;
  EXPECT_EQ(found["options"][0]["option"], "precision");
  EXPECT_EQ(found["options"][0]["reference"], "fp32");
  ASSERT_TRUE(found["shown"]) << found;
  EXPECT_GT(found["shown_error"].get<double>(), 1e-3);
  EXPECT_EQ(found["file"], part.string());
  EXPECT_EQ(found["data"], data.string());
  const Answer rerun = run("run " + part.string() + " --data " + data.string(), folder.path());
  EXPECT_EQ(rerun.exitCode, 0) << rerun.text;
}

TEST(BisectCommand, RefusesWhatIsNoSetting) {
  const TemporaryFolder folder;
  for (const char* wrong : {"--reference kernels", "--tolerance 2", "-o part.txt"})
    EXPECT_EQ(run(kBisect + wrong, folder.path()).exitCode, 2) << wrong;
  const Answer answer = run(kBisect + "--reference lr=1", folder.path());
  EXPECT_EQ(answer.exitCode, 1) << answer.text;
  EXPECT_NE(answer.text.find("changes what is computed"), std::string::npos) << answer.text;
}

}  // namespace
}  // namespace stepscope::testing
