// What `train` does when a number of a step is not finite.
#include <gtest/gtest.h>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

// The rate throws the parameters out of range with the first update.
const std::string kDiverging = "train " SS_SAMPLES "/digits/model.onnx --lr 1e30 --steps 6 ";

std::size_t countOf(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(BreakOn, GoesOnAndTellsOfTheFirstByDefault) {
  const TemporaryFolder folder;
  const Answer answer = run(kDiverging, folder.path());
  EXPECT_EQ(answer.exitCode, 1) << "the last loss is not finite:\n" << answer.text;
  EXPECT_EQ(countOf(answer.text, "warning: step 1: "), 1u) << answer.text;
  EXPECT_NE(answer.text.find(", made by "), std::string::npos) << answer.text;
}

TEST(BreakOn, EndsTheRunWhereItIsAskedTo) {
  const TemporaryFolder folder;
  const Answer answer = run(kDiverging + "--break-on nan,inf", folder.path());
  EXPECT_EQ(answer.exitCode, 1) << answer.text;
  EXPECT_NE(answer.text.find("error: step 1: "), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find(", made by "), std::string::npos) << answer.text;
}

// A program follows the place without reading the sentence.
TEST(BreakOn, ItsPlaceIsInFieldsToo) {
  const TemporaryFolder folder;
  const Answer answer =
      run("train " SS_SAMPLES "/nan/model.onnx --data " SS_SAMPLES "/nan/batches.npz --steps 41 --break-on nan --json",
          folder.path());
  EXPECT_EQ(answer.exitCode, 1) << answer.text;
  const std::size_t at = answer.text.find(R"("event":"warning")");
  ASSERT_NE(at, std::string::npos) << answer.text;
  const std::size_t begin = answer.text.rfind('\n', at) + 1;
  const std::string line = answer.text.substr(begin, answer.text.find('\n', at) - begin);
  for (const char* field : {R"("code":"nan")", R"("step":40)", R"("row":3)", R"("instruction":0)", R"("value":)"})
    EXPECT_NE(line.find(field), std::string::npos) << field << " in " << line;
}

TEST(BreakOn, LooksForNothingWhenItIsOff) {
  const TemporaryFolder folder;
  const Answer answer = run(kDiverging + "--break-on off", folder.path());
  EXPECT_EQ(answer.exitCode, 1) << "the last loss is not finite:\n" << answer.text;
  EXPECT_EQ(countOf(answer.text, "warning: step"), 0u) << answer.text;
  EXPECT_EQ(run(kDiverging + "--break-on sometimes", folder.path()).exitCode, 2);
}

// Programs read what a size, a switch and a choice are.
TEST(Options, TellTheirChoicesGroupAndKindAsJson) {
  const TemporaryFolder folder;
  const Answer answer = run("options --json", folder.path());
  EXPECT_EQ(answer.exitCode, 0);
  EXPECT_NE(answer.text.find(R"("choices":["sgd","adam","adamw","lamb"])"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find(R"("event":"option")"), std::string::npos);
  EXPECT_NE(answer.text.find(R"("kind":"bytes")"), std::string::npos);
  EXPECT_NE(answer.text.find(R"("group":"Memory")"), std::string::npos);
}

TEST(Options, TakeSizesWithTheirUnit) {
  const TemporaryFolder folder;
  const Answer sizes =
      run(kDiverging + "--lr 0.01 --set memory.limit=2.8GiB --set 'recompute.budget=755 MiB'", folder.path());
  EXPECT_EQ(sizes.exitCode, 0) << sizes.text;
  const Answer wrong = run(kDiverging + "--set memory.limit=2.8Gigs", folder.path());
  EXPECT_EQ(wrong.exitCode, 2);
  EXPECT_NE(wrong.text.find("2.8Gigs"), std::string::npos) << wrong.text;
}

// What it finds changes nothing of what the step computes.
TEST(BreakOn, LookingChangesNoLoss) {
  const TemporaryFolder folder;
  const std::string train =
      "train " SS_SAMPLES "/digits/model.onnx --data " SS_SAMPLES "/digits/batches.npz --steps 5 --json ";
  const auto losses = [](const std::string& text) {
    std::string all;
    for (std::size_t at = text.find("\"loss\":"); at != std::string::npos; at = text.find("\"loss\":", at + 1))
      all += text.substr(at, text.find_first_of(",}", at) - at) + ' ';
    return all;
  };
  const std::string with = losses(run(train, folder.path()).text);
  EXPECT_FALSE(with.empty());
  EXPECT_EQ(with, losses(run(train + "--break-on off", folder.path()).text));
}

}  // namespace
}  // namespace stepscope::testing
