// libstepscope does what the program does: same losses, same bits; both ways, with edits, options and files.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/app/api/sessions.h"
#include "tests/app/cli/program.h"

namespace stepscope::testing {
namespace {

double step(ss_session* session) {
  auto record = sized<ss_step_record>();
  EXPECT_DONE(ss_step(session, &record));
  EXPECT_TRUE(record.has_loss);
  return record.loss;
}

std::vector<float> stateOf(ss_session* session, const char* name) {
  auto tensor = sized<ss_tensor>();
  EXPECT_DONE(ss_state(session, name, &tensor));
  return floatsOf(tensor);
}

void feed(ss_session* session, const std::vector<float>& x, const std::vector<float>& y, std::int64_t rows) {
  const std::vector<std::int64_t> dims{rows, 4};
  const ss_tensor inputs[] = {tensorOf(x, dims), tensorOf(y, dims)};
  const ss_tensor* tensors[] = {&inputs[0], &inputs[1]};
  const char* names[] = {"x", "y"};
  EXPECT_DONE(ss_feed(session, names, tensors, 2));
}

TEST(Api, TrainsToTheLossesOfTheProgram) {
  const TemporaryFolder folder;
  const Answer answer = run("train " + digits().model.string() + " --data " + digits().data.string() +
                                " --threads 2 --optimizer adamw --lr 0.01 --steps 6 --json",
                            folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  std::vector<double> expected;
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("{"))
      if (const auto event = nlohmann::json::parse(line); event.value("event", "") == "step")
        expected.push_back(event["loss"]);
  ASSERT_EQ(expected.size(), 6u) << answer.text;
  const ApiSession session = openDigits({{"optimizer", "adamw"}, {"lr", "0.01"}});
  for (const double loss : expected) EXPECT_EQ(step(session.get()), loss);
}

TEST(Api, StepsBothWaysToTheSameBits) {
  const ApiSession whole = openDigits(), byHand = openDigits();
  const double expected = step(whole.get());
  auto position = sized<ss_position>();
  ASSERT_DONE(ss_begin_step(byHand.get(), &position));
  EXPECT_EQ(position.instruction, 0);
  EXPECT_EQ(position.in_step, 1);
  const ss_instruction_info* const* instructions = nullptr;
  std::size_t count = 0;
  ASSERT_DONE(ss_instructions(byHand.get(), &instructions, &count));
  ASSERT_GT(count, 10u);
  EXPECT_STREQ(instructions[0]->phase, "forward");
  EXPECT_STREQ(instructions[count - 1]->phase, "optimizer");
  ASSERT_DONE(ss_run_to(byHand.get(), static_cast<std::int32_t>(count) - 1, &position));
  EXPECT_EQ(position.loss, expected);
  ASSERT_DONE(ss_move(byHand.get(), -static_cast<std::int32_t>(count) / 2, &position));
  EXPECT_EQ(position.instruction, static_cast<std::int32_t>(count) - 1 - static_cast<std::int32_t>(count) / 2);
  auto record = sized<ss_step_record>();
  ASSERT_DONE(ss_finish_step(byHand.get(), &record));
  EXPECT_EQ(record.loss, expected);
  const ss_value_info* const* parameters = nullptr;
  ASSERT_DONE(ss_parameters(whole.get(), &parameters, &count));
  ASSERT_GT(count, 0u);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i)
    if (parameters[i]->trained) names.emplace_back(parameters[i]->name);
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names)
    EXPECT_EQ(stateOf(whole.get(), name.c_str()), stateOf(byHand.get(), name.c_str())) << name;
}

TEST(Api, FeedsArraysOfAnyExtents) {
  const TemporaryFolder folder;
  const ApiSession session = openSession(writeLinearModel(folder), {{"optimizer", "sgd"}, {"lr", "0"}});
  for (const std::int64_t rows : {2, 3, 2}) {
    std::vector<float> x(static_cast<std::size_t>(rows) * 4), y(x.size());
    double expected = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = 0.25F * static_cast<float>(i + 1);
      y[i] = -1;
      expected += (0.5 * x[i] + 1) * (0.5 * x[i] + 1) / static_cast<double>(x.size());
    }
    feed(session.get(), x, y, rows);
    EXPECT_NEAR(step(session.get()), expected, 1e-5 * expected) << rows;
  }
}

