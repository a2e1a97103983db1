// `--save` and `--resume`: ten steps are five and five, bit for bit, whatever is in flight between them.
#include <gtest/gtest.h>

#include "engine/data/safetensors.h"
#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kTrain = "train " SS_SAMPLES "/digits/model.onnx --data " SS_SAMPLES "/digits/batches.npz --threads 2 ";

class Resume : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Resume, TenStepsAreFiveAndFive) {
  const TemporaryFolder folder;
  const std::string here = folder.path().string() + "/", options = kTrain + GetParam().second;
  const auto steps = [&](const std::string& more) {
    const Answer answer = run(options + " --json " + more, folder.path());
    EXPECT_EQ(answer.exitCode, 0) << answer.text;
    std::string losses;  // the step lines up to their times
    std::istringstream lines(answer.text);
    for (std::string line; std::getline(lines, line);)
      if (const auto at = line.find("\"loss\":"); at != std::string::npos)
        losses += line.substr(at, line.find(',', at) - at) + "\n";
    return losses;
  };
  const std::string whole = steps("--steps 10 --save " + here + "whole --dump-params " + here + "whole_parameters");
  const std::string first = steps("--steps 5 --save " + here + "half");
  const std::string second = steps("--steps 5 --init-from " + here + "half --resume --save " + here + "both --dump-params " +
                                   here + "both_parameters");
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 10) << whole;
  EXPECT_EQ(first + second, whole);
  EXPECT_EQ(contents(folder.path() / "both"), contents(folder.path() / "whole"));
  EXPECT_EQ(contents(folder.path() / "both_parameters"), contents(folder.path() / "whole_parameters"));
}

INSTANTIATE_TEST_SUITE_P(With, Resume,
                         ::testing::Values(std::pair("MomentumInMidAccumulation",
                                                     "--optimizer sgd --lr 0.05 --momentum 0.9 --nesterov --accumulate 3 "
                                                     "--lr-schedule cosine --warmup-steps 2 --total-steps 4"),
                                           std::pair("AdamWWithClippingAndSchedule",
                                                     "--optimizer adamw --lr 0.01 --accumulate 2 --clip-grad-norm 0.5 "
                                                     "--lr-schedule linear --total-steps 6 --group bias:weight_decay=0"),
                                           std::pair("Lamb", "--optimizer lamb --lr 0.01 --weight-decay 0.1")),
                         [](const auto& info) { return std::string(info.param.first); });

TEST(OrtQuirks, Q27_ACheckpointBringsTheScheduleBackAndANewerOneIsRefusedReadably) {
  const TemporaryFolder folder;
  const std::string state = (folder.path() / "state").string(),
                    options = kTrain + "--lr 0.5 --lr-schedule linear --total-steps 10 ";
  ASSERT_EQ(run(options + "--steps 4 --save " + state, folder.path()).exitCode, 0);
  const Answer resumed = run(options + "--steps 1 --init-from " + state + " --resume", folder.path());
  EXPECT_NE(resumed.text.find("step      4"), std::string::npos) << resumed.text;
  EXPECT_NE(resumed.text.find("lr 0.3 "), std::string::npos) << resumed.text;  // 0.5 (10 - 4) / 10
  auto file = readSafetensors(state);
  ASSERT_TRUE(file.has_value());
  std::map<std::string, TensorView> tensors;
  for (const auto& [name, tensor] : file->tensors) tensors[name] = tensor.view();
  file->metadata["stepscope.version"] = "2";
  ASSERT_TRUE(writeSafetensors(state, tensors, file->metadata).has_value());
  const Answer newer = run(options + "--init-from " + state + " --resume", folder.path());
  EXPECT_EQ(newer.exitCode, 1);
  EXPECT_NE(newer.text.find("version 2; this build reads up to 1"), std::string::npos) << newer.text;
}

}  // namespace
}  // namespace stepscope::testing
