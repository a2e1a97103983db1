// `--save` and `--resume`: ten steps are five and five, bit for bit, whatever is in flight between them.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/data/safetensors.h"
#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kTwoThreads =
    "train " SS_SAMPLES "/digits/model.onnx --data " SS_SAMPLES "/digits/batches.npz --threads 2 ";

class Resume : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Resume, TenStepsAreFiveAndFive) {
  const TemporaryFolder folder;
  const std::string here = folder.path().string() + "/", options = kTwoThreads + GetParam().second;
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
  EXPECT_EQ(steps("--steps 5 --start-state " + here + "half"), second) << "the option begins where --resume does";
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

// The numbers of --json under `key`, one per step.
std::vector<std::string> stepsOf(const std::string& arguments, const std::string& key, const std::filesystem::path& folder) {
  const Answer answer = run(arguments + " --json", folder);
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  std::vector<std::string> numbers;
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with('{'))
      if (const auto event = nlohmann::json::parse(line); event["event"] == "step") numbers.push_back(event[key].dump());
  return numbers;
}

TEST(StartStep, IsThePlaceInDataAndScheduleButNotTheAgeOfTheMoments) {
  const TemporaryFolder folder;
  const std::string here = folder.path().string() + "/",
                    options =
                        kTwoThreads +
                        "--optimizer adam --lr 0.01 --accumulate 2 --lr-schedule linear --warmup-steps 2 --total-steps 10 ";
  const auto whole = stepsOf(options + "--steps 12", "learning_rate", folder.path());
  ASSERT_EQ(whole.size(), 12u);
  const std::vector<std::string> rest(whole.begin() + 6, whole.end());
  EXPECT_NE(rest.front(), whole.front());
  EXPECT_EQ(stepsOf(options + "--start-step 6 --steps 6", "learning_rate", folder.path()), rest);
  EXPECT_EQ(stepsOf(options + "--start-step 6 --steps 2 --save " + here + "half", "step", folder.path()),
            (std::vector<std::string>{"6", "7"}));
  const std::vector<std::string> end(whole.begin() + 8, whole.end());
  EXPECT_EQ(stepsOf(options + "--steps 4 --init-from " + here + "half --resume", "learning_rate", folder.path()), end)
      << "a resumed run knows where it began";
  // Adam's correction counts the updates that made the moments: the first one moves every weight by the learning rate.
  ASSERT_EQ(run(kTwoThreads + "--optimizer adam --lr 0.01 --eps 1e-12 --start-step 1000 --dump-params " + here + "later",
                folder.path())
                .exitCode,
            0);
  ASSERT_EQ(run(kTwoThreads + "--lr 0 --dump-params " + here + "before", folder.path()).exitCode, 0);
  const auto before = readSafetensors(here + "before"), later = readSafetensors(here + "later");
  ASSERT_TRUE(before.has_value() && later.has_value());
  EXPECT_NEAR(std::abs(later->tensors.at("head.bias").as<float>()[0] - before->tensors.at("head.bias").as<float>()[0]),
              0.01F, 1e-5F);
}

// Without a length of its own a schedule ends with the run: at its start step and its steps.
TEST(Resume, AScheduleEndsWithTheRunThatGoesOn) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "half").string(), options = kTwoThreads + "--lr 0.5 --lr-schedule linear ";
  const auto rates = [&](const std::string& more) {
    std::vector<double> numbers;
    for (const std::string& text : stepsOf(options + more, "learning_rate", folder.path()))
      numbers.push_back(std::stod(text));
    return numbers;
  };
  const auto expect = [](const std::vector<double>& found, int first, int end) {
    ASSERT_EQ(found.size(), static_cast<std::size_t>(end - first));
    for (int k = first; k < end; ++k)
      EXPECT_NEAR(found[static_cast<std::size_t>(k - first)], 0.5 * (end - k) / end, 1e-6) << "step " << k;
  };
  expect(rates("--steps 5 --save " + file), 0, 5);
  expect(rates("--steps 4 --init-from " + file + " --resume"), 5, 9);
  expect(rates("--steps 4 --start-state " + file), 5, 9);
  expect(rates("--steps 4 --start-step 5"), 5, 9);
}

TEST(InitFrom, TellsWhatTheFileLacks) {
  const TemporaryFolder folder;
  const std::string here = folder.path().string() + "/", whole = here + "whole", part = here + "part";
  ASSERT_EQ(run(kTwoThreads + "--steps 1 --save " + whole, folder.path()).exitCode, 0);
  EXPECT_EQ(run(kTwoThreads + "--init-from " + whole, folder.path()).text.find("no parameter"), std::string::npos);
  auto file = readSafetensors(whole);
  ASSERT_TRUE(file.has_value());
  std::map<std::string, TensorView> tensors;
  for (const auto& [name, tensor] : file->tensors)
    if (name != "head.bias") tensors[name] = tensor.view();
  ASSERT_TRUE(writeSafetensors(part, tensors, file->metadata).has_value());
  const Answer partial = run(kTwoThreads + "--init-from " + part, folder.path());
  EXPECT_EQ(partial.exitCode, 0);
  EXPECT_NE(partial.text.find("no parameter 'head.bias'; what the model has is trained from"), std::string::npos)
      << partial.text;
  const Answer other = run(kTwoThreads + "--optimizer adam --resume --init-from " + whole, folder.path());
  EXPECT_EQ(other.exitCode, 0);
  EXPECT_NE(other.text.find("no optimizer state '"), std::string::npos) << other.text;
  EXPECT_NE(other.text.find(".exp_avg'"), std::string::npos) << other.text;
}

TEST(Save, NeedsNoStep) {
  const TemporaryFolder folder;
  const std::string here = folder.path().string() + "/";
  ASSERT_EQ(run(kTwoThreads + "--steps 0 --save " + here + "start", folder.path()).exitCode, 0);
  ASSERT_EQ(run(kTwoThreads + "--steps 3 --dump-params " + here + "a", folder.path()).exitCode, 0);
  ASSERT_EQ(run(kTwoThreads + "--steps 3 --init-from " + here + "start --resume --dump-params " + here + "b", folder.path())
                .exitCode,
            0);
  EXPECT_EQ(contents(folder.path() / "a"), contents(folder.path() / "b"));
}

TEST(OrtQuirks, Q27_ACheckpointBringsTheScheduleBackAndANewerOneIsRefusedReadably) {
  const TemporaryFolder folder;
  const std::string state = (folder.path() / "state").string(),
                    options = kTwoThreads + "--lr 0.5 --lr-schedule linear --total-steps 10 ";
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