TEST(Api, GradientIsWhatSgdSubtracts) {
  const TemporaryFolder folder;
  const ApiSession session = openSession(writeLinearModel(folder), {{"optimizer", "sgd"}, {"lr", "0.5"}});
  ASSERT_DONE(ss_keep_gradients(session.get(), 1));
  feed(session.get(), {1, 2, 3, 4}, {0, 0, 0, 0}, 1);
  step(session.get());
  auto gradient = sized<ss_tensor>();
  ASSERT_DONE(ss_gradient(session.get(), "w", &gradient));
  ASSERT_EQ(gradient.rank, 2u);
  EXPECT_EQ(gradient.dims[0], 4);
  const std::vector<float> g = floatsOf(gradient), w = stateOf(session.get(), "w");
  for (std::size_t i = 0; i < 16; ++i) {
    const float x = static_cast<float>(i / 4 + 1), y = static_cast<float>(i % 4 + 1);
    EXPECT_NEAR(g[i], 2 * x * (0.5F * y) / 4, 1e-6) << i;  // d mean(d²) / d w = xᵀ · 2 d / 4
    EXPECT_NEAR(w[i], (i % 5 == 0 ? 0.5F : 0.0F) - 0.5F * g[i], 1e-6) << i;
  }
}

TEST(Api, AnEditIsPartOfTheStep) {
  const TemporaryFolder folder;
  const ApiSession session = openSession(writeLinearModel(folder), {{"optimizer", "sgd"}, {"lr", "0"}});
  feed(session.get(), {1, 2, 3, 4}, {0, 0, 0, 0}, 1);
  auto position = sized<ss_position>();
  ASSERT_DONE(ss_begin_step(session.get(), &position));
  const std::vector<std::int64_t> dims{1, 4};
  const std::vector<float> y{1, 1, 1, 1};
  const ss_tensor contents = tensorOf(y, dims);
  ASSERT_DONE(ss_edit(session.get(), "y", &contents));
  auto record = sized<ss_step_record>();
  ASSERT_DONE(ss_finish_step(session.get(), &record));
  EXPECT_NEAR(record.loss, (0.25 + 0 + 0.25 + 1) / 4, 1e-6);
}

TEST(Api, AnOptionChangedInAPausedStepKeepsThePlace) {
  const ApiSession session = openDigits();
  auto position = sized<ss_position>();
  ASSERT_DONE(ss_begin_step(session.get(), &position));
  ASSERT_DONE(ss_move_phase(session.get(), 0, &position));
  const ss_instruction_info* const* instructions = nullptr;
  std::size_t count = 0;
  ASSERT_DONE(ss_instructions(session.get(), &instructions, &count));
  const std::string before = instructions[position.instruction]->name;
  ASSERT_DONE(ss_set(session.get(), "pass.group_updates", "off"));
  ASSERT_DONE(ss_apply(session.get()));
  ASSERT_DONE(ss_where(session.get(), &position));
  EXPECT_EQ(position.in_step, 1);
  ASSERT_DONE(ss_instructions(session.get(), &instructions, &count));
  EXPECT_EQ(instructions[position.instruction]->name, before);
  const ss_option_info* const* options = nullptr;
  ASSERT_DONE(ss_options(session.get(), &options, &count));
  const auto* option = std::find_if(options, options + count,
                                    [](const ss_option_info* o) { return std::strcmp(o->name, "pass.group_updates") == 0; });
  ASSERT_NE(option, options + count);
  EXPECT_STREQ((*option)->value, "off");
  EXPECT_STREQ((*option)->default_value, "on");
  EXPECT_STREQ((*option)->set_by, "api");
}

TEST(Api, AFedBatchStaysWhenAnOptionChanges) {
  const TemporaryFolder folder;
  const ApiSession session = openSession(writeLinearModel(folder), {{"optimizer", "sgd"}, {"lr", "0"}});
  feed(session.get(), {1, 1, 1, 1}, {0, 0, 0, 0}, 1);
  EXPECT_NEAR(step(session.get()), 0.25, 1e-6);
  ASSERT_DONE(ss_set(session.get(), "lr", "0.5"));  // of the training, not of the plan
  feed(session.get(), {3, 3, 3, 3}, {0, 0, 0, 0}, 1);
  EXPECT_NEAR(step(session.get()), 2.25, 1e-6);
}

