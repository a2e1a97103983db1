// Recompute and precision over the wire: studied, set as options, and asked for with nonsense.
#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "tests/engine/wire/conversation.h"

namespace stepscope {
namespace {

using testing::answer;
using testing::Conversation;
using testing::openedAndBuilt;
using testing::request;
using testing::talk;

TEST(Worker, JudgesRecomputeAndAppliesIt) {
  std::string bytes = openedAndBuilt();
  bytes += request(5, [](auto& r) { r.mutable_recompute(); });
  bytes += request(6, [](auto& r) { r.mutable_train()->set_steps(2); });
  bytes += request(7, [](auto& r) {
    r.mutable_recompute()->set_what_if(true);
    r.mutable_recompute()->set_plan("block:1:-1");
    r.mutable_recompute()->set_budget(1);
  });
  bytes += request(8, [](auto& r) {
    r.mutable_set_option()->set_name("recompute.plan");
    r.mutable_set_option()->set_value("block:1:-1");
    auto* more = r.mutable_set_option()->add_more();
    more->set_name("recompute.budget");
    more->set_value("1");
  });
  bytes += request(9, [](auto& r) { r.mutable_train()->set_steps(2); });
  bytes += request(10, [](auto& r) { r.mutable_recompute(); });
  const Conversation c = talk(bytes);
  const auto& before = answer(c, 5)->recompute();
  EXPECT_GT(before.patterns_size(), 0);
  EXPECT_FALSE(before.measured());
  const auto& asked = answer(c, 7)->recompute();
  EXPECT_TRUE(asked.measured());
  EXPECT_LT(asked.what_if().peak_bytes(), asked.plain_peak_bytes());
  EXPECT_GT(asked.what_if().step_ns(), asked.plain_step_ns());
  const auto& options = answer(c, 8)->options();
  EXPECT_TRUE(options.proof().equal()) << options.proof().unavailable() << options.proof().worst();
  EXPECT_EQ(options.proof().change(), "recompute.budget = 1, recompute.plan = block:1:-1");
  EXPECT_EQ(options.proof().instruction(), 0) << "between two steps a whole one is compared";
  const auto& after = answer(c, 10)->recompute();
  EXPECT_EQ(after.present_peak_bytes(), asked.what_if().peak_bytes());
  EXPECT_EQ(after.runs_size(), 2);
}

// The override of a study is set as the whole list, so that setting what was there before takes it back.
TEST(Worker, StudiesPrecisionAndSetsAnOverride) {
  const auto set = [](std::uint64_t id, const char* name, const char* value) {
    return request(id, [&](auto& r) {
      r.mutable_set_option()->set_name(name);
      r.mutable_set_option()->set_value(value);
    });
  };
  std::string bytes = openedAndBuilt();
  bytes += request(5, [](auto& r) { r.mutable_begin_step(); });
  bytes += request(6, [](auto& r) { r.mutable_run_to()->set_instruction(5); });
  bytes += request(7, [](auto& r) {
    r.mutable_precision()->set_measured(1);
    r.mutable_precision()->set_timed(1);
  });
  bytes += set(8, "precision", "bf16") + set(9, "precision.force", "^MatMul$:fp32") + set(10, "precision.force", "");
  bytes += request(11, [](auto& r) { r.mutable_precision()->set_precision("b16"); });
  bytes += set(12, "precision", "fp32") + request(13, [](auto& r) { r.mutable_finish_step(); });
  const Conversation c = talk(bytes);
  const auto& report = answer(c, 7)->precision();
  EXPECT_EQ(report.precision(), "bf16");
  EXPECT_GT(report.classes_size(), 0);
  EXPECT_GT(report.gradients_size(), 0);
  EXPECT_EQ(report.cost().steps(), 1);
  const auto& low = answer(c, 8)->options();
  EXPECT_FALSE(low.waits()) << "it is applied in the middle of the step";
  EXPECT_GT(low.proof().values(), 0);
  EXPECT_FALSE(low.proof().equal());
  const auto valueOf = [](const snapshot::OptionList& list) {
    for (const auto& o : list.options())
      if (o.name() == "precision.force") return o.value();
    return std::string("none");
  };
  EXPECT_EQ(valueOf(answer(c, 9)->options()), "^MatMul$:fp32");
  EXPECT_EQ(valueOf(answer(c, 10)->options()), "");
  EXPECT_EQ(answer(c, 11)->error().message(), "precision 'b16': unknown; expected fp32, bf16 or fp16");
  EXPECT_FALSE(answer(c, 12)->options().waits());
  EXPECT_TRUE(answer(c, 13)->has_step());
}

TEST(Worker, AnswersWrongQuestionsAboutRecompute) {
  const std::vector<std::pair<const char*, std::int64_t>> wrong{{"Gelu+:2:1", 0}, {"Nothing+:1:-1", 0}, {",", 0}, {"", -5}};
  std::string bytes = request(9, [](auto& r) { r.mutable_recompute(); }) + openedAndBuilt();
  for (std::size_t i = 0; i < wrong.size(); ++i)
    bytes += request(10 + i, [&](auto& r) {
      r.mutable_recompute()->set_what_if(true);
      r.mutable_recompute()->set_plan(wrong[i].first);
      r.mutable_recompute()->set_budget(wrong[i].second);
    });
  // Of several settings none is made when one of them is wrong.
  bytes += request(20, [](auto& r) {
    r.mutable_set_option()->set_name("recompute.budget");
    r.mutable_set_option()->set_value("1");
    auto* more = r.mutable_set_option()->add_more();
    more->set_name("recompute.plan");
    more->set_value("nonsense");
  });
  bytes += request(21, [](auto& r) { r.mutable_options(); });
  bytes += request(22, [](auto& r) { r.mutable_train()->set_steps(1); });
  const Conversation c = talk(bytes);
  EXPECT_NE(answer(c, 9)->error().message().find("no model is open"), std::string::npos);
  for (std::size_t i = 0; i < wrong.size(); ++i) EXPECT_TRUE(answer(c, 10 + i)->has_error()) << wrong[i].first;
  EXPECT_EQ(answer(c, 20)->error().code(), "invalid_argument");
  for (const auto& option : answer(c, 21)->options().options())
    if (option.name().starts_with("recompute.")) EXPECT_EQ(option.value(), option.default_value()) << option.name();
  EXPECT_TRUE(answer(c, 22)->has_step());
}

TEST(Worker, SurvivesDamagedQuestionsAboutRecompute) {
  std::string questions;
  questions += request(5, [](auto& r) {
    r.mutable_recompute()->set_what_if(true);
    r.mutable_recompute()->set_plan("block:1:2,Gelu+:1:-1");
    r.mutable_recompute()->set_budget(100'000);
  });
  questions += request(6, [](auto& r) {
    r.mutable_set_option()->set_name("recompute.plan");
    r.mutable_set_option()->set_value("block:1:2");
    r.mutable_set_option()->add_more()->set_name("memory.inplace");
  });
  std::mt19937 random(11);
  std::string bytes = openedAndBuilt();
  for (int round = 0; round < 40; ++round) {
    std::string damaged = questions;
    // Lengths stay, so that every message is read.
    for (int k = 0; k < 1 + round % 3; ++k) {
      const std::size_t at = random() % damaged.size();
      if (damaged[at] != '\0') damaged[at] = static_cast<char>(random());
    }
    bytes += damaged;
  }
  (void)talk(bytes);  // no signal, and it ends
}

}  // namespace
}  // namespace stepscope