TEST(Api, ResumesBitForBit) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "state.safetensors").string();
  const ApiSession straight = openDigits({{"optimizer", "adamw"}}), resumed = openDigits({{"optimizer", "adamw"}});
  for (int i = 0; i < 3; ++i) step(straight.get());
  ASSERT_DONE(ss_save(straight.get(), file.c_str()));
  ASSERT_DONE(ss_build(resumed.get()));
  ASSERT_DONE(ss_load(resumed.get(), file.c_str(), 1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step(straight.get()), step(resumed.get()));
}

TEST(Api, RewindsAndStopsAtBreakpoints) {
  const ApiSession session = openDigits();
  auto position = sized<ss_position>();
  ASSERT_DONE(ss_begin_step(session.get(), &position));
  auto record = sized<ss_step_record>();
  ASSERT_DONE(ss_finish_step(session.get(), &record));
  const double first = record.loss;
  const char* conditions[] = {"phase optimizer", "loss value > 0"};
  ASSERT_DONE(ss_break_on(session.get(), conditions, 2));
  ASSERT_DONE(ss_rewind(session.get(), 0));
  ASSERT_DONE(ss_run_to_break(session.get(), 0, &position));
  EXPECT_NE(std::string(position.stopped_by).find("breakpoint 2"), std::string::npos) << position.stopped_by;
  auto loss = sized<ss_tensor>();
  ASSERT_DONE(ss_value(session.get(), "loss", &loss));
  EXPECT_EQ(static_cast<double>(floatsOf(loss).at(0)), first);
  ASSERT_DONE(ss_run_to_break(session.get(), 0, &position));
  EXPECT_NE(std::string(position.stopped_by).find("breakpoint 1"), std::string::npos) << position.stopped_by;
}

TEST(Api, CancelEndsWhatRunsNext) {
  const ApiSession session = openDigits();
  ASSERT_DONE(ss_build(session.get()));
  std::thread([&] { ss_cancel(session.get()); }).join();
  auto record = sized<ss_step_record>();
  int code = 0;
  EXPECT_NE(messageOf(ss_step(session.get(), &record), &code), "");
  EXPECT_EQ(code, SS_CANCELLED);
  EXPECT_EQ(step(session.get()), step(openDigits().get()));  // nothing was lost
}

TEST(Api, TellsInputsAsTheFileDeclaresThem) {
  const TemporaryFolder folder;
  const ApiSession session = openSession(writeLinearModel(folder), {});
  const ss_value_info* const* inputs = nullptr;
  std::size_t count = 0;
  ASSERT_DONE(ss_inputs(session.get(), &inputs, &count));
  ASSERT_EQ(count, 2u);
  EXPECT_STREQ(inputs[0]->name, "x");
  EXPECT_STREQ(inputs[0]->text, "float32[batch, 4]");
  EXPECT_EQ(inputs[0]->dtype, SS_FLOAT32);
  ASSERT_EQ(inputs[0]->rank, 2u);
  EXPECT_EQ(inputs[0]->dims[0], -1);
  EXPECT_EQ(inputs[0]->dims[1], 4);
}

TEST(Api, RunsForwardAlone) {
  const TemporaryFolder folder;
  const ApiSession session = openSession(writeLinearModel(folder), {});
  feed(session.get(), {2, 2, 2, 2}, {0, 0, 0, 0}, 1);
  const char* fetch[] = {"prediction"};
  ASSERT_DONE(ss_build_forward(session.get(), fetch, 1));
  auto position = sized<ss_position>();
  const ss_instruction_info* const* instructions = nullptr;
  std::size_t count = 0;
  ASSERT_DONE(ss_instructions(session.get(), &instructions, &count));
  ASSERT_DONE(ss_run_to(session.get(), static_cast<std::int32_t>(count), &position));
  auto prediction = sized<ss_tensor>();
  ASSERT_DONE(ss_value(session.get(), "prediction", &prediction));
  EXPECT_EQ(floatsOf(prediction), (std::vector<float>{1, 1, 1, 1}));
}

}  // namespace
}  // namespace stepscope::testing
